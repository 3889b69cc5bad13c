"""The schemes s1, f1 and d1, pinned byte for byte and over interpreters (contract.md, section 2).

A record is only as good as its scheme: if one of these tests fails, every run that was ever recorded would look
changed. The golden file is never rewritten to fit; another scheme gets another version and another file.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tallystick.contract.sites as sites_module
from contract_corpus import CORPUS, SCRIPTS
from tallystick.contract.fingerprint import fingerprint
from tallystick.contract.identity import Schemes
from tallystick.contract.payload import canonical, digest
from tallystick.contract.sites import collect_sites

HERE = Path(__file__).parent
GRAMMAR = HERE / "golden_grammar.txt"
GOLDEN = json.loads((HERE / "golden_schemes.json").read_text())

READ_ELSEWHERE = """
import ast, json, sys
from tallystick.contract.sites import collect_sites
from tallystick.contract.fingerprint import fingerprint
assert "msgspec" not in sys.modules
result = {}
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        found = collect_sites(ast.parse(file.read()))
    result[path] = {site.site: fingerprint(site.node, site.kind) for site in found}
print(json.dumps(result))
"""


def name_of(path: Path) -> str:
    return path.parent.name if path.is_relative_to(CORPUS) else path.stem


def interpreters() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for minor in (11, 12, 13, 14):
        version = f"3.{minor}"
        if sys.version_info[:2] != (3, minor):
            managed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
            found[version] = str(managed[-1]) if managed else shutil.which(f"python{version}")
    return found


def test_the_golden_file_speaks_of_the_schemes_in_force() -> None:
    assert GOLDEN["schemes"] == {"site": "s1", "fingerprint": "f1", "digest": "d1"}
    assert Schemes() == Schemes(**GOLDEN["schemes"])


@pytest.mark.parametrize("path", [GRAMMAR, *SCRIPTS], ids=name_of)
def test_sites_and_fingerprints_are_those_of_the_golden_file(path: Path) -> None:
    found = {site.site: fingerprint(site.node, site.kind) for site in collect_sites(ast.parse(path.read_text()))}
    assert found == GOLDEN["fingerprints"][name_of(path)]


def test_digests_are_those_of_the_golden_file() -> None:
    for entry in GOLDEN["digests"]:
        assert canonical(entry["payload"]).hex() == entry["canonical"]
        assert digest(entry["payload"]) == entry["digest"]


@pytest.mark.parametrize(("version", "python"), interpreters().items(), ids=lambda value: str(value).rpartition("/")[2])
def test_another_python_reads_the_same_sites_and_fingerprints(version: str, python: str | None) -> None:
    if python is None:
        pytest.skip(f"no Python {version} here")
    folder = Path(sites_module.__file__).parents[2]
    run = subprocess.run(
        [python, "-S", "-c", READ_ELSEWHERE, *map(str, (GRAMMAR, *SCRIPTS))],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode and "Traceback" not in run.stderr:
        pytest.skip(f"Python {version} does not start: {run.stderr.strip()}")
    assert run.returncode == 0, run.stderr
    read = {name_of(Path(path)): found for path, found in json.loads(run.stdout).items()}
    assert read == GOLDEN["fingerprints"]
