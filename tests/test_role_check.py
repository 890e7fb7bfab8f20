"""How right roles are: the innermost range around a launch says what is right for its kernel."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests import frames as f
from tests.report_inputs import report_inputs
from tests.test_role_traces import TRUTHS, imported, needs_traces, truth_of
from whichwall.analyze.report.markdown import render_markdown
from whichwall.analyze.report.role_check import accuracy, checked
from whichwall.analyze.role_check import check_roles, role_ranges, summed, verdicts
from whichwall.analyze.trace import read_trace
from whichwall.cli import main
from whichwall.collect.collect import collect
from whichwall.collect.importer import import_run
from whichwall.collect.options import CollectOptions
from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.ops import Ops
from whichwall.schemas.points import Points
from whichwall.schemas.ranges import GPU_ANNOTATION, Ranges
from whichwall.schemas.role_ranges import range_name, read_range
from whichwall.schemas.role_verdicts import RoleVerdicts
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import open_run
from whichwall.schemas.summary import OPERATORS, Confusion, RoleCheck

HALF = RoleCheck(
    time_right=0.75,
    kernels_right=0.5,
    layers_right=None,
    kernels=2,
    confusion=[
        Confusion("norm", "norm", right=True, kernels=1, busy_ns=300),
        Confusion("attention|softmax", "rope", right=False, kernels=1, busy_ns=100),
    ],
)


def role(name: str, layer: int | None = None) -> f.Row:
    """Return a row of `Roles`; what is not compared is plain."""
    return {
        Roles.rank: 0, Roles.start_ns: 0, Roles.dur_ns: 0, Roles.name: "k", Roles.role: name,
        Roles.layer: layer, Roles.method: r.BY_SHAPE, Roles.confidence: 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("accepted", "layer", "text"),
    [
        ((r.NORM,), None, "whichwall.role::norm"),
        ((r.ATTENTION, r.SOFTMAX), 11, "whichwall.role::attention|softmax::layer 11"),
        ((), 2, "whichwall.role::?::layer 2"),
    ],
)
def test_the_text_of_a_range_is_read_as_it_was_written(
    accepted: tuple[str, ...], layer: int | None, text: str
) -> None:
    assert range_name(accepted, layer) == text
    assert read_range(text) == (accepted, layer)


def test_another_range_names_no_role() -> None:
    assert read_range("whichwall::decode#0") is None


def test_the_innermost_range_around_the_launch_counts() -> None:
    # Four kernels: right, in the wrong role and layer, in a range that does not know, outside.
    activities = f.linked(
        [
            f.kernel(100, 200, 1),
            f.kernel(200, 230, 2),
            f.kernel(230, 240, 3),
            f.kernel(240, 250, 4),
        ],
        [f.call(10, 11, 1), f.call(21, 22, 2), f.call(31, 32, 3), f.call(90, 91, 4)],
    )
    found = f.table(Roles, role(r.SOFTMAX, 3), role(r.ROPE, 4), role(r.NORM), role(r.SAMPLING))
    ranges = f.table(
        Ranges,
        f.annotation(0, 50, range_name((r.ATTENTION, r.SOFTMAX), 3)),
        f.annotation(20, 25, range_name((r.NORM,), 3)),
        f.annotation(30, 35, range_name((), 3)),
        f.annotation(0, 300, "whichwall::decode#0"),
        f.annotation(0, 300, range_name((r.NORM,), None), kind=GPU_ANNOTATION),
    )

    assert verdicts(activities, found, role_ranges(ranges)).rows(named=True) == [
        {
            RoleVerdicts.expected: "attention|softmax", RoleVerdicts.expected_layer: 3,
            RoleVerdicts.found: "softmax", RoleVerdicts.found_layer: 3,
            RoleVerdicts.right: True, RoleVerdicts.busy_ns: 100,
        },
        {
            RoleVerdicts.expected: "norm", RoleVerdicts.expected_layer: 3,
            RoleVerdicts.found: "rope", RoleVerdicts.found_layer: 4,
            RoleVerdicts.right: False, RoleVerdicts.busy_ns: 30,
        },
    ]  # fmt: skip


def test_a_launch_on_another_thread_is_in_no_range() -> None:
    activities = f.linked([f.kernel(100, 200, 1)], [f.call(10, 11, 1, tid=9)])
    ranges = f.table(Ranges, f.annotation(0, 50, range_name((r.NORM,), None)))

    assert verdicts(activities, f.table(Roles, role(r.NORM)), ranges).is_empty()


def test_time_in_which_two_activities_ran_counts_once() -> None:
    activities = f.linked(
        [f.kernel(100, 200, 1), f.kernel(150, 220, 2), f.kernel(160, 210, 3)],
        [f.call(10, 11, 1), f.call(12, 13, 2), f.call(14, 15, 3)],
    )
    found = f.table(Roles, *(role(r.NORM) for _ in range(3)))
    ranges = f.table(Ranges, f.annotation(0, 50, range_name((r.NORM,), None)))

    assert verdicts(activities, found, ranges)[RoleVerdicts.busy_ns].to_list() == [100, 20, 0]


def test_shares_and_confusions_add_up() -> None:
    rows: list[tuple[object, ...]] = [
        ("norm", None, "norm", None, True, 200),
        ("norm", 0, "norm", 0, True, 100),
        ("attention|softmax", 0, "rope", 1, False, 100),
    ]
    judged = f.table(
        RoleVerdicts, *(dict(zip(RoleVerdicts.COLUMNS, row, strict=True)) for row in rows)
    )

    assert summed(judged) == RoleCheck(
        time_right=0.75,
        kernels_right=2 / 3,
        layers_right=0.5,
        kernels=3,
        confusion=[
            Confusion("norm", "norm", right=True, kernels=2, busy_ns=300),
            Confusion("attention|softmax", "rope", right=False, kernels=1, busy_ns=100),
        ],
    )


def test_nothing_judged_has_no_shares() -> None:
    assert summed(f.table(RoleVerdicts)) == RoleCheck(None, None, None, 0, [])


@needs_traces
@pytest.mark.parametrize("path", TRUTHS[::4], ids=lambda p: p.name.removesuffix(".truth.csv"))
def test_ranges_judge_as_the_recorded_truth_does(path: Path, tmp_path: Path) -> None:
    name = path.name.removesuffix(".truth.csv")
    run, trace = imported(path.with_name(f"{name}.json.gz"), tmp_path, None)
    truth = truth_of(path, run.manifest.ranks[0].base_ns or 0)
    rows = trace.activities.select(
        Activities.correlation, Activities.start_ns, Activities.launch_start_ns,
        Activities.launch_end_ns, Activities.launch_tid,
    )  # fmt: skip
    # A range around each launch says what is right for the kernel.
    ranges = f.table(
        Ranges,
        *(
            f.annotation(start, end, range_name(sorted(truth[key, at]), None), tid=tid)
            for key, at, start, end, tid in rows.iter_rows()
        ),
    )

    judged = verdicts(trace.activities, trace.roles, ranges)
    expected = [
        found in truth[key, at]
        for (key, at, *_), found in zip(rows.iter_rows(), trace.roles[Roles.role], strict=True)
    ]
    assert judged[RoleVerdicts.right].to_list() == expected
    # One stream: nothing overlaps but by rounding.
    assert judged[RoleVerdicts.busy_ns].sum() == pytest.approx(
        trace.activities[Activities.dur_ns].sum(), rel=1e-3
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Collect one run with a check of roles."""
    out = tmp_path_factory.mktemp("runs") / "checked"
    return collect(
        CollectOptions(
            model="tiny", device="cpu", prompt_tokens=16, new_tokens=8, quick=True,
            check_roles=True, out=out,
        )
    )  # fmt: skip


