"""The page of a served run: its sentence, its tables and charts, and what it says of failures."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.experiment_runs import MS, a_run, came, completion, point
from tests.frames import MANIFEST, Row
from whichwall.analyze.analysis import analyze, analyze_to_folder
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.comparison import compare_runs
from whichwall.analyze.predict_chart import measured_points
from whichwall.analyze.predict_setting import Options, setting
from whichwall.analyze.report.figures import charts
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.markdown import render_markdown
from whichwall.analyze.report.page import render_html
from whichwall.schemas.completions import Completions
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.manifest import Manifest, ServerFacts
from whichwall.schemas.points import Points
from whichwall.schemas.summary import Summary
from whichwall.schemas.table import Table
from whichwall.schemas.tokens import Tokens

HOSTILE = "</td><script>alert(1)</script> | `x`"
Tables = dict[type[Table], list[Row]]


def tables(sizes: Sequence[tuple[int, int, int]], *more: Row) -> Tables:
    """Return points of (lanes, prompt, new tokens), each with 8 answers a lane."""
    completions: list[Row] = list(more)
    tokens: list[Row] = []
    for number, (lanes, _, new) in enumerate(sizes):
        for index in range(8 * lanes):
            start = 1_790_000_000 * 10**9 + index // lanes * 20 * MS
            told = {"lane": index % lanes, "start_ns": start, "new_tokens": new}
            completions.append(completion(number, index, **told))
            tokens += came(number, index, *(10 + step * lanes for step in range(new)))
    points = [
        point(n, engine="openai", batch=lanes, prompt_tokens=prompt, new_tokens=new)
        for n, (lanes, prompt, new) in enumerate(sizes)
    ]
    return {Points: points, Completions: completions, Tokens: tokens}


def manifest(**more: object) -> Manifest:
    server = ServerFacts(url="http://127.0.0.1:8000", model=HOSTILE, is_here=True, made_by="vllm")
    return msgspec.structs.replace(MANIFEST, server=server, **more)


def analyzed(path: Path, mode: str, rows: Tables, **more: object) -> ReportInputs:
    return analyze(a_run(path / "run", mode, rows, gpus=(), manifest=manifest(**more)))


def pages(inputs: ReportInputs) -> tuple[str, str]:
    drawn = charts(inputs)
    pictures = {name: svg(chart) for name, chart in drawn.items()}
    return render_markdown(inputs, drawn), render_html(inputs, drawn, pictures)


SIZES = {
    "decode": [(1, 64, 3)],
    "prefill": [(1, 64, 1)],
    "batch": [(1, 64, 3), (4, 64, 3)],
    "prompt": [(1, 8, 1), (1, 64, 1)],
    "output": [(1, 64, 1), (1, 64, 5)],
}
LOST = completion(0, 99, outcome="dropped", ttft_ns=None, reason=HOSTILE)


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("decode", "One request at a time, 64 tokens in and 3 out: the first token comes after "
         "10.0 ms (TTFT) and each further one 1.00 ms later (TPOT); 150 tokens/s in all."),
        ("prefill", "One request at a time, 64 tokens in and 1 out: the first token comes after "
         "10.0 ms (TTFT); 50.0 tokens/s in all."),
        ("batch", "From 1 to 4 requests in flight the server goes from 150 to 600 tokens/s in all; "
         "the first token comes after 10.0 ms, each further one after 1.00 ms at first and 4.00 ms "
         "in the end."),
        ("prompt", "From a prompt of 8 to 64 tokens the first token comes after 10.0 ms."),
        ("output", "One request at a time, 64 tokens in and 5 out: the first token comes after "
         "10.0 ms (TTFT) and each further one 1.00 ms later (TPOT); 250 tokens/s in all."),
    ],
)  # fmt: skip
def test_one_sentence_says_what_a_client_gets(mode: str, answer: str, tmp_path: Path) -> None:
    assert analyzed(tmp_path, mode, tables(SIZES[mode])).summary.answer == answer


@pytest.mark.parametrize("mode", list(SIZES))
def test_nothing_of_a_page_is_more_than_text(mode: str, tmp_path: Path) -> None:
    markdown, page = pages(analyzed(tmp_path, mode, tables(SIZES[mode], LOST)))

    assert "<script>alert" not in markdown
    assert "<script>alert" not in page.replace(r"\u003c", "<").partition('id="charts"')[0]
    for table in re.split(r"\n(?!\|)", markdown):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({len(re.split(r"(?<!\\)\|", line)) for line in lines}) <= 1


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("decode", ["waits"]), ("prefill", ["waits"]), ("prompt", ["waits"]), ("output", ["waits"]),
        ("batch", ["waits", "throughput", "interactivity"]),
    ],
)  # fmt: skip
def test_waits_are_drawn_and_of_requests_in_flight_the_rates(
    mode: str, names: list[str], tmp_path: Path
) -> None:
    assert list(charts(analyzed(tmp_path, mode, tables(SIZES[mode])))) == names


def test_requests_that_failed_are_said_and_have_a_table_of_their_own(tmp_path: Path) -> None:
    inputs = analyzed(tmp_path, "decode", tables(SIZES["decode"], LOST))

    assert (inputs.summary.answer or "").endswith(" 1 of 9 requests was not answered (1 dropped).")
    assert "| 1 | dropped | 1 of 9 |" in pages(inputs)[0]


def test_a_run_in_which_nothing_was_answered_says_so_and_why(tmp_path: Path) -> None:
    rows: Tables = {
        Points: [point(0, outcome="refused", reason="1 request refused (status 503)")],
        Completions: [completion(0, 0, outcome="refused", ttft_ns=None, reason="status 503")],
    }
    inputs = analyzed(tmp_path, "decode", rows)

    assert inputs.summary.answer == (
        "Not known: the only request was not answered (1 request refused (status 503))."
    )
    assert charts(inputs) == {}
    pages(inputs)


def test_a_server_that_went_away_is_said(tmp_path: Path) -> None:
    gone = Diagnostic("server_gone", "error", None, "the server stopped answering: lost")
    inputs = analyzed(tmp_path, "decode", tables(SIZES["decode"]), diagnostics=[gone])

    assert (inputs.summary.answer or "").endswith("The server stopped answering: lost.")


def test_there_is_no_verdict_without_a_trace_and_that_is_said(tmp_path: Path) -> None:
    inputs = analyzed(tmp_path, "decode", tables(SIZES["decode"]))

    assert inputs.summary.verdict.wall is None
    assert (inputs.summary.verdict.reason or "").startswith("no trace was recorded")
    assert [d.code for d in inputs.summary.diagnostics] == []
    assert "Which wall the server stands at is not known" in pages(inputs)[0]


def test_waits_of_the_first_point_are_the_runs_own(tmp_path: Path) -> None:
    summary = analyzed(tmp_path, "decode", tables(SIZES["decode"])).summary

    assert (summary.ttft_ns, summary.tpot_ns) == (10 * MS, 1 * MS)


@pytest.mark.parametrize("mode", list(SIZES))
def test_the_summary_is_read_back_as_it_was_written(mode: str, tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", mode, tables(SIZES[mode], LOST), gpus=(), manifest=manifest())
    _, report = analyze_to_folder(run.path)

    text = (report / "summary.json").read_bytes()
    assert msgspec.json.decode(text, type=Summary).encode() == text


def test_requests_in_flight_are_points_on_the_chart_of_a_prediction(tmp_path: Path) -> None:
    rows = tables([(1, 64, 3), (4, 64, 3)])
    run = a_run(tmp_path / "run", "batch", rows, gpus=(), manifest=manifest())
    bare = msgspec.structs.replace(run.manifest, model=None)
    (run.path / "run.json").write_bytes(bare.encode())

    points, where = measured_points(run.path, setting(Options(model="llama-3.1-8b", gpu="A10")))

    assert points.rows() == [(64, "openai", 1, 1000.0, 150.0), (64, "openai", 4, 250.0, 600.0)]
    assert where == f"{HOSTILE} at http://127.0.0.1:8000"


def test_two_served_runs_can_be_compared(tmp_path: Path) -> None:
    for name in "ab":
        a_run(tmp_path / name, "batch", tables(SIZES["batch"]), gpus=(), manifest=manifest())

    found = compare_runs(tmp_path / "a", tmp_path / "b")

    assert found.encode()
