"""Two runs side by side: what is said of them, and what a check of them answers."""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.conftest import ROOT
from tests.experiment_runs import MS, Clock, a_run, point
from tests.frames import MANIFEST, Row
from whichwall.analyze.comparison import compare_runs
from whichwall.cli import main
from whichwall.schemas.comparison import Comparison
from whichwall.schemas.manifest import Environment, Manifest
from whichwall.schemas.passes import Passes
from whichwall.schemas.points import REFUSED, Points

DECODE_RUN = ROOT / "traces" / "h200-decode-qwen2.5-0.5b"
PREFILL_RUN = ROOT / "traces" / "h200-prefill-qwen2.5-0.5b"


def processes(*steps_ms: Sequence[float]) -> list[Row]:
    """Return clean requests, one of each process; a step varies by a thousandth at most."""
    clock = Clock()
    return [
        row
        for number, steps in enumerate(steps_ms)
        for row in clock.request(0, 90 * MS, [round(ms * MS) for ms in steps], visit=number)
    ]


def decode(out: Path, *steps_ms: Sequence[float], manifest: Manifest = MANIFEST) -> Path:
    rows = processes(*steps_ms)
    a_run(out, "decode", {Points: [point(0)], Passes: rows}, manifest=manifest)
    return out


def sweep(out: Path, steps_ms: dict[int, float]) -> Path:
    clock = Clock()
    rows = [
        row
        for visit in range(2)
        for number, ms in enumerate(steps_ms.values())
        for row in clock.passes(number, [round(ms * MS * f) for f in (1, 1.001)], visit=visit)
    ]
    points = [point(n, **{Points.batch: batch}) for n, batch in enumerate(steps_ms)]
    a_run(out, "batch", {Points: points, Passes: rows})
    return out


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, words)])


def compared(a: Path, b: Path) -> Comparison:
    return compare_runs(a, b)


def test_direction_and_size_are_said_in_words(tmp_path: Path) -> None:
    a = decode(tmp_path / "a", [13.1, 13.1], [13.2, 13.2], [13.0, 13.0])
    b = decode(tmp_path / "b", [10.0, 10.0], [10.1, 10.1], [9.9, 9.9])

    assert compared(a, b).answer.startswith(
        "B's decode step is 1.31 × faster: 13.1 ms in A, 10.0 ms in B (95 % interval: 1.28 × to "
        "1.34 × faster; 3 processes each)."
    )
    assert compared(b, a).answer.startswith("B's decode step is 1.31 × slower: 10.0 ms in A")
    assert "not known" not in compared(a, b).answer


def test_one_process_a_side_says_what_it_cannot_know(tmp_path: Path) -> None:
    a, b = decode(tmp_path / "a", [10, 10, 10.01]), decode(tmp_path / "b", [12, 12, 12.01])

    found = compared(a, b)

    assert found.answer.endswith(
        "3 passes of one process each). How processes differ is not known, so no interval holds "
        "it: collect both with --repeat 5 to know."
    )
    assert found.pairs[0].step is not None
    assert found.pairs[0].step.processes_known is False


def test_processes_that_differ_more_than_the_runs_show_no_difference(tmp_path: Path) -> None:
    a = decode(tmp_path / "a", [16, 16], [62, 62], [17, 17])
    b = decode(tmp_path / "b", [18, 18], [60, 60], [19, 19])

    assert compared(a, b).answer.startswith("No difference that this data can show: a decode step")


def test_points_of_sweeps_are_compared_one_by_one_and_the_rest_is_listed(tmp_path: Path) -> None:
    a = sweep(tmp_path / "a", {1: 10.0, 2: 10.0, 4: 20.0})
    b = sweep(tmp_path / "b", {2: 10.0, 4: 10.0, 8: 40.0})

    found = compared(a, b)

    assert [pair.name for pair in found.pairs] == ["batch 2", "batch 4"]
    assert found.answer.startswith(
        "Of 2 decode steps that both have, B is faster at 1 (most: batch 4, 2.00 × faster); at 1 "
        "there is no difference that this data can show."
    )
    assert [side.batch for side in found.only_a] == [1]
    assert [side.batch for side in found.only_b] == [8]


def test_a_point_that_one_side_refused_is_listed_with_its_reason(tmp_path: Path) -> None:
    a = decode(tmp_path / "a", [10, 10])
    refused = point(0, **{Points.outcome: REFUSED, Points.reason: "no kernel"})
    a_run(tmp_path / "b", "decode", {Points: [refused]})

    found = compared(a, tmp_path / "b")

    assert [(side.outcome, side.reason) for side in found.only_b] == [(REFUSED, "no kernel")]
    assert found.answer == "Not comparable: the runs have no point in common."
    assert "refused: no kernel" in run(a, tmp_path / "b").stdout