def test_the_check_is_a_point_of_its_own_that_says_so(run: Path) -> None:
    manifest, opened = read_manifest(run), open_run(run)

    assert manifest.role_check is not None
    assert manifest.role_check.point == 1
    assert manifest.command.endswith(" --check-roles")
    assert opened.points.select(Points.point, Points.reason).collect().rows() == [
        (0, None), (1, "recorded only to check roles by"),
    ]  # fmt: skip
    in_check = role_ranges(opened.ranges.collect())
    assert in_check[Ranges.point].unique().to_list() == [1]
    assert sorted(path.name for path in run.glob("*.json")) == ["run.json"]


def test_analyses_leave_the_check_alone_unless_asked_for_it(run: Path) -> None:
    opened = open_run(run)

    assert read_trace(opened).ops[Ops.point].unique().to_list() == [0]
    assert read_trace(opened, aside=opened.manifest.role_check).ops[
        Ops.point
    ].unique().to_list() == [1]
    assert set(read_trace(opened).marks["point"].to_list()) == {0}


def test_without_gpu_activity_the_operators_are_judged(run: Path) -> None:
    opened = open_run(run)

    found = check_roles(opened, read_trace(opened))
    assert found is not None
    assert (found.of, found.time_right, found.layers_right) == (OPERATORS, 1.0, 1.0)
    counts = {pair.expected: pair.kernels for pair in found.confusion}
    # Two steps of four layers.
    assert {role: counts[role] for role in (r.QKV_PROJ, r.O_PROJ, r.LM_HEAD, r.SAMPLING)} == {
        r.QKV_PROJ: 24, r.O_PROJ: 8, r.LM_HEAD: 2, r.SAMPLING: 2,
    }  # fmt: skip


