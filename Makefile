# The entrance: `make demo` and `make test` build what they need. PYTHON names the interpreter to build with.
# A target with a comment behind it is listed by `make help`.
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PORTIONS := runtime store sandbox providers cli bench
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup demo test test-long lint types docs lock bench clean

help: # list what there is to make
	@sed -n 's/^\([a-z-]*\):.*# \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(STAMP) # build .venv from the hashed lock

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

demo: setup # run the main job end to end, with pictures
	@$(BIN)/tally demo

test: setup lint types # check style and types, and run the whole suite
	@$(PYTEST)

test-long: setup # more examples for the property tests, and the slow tests
	@TALLYSTICK_TEST_PROFILE=long $(PYTEST) -m "long or not long"

lint: setup # ruff and the order of the layers
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports >/dev/null || $(BIN)/lint-imports

types: setup # mypy, strict
	@$(BIN)/mypy $(PORTIONS) tests

docs: setup # write the pages that are made from the code
	@$(BIN)/python -m tallystick.cli.docs

# A hashed, universal requirements file that names no registry (docs/decisions/0002).
lock: setup # resolve the dependencies anew
	@$(BIN)/python -m pip install -q uv
	@$(BIN)/uv pip compile --quiet --upgrade --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --no-emit-index-url pyproject.toml -o requirements.lock

bench: setup # measure what the command line costs to start
	@$(BIN)/python -m tallystick.bench.help

clean: # remove all that was built
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage* dist build demo-out bench-out
