"""`reconcile`: one decision or many, with files in a result."""

import base64
import json
from pathlib import Path

import pytest

from cli_support import RUN, FakeDaemon, attempt, report
from tallystick.cli import attachments
from tallystick.cli.main import main
from tallystick.contract.errors import UsageError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
HEADS = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\0\0\0\0WEBP",
    "audio/wav": b"RIFF\0\0\0\0WAVE",
    "video/mp4": b"\0\0\0\x18ftypisom",
}


@pytest.fixture
def settled(daemon: FakeDaemon) -> FakeDaemon:
    """Have the daemon settle attempts 4 and 7 of a run that was interrupted."""
    for number in (4, 7):
        done = attempt(attempt=number, state="committed", decision="commit", reserved_usd=0.02)
        daemon.says("POST", f"/runs/{RUN}/attempts/{number}/reconcile", done)
    daemon.says("GET", f"/runs/{RUN}", report(status="interrupted", reason="TS-N003"))
    return daemon


def asked(daemon: FakeDaemon, number: int = 4) -> dict[str, object]:
    body: dict[str, object] = daemon.body("POST", f"/runs/{RUN}/attempts/{number}/reconcile")
    assert body.pop("who")
    return body


def test_an_attempt_is_settled_by_a_known_result(settled: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    Path("result.json").write_text('{"images": []}')
    priced = attempt(state="committed", decision="commit", cost_usd=0.0)
    settled.says("POST", f"/runs/{RUN}/attempts/4/reconcile", priced)
    assert main(["reconcile", RUN, "4", "--result", "result.json", "--cost", "0", "--why", "billed"]) == 0
    assert asked(settled) == {
        "abandon": False,
        "reprocess": False,
        "result": {"images": []},
        "cost_usd": 0.0,
        "why": "billed",
    }
    out, err = capsys.readouterr()
    assert out.endswith(f"  why   billed\n  next  tally resume {RUN}\n")
    assert err == ""


def test_a_result_without_its_cost_is_warned_of(settled: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    Path("result.json").write_text("{}")
    assert main(["reconcile", RUN, "4", "--result", "result.json"]) == 0
    assert capsys.readouterr().err == (
        "attempt 4 was committed without --cost: it counts as unpriced, and its reservation of $0.02 stays set aside "
        "in the budget\n"
    )
    assert settled.asked[0][2]["cost_usd"] is None


def test_an_attempt_is_abandoned_for_a_reason(settled: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    settled.says("POST", f"/runs/{RUN}/attempts/4/reconcile", attempt(state="abandoned", decision="abandon"))
    settled.says("GET", f"/runs/{RUN}", report(status="stopped", unresolved=(attempt(attempt=7),)))
    assert main(["reconcile", RUN, "4", "--abandon", "--why", "not on the bill"]) == 0
    assert asked(settled) == {"abandon": True, "reprocess": False, "cost_usd": None, "why": "not on the bill"}
    out, err = capsys.readouterr()
    assert f"next  tally reconcile {RUN} 7 --result FILE" in out
    assert err == ""


@pytest.mark.parametrize(
    ("flags", "body"),
    [
        (["--reprocess"], {"abandon": False, "reprocess": True, "cost_usd": None, "why": ""}),
        (["--cost", "0.03"], {"abandon": False, "reprocess": False, "cost_usd": 0.03, "why": ""}),
    ],
)
def test_a_kept_answer_is_read_again_and_a_price_is_set(
    settled: FakeDaemon, flags: list[str], body: dict[str, object]
) -> None:
    assert main(["reconcile", RUN, "4", *flags]) == 0
    assert asked(settled) == body


def test_all_that_is_unresolved_is_abandoned_at_once(settled: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    unusable = attempt(attempt=5, state="unusable")
    settled.says("GET", f"/runs/{RUN}/attempts", [attempt(), unusable, attempt(attempt=7)])
    assert main(["reconcile", RUN, "--all", "--abandon", "--why", "none on the bill", "--json"]) == 0
    assert [each["attempt"] for each in json.loads(capsys.readouterr().out)["attempts"]] == [4, 7]
    assert asked(settled, 7)["why"] == "none on the bill"
    settled.says("GET", f"/runs/{RUN}/attempts", [unusable])
    assert main(["reconcile", RUN, "--all", "--abandon", "--why", "x"]) == 2
    assert "nothing was changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        ["4"],
        ["4", "--abandon"],
        ["4", "--abandon", "--why", " "],
        ["4", "--abandon", "--why", "x", "--result", "r.json"],
        ["4", "--abandon", "--why", "x", "--reprocess"],
        ["4", "--reprocess", "--result", "r.json"],
        ["4", "--all", "--abandon", "--why", "x"],
        ["--all", "--cost", "1"],
        ["--all", "--result", "r.json"],
        ["--abandon", "--why", "x"],
        ["last", "--abandon", "--why", "x"],
        ["4x", "--abandon", "--why", "x"],
    ],
)
def test_a_decision_on_an_attempt_must_be_one(
    daemon: FakeDaemon, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reconcile", RUN, *flags]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error[TS-U001]")
    assert "hint: " in err
    assert daemon.asked == []


def test_what_is_no_number_is_told_where_the_numbers_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reconcile", RUN, "last", "--abandon", "--why", "x"]) == 2
    assert f"tally attempts {RUN} --open" in capsys.readouterr().err


@pytest.mark.parametrize("kind", HEADS)
def test_a_file_is_found_beside_the_result_and_known_by_its_first_bytes(settled: FakeDaemon, kind: str) -> None:
    folder = Path("found")
    folder.mkdir()
    (folder / "picture").write_bytes(HEADS[kind])
    (folder / "result.json").write_text('{"images": [{"$file": "picture"}], "width": 8}')
    assert main(["reconcile", RUN, "4", "--result", "found/result.json"]) == 0
    data = base64.b64encode(HEADS[kind]).decode()
    assert asked(settled)["result"] == {"images": [{"$base64": data, "media_type": kind}], "width": 8}


def test_a_type_that_is_named_holds(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"anything")
    entry = {"$file": "x", "media_type": "image/tiff"}
    assert attachments.with_files(entry, tmp_path) == {"$base64": "YW55dGhpbmc=", "media_type": "image/tiff"}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"$file": "gone.png"}, "No such file"),
        ({"$file": "."}, "Is a directory"),
        ({"$file": "a\0b"}, "null"),
        ({"$file": 3}, "no name of a file"),
        ({"$file": "x", "size": 3}, "size"),
        ({"$file": "x"}, "nobody can tell"),
        ([{"$file": "big.png"}, {"$file": "big.png"}], "more than 5 MiB together"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_message(tmp_path: Path, entry: object, said: str) -> None:
    (tmp_path / "x").write_text("plain words")
    (tmp_path / "big.png").write_bytes(PNG.ljust(3 << 20))
    with pytest.raises(UsageError, match=said) as caught:
        attachments.with_files(entry, tmp_path)
    assert caught.value.hint


def test_the_help_has_an_example_and_says_what_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reconcile", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert '{"images": [{"$file": "picture.png"}], "width": 512, "height": 512}' in said
    assert attachments.KNOWN.replace(", webm, mov", ", webm and mov") in said
