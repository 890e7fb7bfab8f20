import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.report_inputs import group, report_inputs, summary, without_gpu
from whichwall.analyze.report.answer import answer
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.markdown import render_markdown
from whichwall.analyze.report.write import write_report
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.points import Points
from whichwall.schemas.run import frame
from whichwall.schemas.summary import Shares, StepsSummary, Summary, Verdict

ALL = ["shares", "timeline", "roles", "layers", "gaps", "clocks", "binding"]
HOSTILE = (
    "<script>alert(1)</script>",
    "a | b `c` ](javascript:alert(3))",
    "</td><img src=x onerror=alert(2)>\nnext | line",
)


def with_summary(**changes: object) -> ReportInputs:
    changed: Summary = msgspec.structs.replace(summary(), **changes)
    return replace(report_inputs(), summary=changed)


def table_rows(markdown: str) -> list[list[str]]:
    """Return the cells of every table row, cut where a code host cuts them."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


def test_the_answer_comes_first_and_says_verdict_why_and_what_is_left() -> None:
    assert answer(report_inputs()) == (
        "tiny on one NVIDIA H200 stands at the launches wall: the GPU is idle for 76 % of a clean "
        "decode step of 50.0 µs, waiting to be told what to do next. The GPU works 12.0 µs per "
        "step, 3.00 × its floor of 4.00 µs; without this wall a step is predicted to take 13.3 µs."
    )
    assert (
        render_markdown(report_inputs(), ALL)
        .splitlines()[2]
        .startswith("tiny on one NVIDIA H200 stands at the **launches** wall")
    )


def test_sections_stand_in_the_order_of_the_argument() -> None:
    headings = re.findall(r"^## (.*)$", render_markdown(report_inputs(), ALL), re.MULTILINE)

    assert headings == [
        "What was run",
        "Where the clean decode step goes",
        "The decode step, traced and clean",
        "What the GPU works on",
        "Where the GPU is idle",
        "Clocks and power",
        "What the profiler costs",
        "The floor: the least a step can take",
        "Under the roof of the card",
        "What would confirm it",
        "What to know about these numbers",
    ]


def test_every_figure_named_is_shown_and_no_other() -> None:
    shown = re.findall(r"\]\((\w+)\.svg\)", render_markdown(report_inputs(), ["gaps", "roles"]))

    assert shown == ["roles", "gaps"]


def test_traced_and_clean_stand_side_by_side() -> None:
    rows = {row[0].strip(): row[1:] for row in table_rows(render_markdown(report_inputs(), ALL))}

    assert rows["step"] == [" 82.0 µs ", " 50.0 µs (p10 48.0 µs, p90 56.0 µs) "]
    assert rows["busy fraction"] == [" 14.6 % ", " 24.0 % "]
    assert rows["median gap"] == [" 26.0 µs ", " not known "]


def test_names_stay_inside_their_cells_and_without_effect() -> None:
    markdown = render_markdown(report_inputs(names=HOSTILE), ALL)

    tables = re.split(r"\n(?!\|)", markdown)
    for table in tables:
        assert len({len(row) for row in table_rows(table)}) <= 1
    outside_code = re.sub(r"(`+).*?\1", "", markdown)
    assert "<script" not in outside_code
    assert "<img" not in outside_code
    assert "](javascript" not in outside_code


def test_without_a_clean_time_the_reason_stands_where_the_number_would() -> None:
    untimed = msgspec.structs.replace(
        group(), clean_step_ns_median=None, clean_step_ns_p10=None, clean_step_ns_p90=None,
        clean_from=None, busy_fraction_clean=None, shares=None, tokens_per_s=None,
    )  # fmt: skip
    inputs = with_summary(
        steps=StepsSummary("annotation", {"decode": 2}, [untimed]),
        verdict=Verdict(None, None, [], None, None, None, "no clean step time"),
        diagnostics=[Diagnostic("no_clean_timing", "warning", None, "the trace has no passes.")],
    )

    markdown = render_markdown(inputs, ["timeline"])

    assert "**No verdict**: no clean step time." in markdown
    assert "Not known. The trace has no passes." in markdown
    assert "The clean step is not known. The trace has no passes." in markdown
    assert "| GPU busy | 12.0 µs | not known |" in markdown


def test_launches_named_without_a_clean_time_say_what_the_trace_shows() -> None:
    untimed = msgspec.structs.replace(
        group(), clean_step_ns_median=None, busy_fraction_clean=None, shares=None
    )
    inputs = with_summary(
        steps=StepsSummary("annotation", {"decode": 2}, [untimed]),
        verdict=Verdict("launches", None, ["no clean step time; 66 %"], None, None, None, None),
    )

    assert answer(inputs).startswith(
        "tiny on one NVIDIA H200 stands at the launches wall: in a traced decode step of 82.0 µs "
        "the GPU would be idle for 66 % even if every gap were cut to a third"
    )
    assert "No clean step time; 66 %." in render_markdown(inputs, [])


def test_a_mixed_step_names_all_its_parts() -> None:
    shares = Shares(launches=0.4, kernels=0.16, bytes=0.08)
    inputs = with_summary(verdict=Verdict("mixed", shares, [], "run both", None, None, None))

    assert answer(inputs).startswith(
        "tiny on one NVIDIA H200 stands at no single wall: no part of a clean decode step of "
        "50.0 µs is at least 50 % of it (launches 40 %, kernels 16 %, bytes 8 %)."
    )


def test_a_run_without_a_gpu_tells_operator_time_and_no_gpu_number() -> None:
    markdown = render_markdown(without_gpu(report_inputs()), ["roles"])

    assert "**No verdict**: no GPU: this run used none." in markdown
    assert "## What the CPU works on" in markdown
    assert "| `norm` | 3.00 ms | 75.0 % | 4 |" in markdown
    assert "Not known: no GPU activity is on record." in markdown
    assert "GPU busy" not in markdown


def test_samples_are_told_with_what_held_the_clock_down() -> None:
    markdown = render_markdown(report_inputs(), ALL)

    assert "| held back by | software power cap in 25.0 % of samples |" in markdown
    assert "| power (instant) | 136 W |" in markdown
    assert "| energy | not known |" in markdown


def test_a_ceiling_says_where_it_comes_from() -> None:
    markdown = render_markdown(report_inputs(), ALL)

    assert "- bandwidth: 4,189 GB/s, measured on this device" in markdown
    assert "- matmul rate: 989 TFLOP/s, from the datasheet: not measured" in markdown


def test_several_groups_and_devices_get_a_row_each() -> None:
    one = summary()
    second = msgspec.structs.replace(group(), rank=1, point=1, shares=None)
    device = msgspec.structs.replace(one.devices[0], rank=1)
    inputs = with_summary(
        steps=StepsSummary("annotation", {"decode": 4}, [group(), second]),
        devices=[one.devices[0], device],
    )

    markdown = render_markdown(inputs, ALL)

    rows = [row for row in table_rows(markdown) if len(row) == 14]
    assert [row[:4] for row in rows[2:]] == [
        [" 0 ", " 0 ", " 0 ", " decode "],
        [" 1 ", " 1 ", " 0 ", " decode "],
    ]
    assert rows[2][-1] == " launches 76.0 % "
    assert "## All devices" in markdown


def test_points_that_did_not_finish_say_why() -> None:
    points = frame(
        Points,
        [
            {"point": 0, "outcome": "done"},
            {"point": 1, "outcome": "out_of_memory", "reason": "batch 512 needs 90 GB"},
        ],
    )

    markdown = render_markdown(replace(report_inputs(), points=points), [])

    assert "| 1 | out_of_memory | batch 512 needs 90 GB |" in markdown


def test_diagnostics_stand_in_order_of_gravity() -> None:
    inputs = with_summary(
        diagnostics=[
            Diagnostic("no_shapes", "info", None, "No shapes."),
            Diagnostic("truncated", "error", 1, "Cut off."),
        ]
    )

    lines = render_markdown(inputs, []).splitlines()

    severe = lines.index("| error | Cut off. | 1 | `truncated` |")
    assert lines[severe + 1] == "| info | No shapes. | – | `no_shapes` |"


@pytest.mark.parametrize("gpu", [True, False])
def test_a_report_is_its_page_its_text_and_the_pictures_it_has(
    tmp_path: Path, *, gpu: bool
) -> None:
    inputs = report_inputs() if gpu else without_gpu(report_inputs())

    write_report(inputs, tmp_path)

    pictures = {f"{name}.svg" for name in (ALL if gpu else ["roles"])}
    assert {path.name for path in tmp_path.iterdir()} == {"report.md", "report.html", *pictures}
    shown = re.findall(r"\]\((\w+\.svg)\)", (tmp_path / "report.md").read_text("utf-8"))
    assert set(shown) == pictures


def test_a_trace_without_anything_still_makes_a_report(tmp_path: Path) -> None:
    inputs = without_gpu(report_inputs())
    nothing = replace(
        inputs,
        summary=msgspec.structs.replace(
            inputs.summary, model=None, cpu_roles=[], floors=None, floors_by_phase=[], tax=None,
            tpot_ns=None, diagnostics=[],
        ),
        manifest=msgspec.structs.replace(inputs.manifest, model=None, ranks=[]),
        ops=inputs.ops.clear(),
        passes=inputs.passes.clear(),
        points=inputs.points.clear(),
    )  # fmt: skip

    write_report(nothing, tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {"report.md", "report.html"}
    assert "Nothing stood out" in (tmp_path / "report.md").read_text("utf-8")
