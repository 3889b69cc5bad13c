"""Who may call in the name of a race's branch: the host holds the guest to the races that it has begun."""

import pytest

from engine_launch import Table
from tallystick.engine.race_book import RaceBook
from tallystick.engine.steps import Dispatch, Halt
from tallystick.sandbox.frames import Race, Won

RACE = "orchestrate/race1"


def begun(winner: int | None) -> RaceBook:
    book = RaceBook({})
    book.open(Race(nonce="n", id=1, site=RACE, path=(2,), occurrence=0, width=2), winner)
    return book


@pytest.mark.parametrize("path", [(f"{RACE}:0:0",), (0, f"{RACE}:0:0"), (f"{RACE}:0:0", 1)], ids=str)
def test_a_call_in_a_branch_of_a_race_that_nobody_began_ends_the_launch(path: tuple[int | str, ...]) -> None:
    table = Table()
    step = table.call(path)
    assert isinstance(step, Halt)
    assert step.stop.code == "TS-R004"
    assert "a race that has not begun" in step.stop.message
    assert table.launch.pending == {}


@pytest.mark.parametrize("name", ["draft", "1:2", "a/b:0:0", "race1:0:0", f"{RACE}:0"])
def test_a_node_of_a_dag_may_be_called_nearly_anything(name: str) -> None:
    assert isinstance(Table().call((name,)), Dispatch)


def test_the_branches_of_a_race_are_those_it_was_begun_with() -> None:
    book = begun(winner=None)
    assert book.has_begun((2, f"{RACE}:0:0"))
    assert book.has_begun((2, f"{RACE}:0:1", "node", 3))
    for stranger in [
        (2, f"{RACE}:0:2"),
        (2, f"{RACE}:1:0"),
        (1, f"{RACE}:0:0"),
        (f"{RACE}:0:0",),
        (2, "other/race1:0:0"),
    ]:
        assert not book.has_begun(stranger)


def test_of_a_race_with_a_winner_on_record_that_branch_alone_has_begun() -> None:
    book = begun(winner=1)
    assert book.has_begun((2, f"{RACE}:0:1"))
    assert not book.has_begun((2, f"{RACE}:0:0"))
    assert book.won(Won(nonce="n", id=1, winner=0)) is None
