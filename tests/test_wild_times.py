"""Variants of clocks and void rows: a time is exact or unknown, and never stretches a window."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.frames import BASE_NS, Row, event, trace_text
from tests.wild import FIRST_NS, Said, healthy, kernel, launch, looked_at, said, well
from whichwall.schemas.activities import Activities

EPOCH_US = BASE_NS // 1000
ONLY_BASE = b'  "baseTimeNanoseconds": %d,\n' % BASE_NS
VOID = {"invalid_gpu_rows": 1}
# The numbers of `healthy` without its first, its second or its last kernel.
LEFT: dict[int, Said] = {
    0: Said(3, 150_000, 250_000, {"launch": 100_000}, {}),
    1: Said(3, 150_000, 350_000, {"launch": 200_000}, {}),
    3: Said(3, 150_000, 250_000, {"launch": 100_000}, {}),
}


def written(rows: list[Row], time: str, length: str, *, base: bytes | None = ONLY_BASE) -> bytes:
    """Return a trace's text with each time written by a pattern, as a bare number."""
    made = [
        row | {"ts": f"@{time.format(int(float(str(row['ts']))))}@",
               "dur": f"@{length.format(int(float(str(row['dur']))))}@"}
        for row in rows
    ]  # fmt: skip
    text = trace_text(made).replace(b'"@', b"").replace(b'@"', b"").replace(b'\\"', b'"')
    return text if base == ONLY_BASE else text.replace(ONLY_BASE, base or b"")


