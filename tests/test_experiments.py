"""Each experiment from a written run to its page: the answer, its table, and what is not known."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.experiment_runs import BEGIN_NS, MS, Clock, S, a_run, completion, limit, point, sampled
from tests.frames import MANIFEST, Row
from tests.golden import GPU
from whichwall.analyze.analysis import analyze, analyze_to_folder
from whichwall.analyze.charts.theme import svg
from whichwall.analyze.report.answer import answer
from whichwall.analyze.report.experiments.modes import EXPERIMENTS
from whichwall.analyze.report.figures import charts
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.markdown import render_markdown
from whichwall.analyze.report.page import render_html
from whichwall.schemas import ceilings, experiments
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.completions import DROPPED, Completions
from whichwall.schemas.manifest import Gpu
from whichwall.schemas.parts import ATTENTION, EMBEDDING, Parts
from whichwall.schemas.passes import AFTER, DECODE, MATMUL, PREFILL, PROFILED, Passes
from whichwall.schemas.points import (
    FIRST,
    HOT,
    LATER,
    LONG_GENERATION,
    OUT_OF_MEMORY,
    REFUSED,
    RESTED,
    SAMPLER_OFF,
    SAMPLER_ON,
    UNIQUE,
    Points,
)
from whichwall.schemas.requests import FREE, GENERATE, WAITING, Requests
from whichwall.schemas.samples import Samples
from whichwall.schemas.summary import Summary
from whichwall.schemas.table import Table

Tables = dict[type[Table], list[Row]]
HOSTILE = "</td><script>alert(1)</script> | `x`"


def context() -> Tables:
    clock = Clock()
    passes = [
        row
        for number, size in enumerate((128, 512, 2048))
        for row in clock.passes(number, [2 * MS] * 3, context_tokens=size)
    ]
    passes += clock.request(3, 3 * MS, [2 * MS] * 32 + [3 * MS] * 32)
    points = [point(n, context_tokens=size) for n, size in enumerate((128, 512, 2048))]
    return {Points: [*points, point(3, label=LONG_GENERATION)], Passes: passes}


def prompt() -> Tables:
    clock = Clock()
    walls = {16: 2 * MS, 64: 2 * MS, 256: 2 * MS, 1024: 8 * MS}
    return {
        Points: [point(n, prompt_tokens=size, new_tokens=1) for n, size in enumerate(walls)],
        Passes: [
            row
            for n, (size, wall) in enumerate(walls.items())
            for row in clock.passes(n, [wall] * 3, PREFILL, tokens=size, context_tokens=0)
        ],
    }


def output() -> Tables:
    clock = Clock()
    return {
        Points: [point(n, new_tokens=new) for n, new in enumerate((1, 5))],
        Passes: [
            row
            for n, new in enumerate((1, 5))
            for row in clock.request(n, 4 * MS, [2 * MS] * (new - 1))
        ],
    }


def batch() -> Tables:
    clock = Clock()
    walls = {1: 2 * MS, 2: 2 * MS, 4: 2 * MS, 8: 4 * MS}
    points = [point(n, batch=size) for n, size in enumerate(walls)]
    out = {Points.batch: 16, Points.outcome: OUT_OF_MEMORY, Points.reason: "38 GiB"}
    return {
        Points: [*points, point(4, **out)],
        Passes: [
            row
            for n, (size, wall) in enumerate(walls.items())
            for row in clock.passes(n, [wall] * 3, batch=size, tokens=size)
        ],
    }


def ladder() -> Tables:
    clock = Clock()
    refused = {Points.outcome: REFUSED, Points.reason: "no compiler"}
    return {
        Points: [
            point(0, label="eager"),
            point(1, label="cuda-graph", setup_ns=2 * S),
            point(2, label="compile", **refused),
        ],
        Passes: [*clock.passes(0, [20 * MS] * 3), *clock.passes(1, [2 * MS] * 3)],
    }


def attention() -> Tables:
    clock = Clock()
    refused = {Points.outcome: REFUSED, Points.reason: HOSTILE}
    return {
        Points: [
            point(0, label="math"),
            point(1, label="flash"),
            point(2, label="cudnn", **refused),
        ],
        Passes: [
            *clock.request(0, 6 * MS, [2 * MS] * 3),
            *clock.request(1, 3 * MS, [2 * MS] * 3),
        ],
    }


def request() -> Tables:
    clock = Clock()
    passes = clock.request(0, 4 * MS, [2 * MS] * 3)
    loops = ((WAITING, 10 * MS), (FREE, 10 * MS), (GENERATE, 15 * MS))
    rows: list[Row] = [
        {
            Requests.point: number,
            Requests.rank: 0,
            Requests.visit: 0,
            Requests.loop: loop,
            Requests.start_ns: BEGIN_NS + number * S,
            Requests.prefill_ns: 4 * MS if loop == WAITING else None,
            Requests.model_ns: took,
            Requests.prompt_tokens: 16,
            Requests.new_tokens: 4,
            Requests.tokens_sha256: "ab",
        }
        for number, (loop, took) in enumerate(loops)
    ]
    points = [point(number, label=loop) for number, (loop, _) in enumerate(loops)]
    return {Points: points, Passes: passes, Requests: rows}


def limits() -> Tables:
    return {
        Points: [point(0)],
        Ceilings: [
            limit(ceilings.READ, 4080.0, "GB/s"),
            limit(ceilings.MATMUL, 750.0, "TFLOP/s", "bfloat16", sm_clock_mhz=1755.0),
            limit(ceilings.MATMUL_SUSTAINED, 600.0, "TFLOP/s", "bfloat16"),
            limit(ceilings.ROUND_TRIP, 14.0, "us"),
        ],
    }


def clocks(*, clock_mhz: float = 1440.0, reasons: int = 0x4) -> Tables:
    clock = Clock()
    passes = clock.passes(0, [100 * MS] * 10, MATMUL, batch=None, tokens=None)
    soak = clock.soak(1, 20, 100 * MS, MATMUL)
    hot = clock.passes(1, [150 * MS] * 10, MATMUL, batch=None, tokens=None)
    worked = sampled(BEGIN_NS + S, 22, sm_clock_mhz=clock_mhz, throttle_reasons=reasons)
    return {
        Points: [point(0, label=RESTED), point(1, label=HOT)],
        Passes: [*passes, *soak, *hot],
        Samples: [*sampled(BEGIN_NS, 1), *worked],
    }


def tax() -> Tables:
    clock = Clock()
    passes = [
        row
        for process in range(3)
        for row in (
            *clock.passes(0, [2 * MS] * 3, visit=process),
            *clock.passes(1, [2 * MS] * 3, visit=process),
            *clock.passes(0, [4 * MS] * 3, stage=PROFILED, visit=process),
            *clock.passes(0, [3 * MS] * 3, stage=AFTER, visit=process),
        )
    ]
    return {Points: [point(0, label=SAMPLER_OFF), point(1, label=SAMPLER_ON)], Passes: passes}


def prefix() -> Tables:
    rows = []
    for visit, ttfts in enumerate(((100, 101, 10), (102, 103, 11), (104, 104, 12))):
        for number, ttft in enumerate(ttfts):
            told = {
                Completions.visit: visit,
                Completions.ttft_ns: ttft * MS,
                Completions.prompt_tokens: 80,
                Completions.prefix_tokens: 64 if number else 0,
                Completions.cached_tokens: 64 if number == 2 else 0,
            }
            rows.append(completion(number, visit, **told))
    rows.append(completion(0, 9, outcome=DROPPED, reason=HOSTILE))
    points = [point(n, label=label) for n, label in enumerate((UNIQUE, FIRST, LATER))]
    return {Points: points, Completions: rows}


MADE = {
    experiments.CONTEXT: context,
    experiments.PROMPT: prompt,
    experiments.OUTPUT: output,
    experiments.BATCH: batch,
    experiments.LADDER: ladder,
    experiments.ATTENTION: attention,
    experiments.REQUEST: request,
    experiments.CEILINGS: limits,
    experiments.CLOCKS: clocks,
    experiments.TAX: tax,
    experiments.PREFIX: prefix,
}


def analyzed(path: Path, mode: str, tables: Tables, gpus: Sequence[Gpu] = (GPU,)) -> ReportInputs:
    return analyze(a_run(path / "run", mode, tables, gpus=gpus))


def pages(inputs: ReportInputs) -> tuple[str, str]:
    drawn = charts(inputs)
    pictures = {name: svg(chart) for name, chart in drawn.items()}
    return render_markdown(inputs, drawn), render_html(inputs, drawn, pictures)


def rows_of(markdown: str, *, first: str) -> list[list[str]]:
    """Return the rows of the table whose first column has a name."""
    (table,) = re.findall(rf"^\| {re.escape(first)} \|.*\n\|.*\n((?:\|.*\n)+)", markdown, re.M)
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()
    ]


def test_every_experiment_has_a_page() -> None:
    assert set(MADE) == set(EXPERIMENTS) == set(experiments.MODES)


ANSWERS = {
    experiments.CONTEXT: "A decode step takes 2.00 ms with 128 tokens in the cache and 2.00 ms "
    "with 2,048 (1.00 ×), with no clear rise, while its floor goes from 51.0 ns to 168 ns. In one "
    "answer of 65 tokens the last 32 steps take 3.00 ms each and the first 2.00 ms (1.50 ×).",
    experiments.PROMPT: "The first token takes 2.00 ms with 16 tokens of prompt and 8.00 ms with "
    "1,024 tokens of prompt, flat up to 256 tokens, while its floor goes from 45.0 ns to 639 ns. "
    "The highest rate is 0.0525 TFLOP/s, with 1,024 tokens of prompt.",
    experiments.OUTPUT: "The first token takes 4.00 ms, whatever the answer's length, and "
    "each further token 2.00 ms: an answer of 5 tokens takes 12.0 ms, 417 tokens/s.",
    experiments.BATCH: "Up to 4 sequences a step costs about what it costs for one sequence "
    "(2.00 ms and 2.00 ms), which gives 2,000 tokens/s in all; 8 sequences take 2.00 × that step "
    "and give 2,000 tokens/s. Memory ran out at 16 sequences.",
    experiments.LADDER: "The fastest rung is cuda-graph: 2.00 ms a step, 45,455 × its floor of "
    "44.0 ns; eager takes 20.0 ms, 10.0 × as long. Setting it up took 2.00 s. Not timed: compile "
    "(refused: no compiler).",
    experiments.ATTENTION: "This card accepts 2 of 3 attention backends for this model; the "
    "fastest prefill is flash, 3.00 ms, the slowest math, 6.00 ms; the fastest decode is math, "
    f"2.00 ms. Not timed: cudnn (refused: {HOSTILE}).",
    experiments.REQUEST: "A request of 16 tokens in and 4 out takes 10.0 ms (no tokenizer: text "
    "is not part of it): prefill 40 %, decode steps 60 %. Waiting for each pass to end costs "
    "nothing that can be seen (1.00 ×). The library's generate takes 1.50 × the loop by hand. "
    "All loops made the same tokens.",
    experiments.CEILINGS: "This device reads memory at 4,080 GB/s (85 % of the datasheet), "
    "multiplies matrices at 750 TFLOP/s in bfloat16 (76 % of the datasheet, sustained 80 % of "
    "that). A round trip to the GPU takes 14.0 µs.",
    experiments.CLOCKS: "The card slowed itself: the driver gives software power cap as the "
    "reason, in 100 % of samples at the end of the soak; the same matmul pass takes 100 ms "
    "rested and 150 ms hot (1.50 ×), at 1,980 MHz and 1,440 MHz.",
    experiments.TAX: "Under the profiler a decode step takes 2.00 × what it takes before, after "
    "it 1.50 × what it takes before; with the sampler of clocks and power on it takes 1.00 × what "
    "it takes without (no difference that this data can show).",
    experiments.PREFIX: "With 64 tokens of 80 shared, the first token of a later request comes "
    "after 11.0 ms instead of 102 ms, 0.108 × (95 % interval 0.0900 × to 0.128 ×) the wait of a "
    "prompt of its own. The first request with a prefix waits 103 ms, 1.01 × (95 % interval "
    "0.992 × to 1.02 ×) that of a prompt of its own. By its own count 64 tokens of a later prompt "
    "came from the cache. 1 request was not answered.",
}


def test_what_a_sampler_costs_is_said_to_be_unknown_where_there_was_none(tmp_path: Path) -> None:
    tables = tax()
    tables[Passes] = [row for row in tables[Passes] if row[Passes.point] == 0]

    assert answer(analyzed(tmp_path, experiments.TAX, tables)).endswith(
        "; with the sampler of clocks and power on it takes a time that is not known."
    )


@pytest.mark.parametrize("mode", list(MADE))
def test_one_sentence_answers_the_question_first_everywhere(mode: str, tmp_path: Path) -> None:
    inputs = analyzed(tmp_path, mode, MADE[mode]())

    assert inputs.summary.answer == ANSWERS[mode]
    assert answer(inputs) == ANSWERS[mode]


@pytest.mark.parametrize("mode", list(MADE))
def test_nothing_of_a_page_is_more_than_text(mode: str, tmp_path: Path) -> None:
    markdown, page = pages(analyzed(tmp_path, mode, MADE[mode]()))

    assert "<script>alert" not in markdown
    assert "<script>alert" not in page.replace(r"\u003c", "<").partition('id="charts"')[0]
    for table in re.split(r"\n(?!\|)", markdown):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        assert len({len(re.split(r"(?<!\\)\|", line)) for line in lines}) <= 1


@pytest.mark.parametrize("mode", list(MADE))
def test_a_run_without_a_trace_is_not_blamed_for_it(mode: str, tmp_path: Path) -> None:
    summary = analyzed(tmp_path, mode, MADE[mode]()).summary

    assert summary.verdict.wall is None
    assert summary.verdict.reason is not None
    assert summary.verdict.reason.startswith("no trace was recorded")
    assert [d.code for d in summary.diagnostics] == []


@pytest.mark.parametrize("mode", list(MADE))
def test_a_run_of_which_nothing_was_timed_says_what_is_not_known(mode: str, tmp_path: Path) -> None:
    refused = point(0, **{Points.outcome: REFUSED, Points.reason: "no room"})

    inputs = analyzed(tmp_path, mode, {Points: [refused]}, gpus=())

    assert inputs.summary.answer is not None
    assert inputs.summary.answer.startswith("Not known: ")
    pages(inputs)


@pytest.mark.parametrize("mode", list(MADE))
def test_a_run_on_a_cpu_says_which_answers_need_a_gpu(mode: str, tmp_path: Path) -> None:
    markdown, _ = pages(analyzed(tmp_path, mode, MADE[mode](), gpus=()))

    assert "This run used no GPU" in markdown


@pytest.mark.parametrize("mode", list(MADE))
def test_the_summary_of_an_experiment_is_read_back_as_it_was_written(
    mode: str, tmp_path: Path
) -> None:
    _, report = analyze_to_folder(a_run(tmp_path / "run", mode, MADE[mode]()).path)

    text = (report / "summary.json").read_bytes()
    assert msgspec.json.decode(text, type=Summary).encode() == text


def test_out_of_memory_is_said_in_the_row_of_its_batch(tmp_path: Path) -> None:
    markdown, _ = pages(analyzed(tmp_path, experiments.BATCH, batch()))

    last = rows_of(markdown, first="batch")[-1]
    assert last[:3] == ["16", "out of memory: 38 GiB", "–"]


def test_the_knee_of_a_batch_sweep_is_in_the_summary(tmp_path: Path) -> None:
    found = analyzed(tmp_path, experiments.BATCH, batch()).summary.knee

    assert found is not None
    assert found.at == 4


def test_a_step_that_never_rises_is_said_to_be_free_as_far_as_was_measured(tmp_path: Path) -> None:
    clock = Clock()
    flat = {
        Points: [point(n, batch=2**n) for n in range(3)],
        Passes: [r for n in range(3) for r in clock.passes(n, [2 * MS], batch=2**n, tokens=2**n)],
    }

    said = analyzed(tmp_path, experiments.BATCH, flat).summary.answer

    assert said is not None
    assert "with no clear rise up to the largest batch timed: " in said


def test_a_card_that_keeps_its_clock_did_not_slow_itself(tmp_path: Path) -> None:
    tables = clocks(clock_mhz=1980.0, reasons=0)

    said = analyzed(tmp_path, experiments.CLOCKS, tables).summary.answer

    assert said is not None
    assert said.startswith("The card did not slow itself: the driver gives no reason")


def test_the_floor_of_a_sweep_is_said_to_be_missing_with_its_reason(tmp_path: Path) -> None:
    markdown, _ = pages(analyzed(tmp_path, experiments.CONTEXT, context(), gpus=()))

    assert "The floor is not known: no bandwidth is known for this device" in markdown


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        (experiments.CONTEXT, ["context", "drift"]),
        (experiments.PROMPT, ["prompt", "rate"]),
        (experiments.OUTPUT, ["output"]),
        (experiments.BATCH, ["batch", "throughput", "interactivity"]),
        (experiments.LADDER, ["ladder"]),
        (experiments.ATTENTION, ["attention"]),
        (experiments.REQUEST, ["request"]),
        (experiments.CEILINGS, ["ceilings"]),
        (experiments.CLOCKS, ["clocks"]),
        (experiments.TAX, ["tax"]),
    ],
)
def test_each_chart_drawn_is_shown_on_the_page(mode: str, names: list[str], tmp_path: Path) -> None:
    inputs = analyzed(tmp_path, mode, MADE[mode]())

    assert list(charts(inputs)) == names
    assert re.findall(r"\]\((\w+)\.svg\)", render_markdown(inputs, charts(inputs))) == names


def test_a_decode_page_adds_its_parts_up_and_states_its_rates(tmp_path: Path) -> None:
    parts: list[Row] = [
        {
            Parts.point: 0,
            Parts.rank: 0,
            Parts.phase: DECODE,
            Parts.part: part,
            Parts.calls: calls,
            Parts.repeats: 9,
            Parts.start_ns: BEGIN_NS,
            Parts.wall_ns: wall,
        }
        for part, calls, wall in ((EMBEDDING, 1, MS), (ATTENTION, 2, MS // 4))
    ]
    tables: Tables = {
        Points: [point(0)],
        Passes: Clock().request(0, 4 * MS, [2 * MS] * 3),
        Parts: parts,
    }

    inputs = analyzed(tmp_path, DECODE, tables)
    markdown, _ = pages(inputs)

    rows = rows_of(markdown, first="part of a decode pass")
    assert [[row[0], row[3]] for row in rows] == [
        ["embedding", "1.00 ms"], ["attention", "500 µs"], ["**sum**", "1.50 ms"],
        ["clean pass", "2.00 ms"], ["remainder", "500 µs"],
    ]  # fmt: skip
    rates = markdown.partition("## Rates")[2].partition("\n## ")[0]
    assert [row[1] for row in rows_of(rates, first="point")] == [DECODE, PREFILL]
    assert [(rate.phase, rate.step_ns) for rate in inputs.summary.rates] == [
        (DECODE, 2 * MS), (PREFILL, 4 * MS),
    ]  # fmt: skip


def test_a_mode_without_a_question_of_its_own_is_asked_for_its_wall(tmp_path: Path) -> None:
    inputs = analyzed(tmp_path, DECODE, {Points: [point(0)], Passes: Clock().passes(0, [2 * MS])})

    assert MANIFEST.mode not in EXPERIMENTS
    assert inputs.summary.answer is not None
    assert inputs.summary.answer.startswith("No verdict: no trace was recorded")