def test_analyze_prints_how_right_roles_are(run: Path, tmp_path: Path) -> None:
    said = CliRunner().invoke(main, ["analyze", str(run), "--out", str(tmp_path / "report")])

    assert said.exit_code == 0
    assert [line.split(":")[0] for line in said.output.splitlines()].count("Roles checked") == 1
    summary = json.loads((tmp_path / "report" / "summary.json").read_bytes())
    assert summary["role_check"]["of"] == "operators"
    # The check's own steps are no steps of the run.
    assert [(g["point"], g["count"]) for g in summary["steps"]["groups"]] == [(0, 4), (0, 0)]


def test_a_trace_without_ranges_of_roles_has_no_check(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(f.trace_text([f.event("cpu_op", "aten::add", 1, 1)]))
    opened = open_run(import_run([tmp_path / "t.json"], tmp_path / "run"))

    assert check_roles(opened, read_trace(opened)) is None


def test_an_imported_trace_with_ranges_is_checked_itself(tmp_path: Path) -> None:
    name = range_name((r.NORM,), None)
    events = [
        f.event("user_annotation", name, 10, 20),
        f.event("cpu_op", "aten::native_layer_norm", 11, 5),
        f.launch_event(12, 1, 1),
        f.gpu_event("vectorized_layer_norm_kernel", 20, 4, 1),
        f.gpu_event("outside", 30, 4, 2),
    ]
    (tmp_path / "t.json").write_bytes(f.trace_text(events))
    opened = open_run(import_run([tmp_path / "t.json"], tmp_path / "run"))

    found = check_roles(opened, read_trace(opened))
    assert found is not None
    assert [(c.expected, c.kernels, c.busy_ns) for c in found.confusion] == [(r.NORM, 1, 4000)]
    assert (found.kernels, found.not_judged) == (1, 1)


def with_check(check: RoleCheck | None) -> str:
    inputs = report_inputs()
    summary = msgspec.structs.replace(inputs.summary, role_check=check)
    return render_markdown(replace(inputs, summary=summary), ())


def test_a_report_tells_the_accuracy_and_the_mistakes_first() -> None:
    text = with_check(HALF)

    section = text.split("## How right the roles are here")[1].split("\n## ")[0]
    assert "75.00 % of the GPU time" in section
    assert [line for line in section.splitlines() if line.startswith("| `")] == [
        "| `attention or softmax` | `rope` | wrong | 1 | 100 ns |",
        "| `norm` | `norm` | right | 1 | 300 ns |",
    ]
    assert "How right" not in with_check(None)


def test_only_all_of_it_is_called_all() -> None:
    nearly = msgspec.structs.replace(HALF, time_right=0.99999, kernels_right=1.0)

    assert accuracy(nearly).startswith("99.99 % of the GPU time and 100.00 % of 2 kernels")


def test_a_terminal_gets_one_line_where_roles_were_checked() -> None:
    inputs = report_inputs()
    known = msgspec.structs.replace(inputs.summary, role_check=HALF)

    assert checked(inputs) == []
    assert checked(replace(inputs, summary=known)) == [
        "Roles checked: 75.00 % of the GPU time and 50.00 % of 2 kernels and copies have an "
        "accepted role."
    ]