@pytest.mark.parametrize(
    "void",
    [
        {"ts": 0, "dur": 0}, {"ts": "0.000", "dur": "0.000"}, {"dur": -5}, {"dur": "-0.001"},
        {"dur": -(2**63)}, {"dur": "-9223372036854775.808"}, {"dur": 2**63 - 1}, {"dur": 9.2e12},
        {"dur": "3600000000"}, {"dur": 100_000}, {"ts": "86400000000.000"}, {"ts": -5e9},
        {"ts": 9.2e15}, {"ts": 10**18}, {"dur": "1" + "0" * 400},
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_row_that_cannot_be_an_activity_is_left_out_and_counted(
    tmp_path: Path, void: Row, place: int
) -> None:
    rows = healthy()
    rows[3 * place + 2] |= void
    assert said(tmp_path, trace_text(rows)) == replace(LEFT[place], codes=VOID)


@pytest.mark.parametrize("category", ["gpu_memcpy", "gpu_memset"])
@pytest.mark.parametrize("device", [0, 1])
def test_void_copies_and_other_devices_void_rows_are_counted_too(
    tmp_path: Path, category: str, device: int
) -> None:
    void = [kernel(0, 90, 0, device=device) | {"cat": category, "ts": 0, "dur": 0},
            kernel(50, 91, device=device) | {"cat": category, "dur": -4}]  # fmt: skip
    rows = [*healthy(), *void, launch(1, 90), launch(2, 91)]
    assert said(tmp_path, trace_text(rows)) == well(invalid_gpu_rows=2)


def test_only_void_rows_are_no_activity_and_not_lost_ones(tmp_path: Path) -> None:
    rows = [r | {"ts": 0, "dur": 0} if r["cat"] == "kernel" else r for r in healthy()]
    assert said(tmp_path, trace_text(rows)) == Said(
        0, None, None, None, {"no_gpu_activity": None, "invalid_gpu_rows": 4}
    )


@pytest.mark.parametrize(
    ("time", "length", "base", "first_ns", "codes"),
    [
        ("{}.000", "{}.000", ONLY_BASE, FIRST_NS, {}),
        ("{}", "{}", ONLY_BASE, FIRST_NS, {"integer_microseconds": None}),
        ("{}.123456", "{}.0", ONLY_BASE, FIRST_NS + 123, {}),
        ("1751410836{:06d}", "{}", None, FIRST_NS, {"integer_microseconds": None}),
        ("1751410836{:06d}", "{}", ONLY_BASE, FIRST_NS, {"integer_microseconds": None}),
        ("1751410836{:06d}.007", "{}.0", None, FIRST_NS + 7, {}),
        ("1751410836{:06d}.007", "{}.0", ONLY_BASE, FIRST_NS + 7, {}),
        ("1751410836{:06d}.5", "{}.0", None, FIRST_NS + 500, {}),
        ("1.751410836{:06d}e15", "{}", None, FIRST_NS, {}),
        ('"1751410836{:06d}.007"', '"{}.0"', None, FIRST_NS + 7, {}),
        ("{}.000", "{}.000", None, 10_000, {"unknown_time_origin": None}),
        ("{}", "{}", None, 10_000, {"integer_microseconds": None, "unknown_time_origin": None}),
        ("{}.000", "{}.000", b'  "baseTimeNanoseconds": 0,\n', 10_000,
         {"unknown_time_origin": None}),
        ("{}.000", "{}.000", b'  "baseTimeNanoseconds": "%d",\n' % BASE_NS, FIRST_NS, {}),
        ("{}.000", "{}.000", b'"other": {"baseTimeNanoseconds": 77},' + ONLY_BASE, FIRST_NS, {}),
        ("{}.000", "{}.000", b'"note": "\\"baseTimeNanoseconds\\": 5,",' + ONLY_BASE, FIRST_NS, {}),
    ],
)  # fmt: skip
def test_each_form_of_time_is_exact(
    tmp_path: Path, time: str, length: str, base: bytes | None, first_ns: int,
    codes: dict[str, None],
) -> None:  # fmt: skip
    text = written(healthy(), time, length, base=base)
    assert said(tmp_path, text) == well(**codes)
    inputs = looked_at(tmp_path, text)
    assert inputs.activities[Activities.start_ns].to_list() == [
        first_ns + 100_000 * i for i in range(4)
    ]


@pytest.mark.parametrize("apart_s", [0, 1, 5 * 3600, 7_889_238, -7_889_238, 40 * 86_400])
def test_ranks_are_put_in_time_by_their_own_bases(tmp_path: Path, apart_s: int) -> None:
    bases = [BASE_NS, BASE_NS + apart_s * 10**9]
    texts = [
        trace_text(healthy(), distributedInfo={"rank": rank, "world_size": 2}).replace(
            b"%d" % BASE_NS, b"%d" % base
        )
        for rank, base in enumerate(bases)
    ]
    inputs = looked_at(tmp_path, *texts)
    starts = inputs.activities.group_by(Activities.rank).agg(pl.col(Activities.start_ns).min())
    assert sorted(starts.rows()) == [(rank, base + 10_000) for rank, base in enumerate(bases)]
    assert said(tmp_path, *texts) == Said(
        8, [200_000] * 2, [350_000] * 2, [{"launch": 150_000}] * 2, {}
    )


def test_a_rank_without_a_base_is_alone_in_that(tmp_path: Path) -> None:
    texts = [trace_text(healthy(), distributedInfo={"rank": rank}) for rank in (0, 1)]
    inputs = looked_at(tmp_path, texts[0], texts[1].replace(ONLY_BASE, b""))
    assert [r.time_origin for r in inputs.manifest.ranks] == ["epoch", "unknown"]
    assert {d.code: d.message[:8] for d in inputs.summary.diagnostics}[
        "unknown_time_origin"
    ] == "t1.json:"


@pytest.mark.parametrize(
    ("info", "rank", "said_missing"),
    [
        ({"rank": 3, "world_size": 8}, 3, False),
        ({"rank": "3", "world_size": "8"}, 3, False),
        ({"backend": "nccl", "pg_config": [{"rank": 7, "ranks": [0, 1]}], "rank": 2}, 2, False),
        ({"backend": "nccl", "pg_config": [{"rank": 7, "ranks": [0, 1]}]}, 0, True),
        ({"rank": -1}, 0, True),
        ({"rank": None}, 0, True),
        ({}, 0, True),
        (None, 0, True),
    ],
)
@pytest.mark.parametrize("behind", [False, True])
def test_the_rank_is_the_files_own_wherever_it_stands(
    tmp_path: Path, info: object, rank: int, said_missing: bool, behind: bool
) -> None:
    text = trace_text(healthy(), distributedInfo=info)
    if behind:
        line = next(one for one in text.splitlines(keepends=True) if b"distributedInfo" in one)
        text = text.replace(line, b"").replace(b'  "traceName"', line + b'  "traceName"')
    inputs = looked_at(tmp_path, text)
    assert inputs.manifest.ranks[0].rank == rank
    assert ("missing_rank" in {d.code for d in inputs.summary.diagnostics}) == said_missing


@pytest.mark.parametrize("dur", ["-1500000000000000.000", "-9e12", "9e14", "1e300"])
@pytest.mark.parametrize("category", ["cuda_runtime", "cpu_op", "overhead", "user_annotation"])
def test_what_was_imported_can_be_analyzed_whatever_a_host_rows_length(
    tmp_path: Path, dur: str, category: str
) -> None:
    rows = [*healthy(), event(category, "x", "50.000", dur, args={"correlation": 77})]
    found = said(tmp_path, trace_text(rows))
    assert replace(found, codes={}) == well()
