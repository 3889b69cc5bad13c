"""The Makefile has few targets, lists them all, and runs nothing that does not exist."""

import importlib.util
import re
import subprocess

from docs_support import ROOT

TEXT = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", TEXT, re.MULTILINE))


def test_make_alone_lists_every_target() -> None:
    done = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert {(make, target in TARGETS, bool(what)) for make, target, what in listed} == {("make", True, True)}
    assert {target for _, target, _ in listed} == TARGETS
    assert len(TARGETS) < 15


def test_every_target_is_phony() -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)$", TEXT, re.MULTILINE)
    assert set(phony.split()) == TARGETS


def test_the_modules_that_it_runs_exist() -> None:
    modules = set(re.findall(r"python -m (tallystick[\w.]+)", TEXT))
    assert modules
    assert {module for module in modules if importlib.util.find_spec(module) is None} == set()
