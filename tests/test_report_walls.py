"""Sections on the account of a step, on what would move it, and on where a sweep's wall turns."""

from dataclasses import replace

import msgspec

from tests.frames import Row
from tests.report_inputs import report_inputs
from tests.test_chart_waterfall import an_account
from whichwall.analyze.report.account import account, accounts
from whichwall.analyze.report.document import Block, Items, Paragraph, Strong, Table
from whichwall.analyze.report.experiments.turned import turned
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.limits import confirm
from whichwall.analyze.report.moves import moves, predicted_by_batch, predicted_by_engine
from whichwall.analyze.report.roofs import roofs
from whichwall.analyze.report.subject import subject
from whichwall.schemas.moves import BATCH, GRAPH, HALF_WEIGHTS, Move
from whichwall.schemas.turns import Turn, Turns, WallAt

MS = 1_000_000
STEP = an_account(
    ("floor", "bytes", 20), ("kernels", "norm", 35), ("kernels", "lm_head", -5),
    ("graph_idle", None, 30), ("idle", "launch", 15), ("host", None, 10), ("remainder", None, -5),
)  # fmt: skip
GRAPHED = msgspec.structs.replace(
    STEP, graph_nodes=70, expected_ns=95_000, error=-0.05, notes=["the rule"]
)
TOLD = Move(GRAPH, None, 9 * MS, "as said", 10 * MS, "a rung", -0.1, 8 * MS, 8 * MS)


def inputs_with(**more: object) -> ReportInputs:
    inputs = report_inputs()
    return replace(inputs, summary=msgspec.structs.replace(inputs.summary, **more))


def the_table(blocks: list[Block]) -> Table:
    (found,) = [block for block in blocks if isinstance(block, Table)]
    return found


def test_the_account_lists_every_part_with_its_share_and_its_rules() -> None:
    inputs = inputs_with(account=[GRAPHED])
    blocks = account(inputs, subject(inputs), set())

    rows = [row[:3] for row in the_table(blocks).rows]
    assert rows[:3] == [
        ("floor, bytes", "20.0 µs", "20.0 %"),
        ("norm over its floor", "35.0 µs", "35.0 %"),
        ("lm_head over its floor", "−5.00 µs", "−5.0 %"),
    ]
    assert rows[-2] == ("remainder", "−5.00 µs", "−5.0 %")
    assert blocks[-1] == Items(
        (
            "The rule.",
            "Kernels, idle time of 70 nodes and the host's part make 95.0 µs: −5.0 % against the "
            "clean step.",
        )
    )


def test_a_step_without_an_account_has_no_section() -> None:
    inputs = inputs_with()

    assert account(inputs, subject(inputs), {"waterfall"}) == accounts(inputs) == []


def test_accounts_of_several_points_stand_side_by_side() -> None:
    found = the_table(accounts(inputs_with(account=[STEP, GRAPHED])))

    assert [row[2:] for row in found.rows] == [
        ("20.0 µs", "30.0 µs", "30.0 µs", "15.0 µs", "10.0 µs", "−5.00 µs", "100 µs", "0", "–"),
        ("20.0 µs", "30.0 µs", "30.0 µs", "15.0 µs", "10.0 µs", "−5.00 µs", "100 µs", "70",
         "95.0 µs (−5.0 %)"),
    ]  # fmt: skip


def test_moves_say_what_they_rest_on_and_a_missing_one_is_no_number() -> None:
    inputs = inputs_with(moves=[Move(HALF_WEIGHTS, None, None, "no floor is known")])

    assert the_table(moves(inputs, subject(inputs))).rows == (
        ("half the bytes per weight", "–", "No floor is known."),
    )


def test_a_move_that_was_made_stands_beside_its_prediction() -> None:
    inputs = inputs_with(moves=[TOLD, Move(BATCH, 2, 5 * MS, "as said")])

    assert the_table(moves(inputs, subject(inputs))).rows == (
        ("as a CUDA graph", "9.00 ms", "10.0 ms (a rung)", "−10.0 %", "8.00 ms", "8.00 ms",
         "As said."),
        ("batch 2", "5.00 ms", "–", "–", "–", "–", "As said."),
    )  # fmt: skip


def test_sweeps_have_columns_of_predictions_where_any_was_measured() -> None:
    of_batch = Move(BATCH, 16, 5 * MS, "", 4 * MS, "point 1", 0.25)
    inputs = inputs_with(moves=[TOLD, of_batch])
    start: Row = {"point": 0, "engine": "eager", "batch": 1}
    made: Row = {"point": 1, "engine": "cuda-graph", "batch": 16}
    other: Row = {"point": 2, "engine": "compile", "batch": 3}

    for cells, first in (
        (predicted_by_engine(inputs), "9.00 ms"),
        (predicted_by_batch(inputs), "5.00 ms"),
    ):
        (_, predicted), (_, error) = cells
        assert [predicted(row) for row in (start, made, other)] == ["from here", first, "–"]
        assert error(start) == error(other) == "–"
    assert predicted_by_batch(inputs_with()) == predicted_by_engine(inputs_with()) == ()


def test_a_test_that_was_run_is_told_with_its_result() -> None:
    verdict = msgspec.structs.replace(report_inputs().summary.verdict, tested="a rung: confirmed")
    (_, items) = confirm(inputs_with(verdict=verdict))

    assert isinstance(items, Items)
    assert items.items[-1] == (Strong("the test was run"), ": a rung: confirmed")


def sweep(*walls: tuple[int, str | None], changes: tuple[Turn, ...] = ()) -> ReportInputs:
    listed = [
        WallAt(value, value, wall, "traced" if wall else None, "bytes") for value, wall in walls
    ]
    return inputs_with(turns=Turns("batch", "decode", listed, list(changes), []))


def said(inputs: ReportInputs) -> str:
    first = turned(inputs)[0]
    assert isinstance(first, Paragraph)
    return str(first.text)


def test_a_wall_that_turns_says_between_which_values() -> None:
    turn = Turn(after=2, at=64, old="launches", new="kernels")
    inputs = sweep((1, "launches"), (2, "launches"), (8, None), (64, "kernels"), changes=(turn,))

    assert said(inputs) == (
        "The wall turns from launches to kernels between a batch of 2 and 64. On paper the bytes "
        "floor is the larger one all along."
    )
    assert [row[:2] for row in the_table(turned(inputs)).rows] == [
        ("1 to 2", "launches"), ("8", "not known"), ("64", "kernels"),
    ]  # fmt: skip


def test_a_wall_that_never_turns_says_how_far_that_was_seen() -> None:
    assert said(sweep((1, "launches"), (64, "launches"))).startswith(
        "The wall is launches from a batch of 1 to 64: no value measured turns it."
    )
    assert said(sweep((1, None))).startswith("Which wall each point stands at is not known")
    assert turned(inputs_with()) == []


def test_charts_under_the_roof_are_shown_where_there_are_any() -> None:
    assert roofs({"gaps"}) == []
    assert len(roofs({"roofline", "binding"})) == 3
