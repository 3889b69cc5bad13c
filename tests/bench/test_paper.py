"""The paper's figures beside ours: the counts that are promised hold, and whatever differs has its reason."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tallystick.bench.paper import benefit, crash, episodes, overhead, shifts
from tallystick.bench.paper.__main__ import e7
from tallystick.bench.paper.benefit import Prices
from tallystick.bench.paper.edits import EDITS, table_vii, verdict
from tallystick.bench.paper.line import Line
from tallystick.bench.paper.mutants import p2
from tallystick.bench.repair.corpus import tasks
from tallystick.contract.gate import FrozenSite, freeze

CORPUS = tasks(Path(__file__).parent.parent / "corpus")


def differing(lines: Sequence[Line]) -> list[str]:
    """Return what differs from the paper, once it is certain that each of these has its reason."""
    assert lines
    assert [line for line in lines if line.unexplained] == []
    return [line.what for line in lines if not line.agrees and not line.timed]


async def test_the_repairs_of_e2b_cost_what_the_papers_do() -> None:
    assert differing(await episodes.e2b()) == []


async def test_the_contracts_side_of_the_engine_study_is_the_papers() -> None:
    assert differing(await episodes.g1()) == []


async def test_a_fanout_of_n_costs_n_plus_one_calls_at_every_width() -> None:
    assert differing(await episodes.fig5()) == []


async def test_three_submissions_differ_in_how_many_counterexamples_alone() -> None:
    assert differing(await episodes.e3()) == ["counterexamples of v3"]


async def test_a_provider_that_refuses_costs_what_the_paper_says_and_a_lost_call_is_held() -> None:
    assert differing(await episodes.e5()) == ["client timeout: before it is executed again"]


@pytest.mark.long
async def test_a_killed_process_leaves_nothing_that_is_paid_twice() -> None:
    assert differing(await crash.e4()) == []


async def test_shifts_end_as_in_table_two_but_for_its_residual_row() -> None:
    assert differing(await shifts.table_ii()) == ["duplicate insertion"]


async def test_widening_orphans_and_edits_of_payloads() -> None:
    assert differing(await shifts.widening()) == ["branch inserted ahead: executions"]
    assert differing(await shifts.orphans()) == []
    assert differing(await shifts.payload_edits()) == ["executions: superseded, full rerun"]
    assert differing(shifts.payload_cache()) == []


async def test_the_seven_edits_are_judged_by_their_class() -> None:
    twenty = [line for line in await table_vii(CORPUS) if "VI.C.d" in line.study]
    assert [(line.what, line.ours) for line in twenty[:1]] == [("edits that apply", "136 of 140")]
    assert "edits that apply" not in differing(twenty)


def test_without_a_corpus_the_three_scripts_are_left() -> None:
    script = overhead.of_sites(3)
    frozen = freeze(FrozenSite.of(script, fact) for fact in script.sites)
    said = {edit: verdict(frozen, script.source, change) for edit, (change, _) in EDITS.items()}
    assert said == {edit: expected for edit, (_, expected) in EDITS.items()}


def test_the_structural_identity_is_the_papers() -> None:
    assert "structural: executed, replayed, duplicates, wrong, stops" not in differing(e7())


@pytest.mark.long
def test_no_mutant_is_misjudged() -> None:
    found = p2(CORPUS)
    assert [line.ours.split()[0] for line in found] == ["0", "0", "0"]


def test_the_model_of_net_benefit_gives_the_papers_figures_and_anybodys_own() -> None:
    assert differing(benefit.as_the_paper()) == []
    own = benefit.benefit(6, Prices(call_usd=0.5, call_seconds=10.0, rewrites=2.0, rewrite_seconds=5.0))
    assert (own.calls, own.usd, own.seconds, own.rewrite_usd) == (5, 2.5, 40.0, 1.25)


def test_a_line_that_differs_without_a_reason_is_a_miss() -> None:
    assert Line("E1", "calls", "5", "6").unexplained
    assert not Line("E1", "calls", "5", "6", "another script").unexplained
    assert not Line("E1", "ms", "5", "6", timed=True).unexplained
