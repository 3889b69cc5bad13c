"""The comparison of identity functions runs, and the structural one has none of the faults of the others."""

from pathlib import Path

import pytest

from tallystick.bench.identities import IDENTITIES, PAPER, TASKS, Probe, main, probe, study


def test_the_structural_identity_pays_nothing_twice_and_serves_nothing_wrong() -> None:
    ours = study("structural")
    assert (ours.duplicates, ours.wrong) == (0, 0)
    assert ours == PAPER["structural"]


def test_each_other_identity_has_a_fault_of_its_own() -> None:
    payload, ordinal, line = study("payload"), study("ordinal"), study("line")
    assert payload.wrong > 0
    assert (payload.duplicates, payload.stops) == (0, 0)
    assert ordinal.duplicates > 0
    assert line.stops > max(ordinal.stops, study("structural").stops)
    assert line.replayed < study("structural").replayed


def test_a_cache_of_payloads_gives_one_picture_to_two_roles() -> None:
    assert probe("structural") == Probe(TASKS, TASKS, 2 * TASKS)
    assert probe("payload") == Probe(0, TASKS, TASKS)


def test_the_tables_are_printed_beside_the_papers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--out", str(tmp_path), "--disk", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert all(identity in printed for identity in IDENTITIES)
    assert "15 (15)" in printed
    assert "0 of 15" in printed
