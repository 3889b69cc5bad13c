# The entrance: `make demo` and `make test` build what they need. PYTHON names the interpreter to build with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PORTIONS := runtime store sandbox providers cli bench
PYTEST := $(BIN)/python -m pytest

.PHONY: setup demo test test-long lint types docs lock bench clean

setup: $(STAMP)

# uv where there is one, else venv and pip; both verify every hash of the lock.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tallystick needs CPython 3.11 or newer; name one with make PYTHON=...")'
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv -q --allow-existing --python $(PYTHON) $(VENV) && \
	  uv pip install -q --python $(BIN)/python --require-hashes -r requirements.lock && \
	  uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@touch $@

demo: setup
	@$(BIN)/tally demo

test: setup lint types
	@$(PYTEST)

test-long: setup
	@TALLYSTICK_TEST_PROFILE=long $(PYTEST) -m "long or not long"

lint: setup
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports >/dev/null || $(BIN)/lint-imports

types: setup
	@$(BIN)/mypy $(PORTIONS) tests

docs: setup
	@$(BIN)/python -m tallystick.cli.docs docs

# A hashed, universal requirements file that names no registry (docs/decisions/0002).
lock: setup
	@$(BIN)/python -m pip install -q uv
	@$(BIN)/uv pip compile --quiet --upgrade --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url pyproject.toml -o requirements.lock

bench: setup
	@$(BIN)/tally bench all

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage* dist build demo-out