def test_what_changed_around_the_runs_is_named(tmp_path: Path) -> None:
    other = msgspec.structs.replace(MANIFEST, environment=Environment(torch="3.0", driver="700"))
    found = compared(decode(tmp_path / "a", [1, 1]), decode(tmp_path / "b", [1, 1], manifest=other))

    assert [(one.what, one.a, one.b) for one in found.changes] == [
        ("torch", None, "3.0"), ("driver", None, "700"),
    ]  # fmt: skip
    assert found.same["engine"] == "eager"


def test_beyond_doubt_is_exit_1_with_the_sentence(tmp_path: Path) -> None:
    a, b = decode(tmp_path / "a", [10, 10.01]), decode(tmp_path / "b", [12, 12.01])

    result = run(a, b, "--fail-above", "5")

    assert result.exit_code == 1
    assert "B is slower by more than 5 %: decode step: 1.20 × slower" in result.stdout


def test_a_slowdown_within_the_limit_is_exit_0_with_the_sentence(tmp_path: Path) -> None:
    a, b = decode(tmp_path / "a", [10, 10.01]), decode(tmp_path / "b", [10.3, 10.31])

    result = run(a, b, "--fail-above", "5")

    assert result.exit_code == 0
    assert "B is not slower by more than 5 % beyond doubt: decode step: 3.0 % slow" in result.stdout


def test_a_slowdown_that_noise_may_have_made_is_exit_0_and_said_to_be_possible(
    tmp_path: Path,
) -> None:
    a, b = decode(tmp_path / "a", [10], [14]), decode(tmp_path / "b", [15], [11])

    result = run(a, b, "--fail-above", "5")

    assert result.exit_code == 0
    assert "beyond doubt, though it may be" in " ".join(result.stdout.split())


def test_unknown_steps_are_exit_2(tmp_path: Path) -> None:
    a_run(tmp_path / "a", "decode", {Points: [point(0)]})
    b = decode(tmp_path / "b", [10, 10])

    result = run(tmp_path / "a", b, "--fail-above", "5")

    assert result.exit_code == 2
    assert "--fail-above cannot tell: no step was timed" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_single_pass_cannot_fail_a_check(tmp_path: Path) -> None:
    a, b = decode(tmp_path / "a", [10]), decode(tmp_path / "b", [20])

    assert run(a, b, "--fail-above", "5").exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Missing argument"),
        ([DECODE_RUN], "Missing argument"),
        ([DECODE_RUN, "gone"], "no such folder"),
        ([DECODE_RUN, DECODE_RUN, "--fail-above", "-1"], "--fail-above"),
        ([DECODE_RUN, DECODE_RUN, "--fail-above", "much"], "--fail-above"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(words: list[str | Path], said: str) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_out_that_is_no_comparison_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years")

    result = run(DECODE_RUN, DECODE_RUN, "--out", tmp_path)

    assert result.exit_code == 2
    assert "is no comparison" in result.stderr
    assert (tmp_path / "thesis.txt").read_text() == "years"


def test_committed_runs_give_a_folder_and_the_same_numbers_for_machines(tmp_path: Path) -> None:
    out = tmp_path / "out"

    result = run(DECODE_RUN, PREFILL_RUN, "--out", out, "--json")

    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told == json.loads((out / "compare.json").read_bytes())
    # Both prefill the same prompt; only one decodes.
    assert [(pair["name"], pair["phase"]) for pair in told["pairs"]] == [
        ("prefill step", "prefill")
    ]
    assert [side["phase"] for side in told["only_a"]] == ["decode"]
    assert sorted(path.name for path in out.iterdir()) == [
        "compare.html", "compare.json", "compare.md",
    ]  # fmt: skip
    assert told["answer"] in (out / "compare.md").read_text()


def test_a_run_against_itself_shows_no_difference_and_may_be_written_again(
    tmp_path: Path,
) -> None:
    for _ in range(2):
        result = run(DECODE_RUN, DECODE_RUN, "--out", tmp_path / "out")
        assert result.exit_code == 0

    words = " ".join(result.stdout.split())
    assert "No difference that this data can show: a decode step takes 33.4 ms in A, 33.4" in words
    assert "A and B are the same run." in words
    found = compared(DECODE_RUN, DECODE_RUN)
    assert found.changes == []
    assert {role.difference_ns for role in found.pairs[0].roles} == {0}
    assert all(one.a == one.b for one in (*found.quantities, *found.limits))
    assert (tmp_path / "out" / "roles.svg").is_file()
