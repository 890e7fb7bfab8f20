"""Input made to do harm: bombs, links, tables that lie, names that are markup."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from tests.frames import event, trace_text
from tests.test_validate import state
from tests.wild import healthy, kernel, launch, op, packed, said, well
from whichwall.analyze.analysis import analyze, analyze_to_folder
from whichwall.analyze.tables import read_table
from whichwall.collect.importer import import_run
from whichwall.schemas.errors import InputError, UsageError, WhichwallError
from whichwall.schemas.folder import RunWriter, file_facts, read_schema
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.overheads import Overheads
from whichwall.schemas.run import open_run

NAMES = [
    "<script>alert(1)</script>", "</td><img src=x onerror=alert(2)>", "</script><!--",
    "a | b\n| c |\n|---|", "`x` ``y``", "[t](javascript:alert(3))", "![i](http://e.example/x.png)",
    "\x1b[31mred\x1b]0;title\x07", "\u202eevil\u202c \u2066iso\u2069", "\u200b\u200d\ufeffzero",
    "\x00nul", "\x85next\u2028line\u2029s", "\x9b31mC1", "\U000e0041tag", "# head\n## two",
    "'\"><svg onload=alert(4)>", "&lt;b&gt;", "t" * 60_000 + "<b>", " " * 500,
]  # fmt: skip
MARKUP = ["<script>alert", "<img src=x", "<svg onload", "<b onmouseover", "t" * 1000]
BOMB_BYTES = 64 << 20
# Blocks, the largest event and what a Python with Arrow in it takes by itself.
LARGEST_PEAK_KB = 400_000
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")
STATUS = Path("/proc/self/status")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "t.json").write_bytes(trace_text(healthy()))
    return import_run([tmp_path / "t.json"], tmp_path / "run")


def test_no_name_is_markup_or_control_in_any_report(tmp_path: Path) -> None:
    rows = []
    for i, name in enumerate(NAMES):
        rows += [op(100 * i, i + 1, name), launch(100 * i + 5, i + 1)]
        rows += [kernel(100 * i + 10, i + 1, 40, name=name)]
        rows += [event("user_annotation", name, f"{100 * i}.000", "80.000")]
        rows += [event("overhead", name, f"{100 * i + 60}.000", "30.000")]
    gpus = [{"id": i, "name": name} for i, name in enumerate(NAMES)]
    path = tmp_path / "<img src=x onerror=alert(9)> \u202e|`.json"
    path.write_bytes(trace_text(rows, deviceProperties=gpus, cuda_runtime_version=NAMES[0]))
    out = import_run([path], tmp_path / "run <b onmouseover=alert(7)>|`")
    _, report = analyze_to_folder(out)
    page, text = (report / "report.html").read_text(), (report / "report.md").read_text()
    pictures = "".join(p.read_text() for p in report.glob("*.svg"))
    assert [m for m in MARKUP if m in page + pictures] == []
    shown = set(page + text + pictures) - {"\n", "\t"}
    assert [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Co")] == []
    # In Markdown a name stands in a code span only, and no table row is broken by one.
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)
    bare = CODE_SPAN.sub("", text)
    assert [m for m in MARKUP if m in bare] == []


@pytest.mark.skipif(not STATUS.exists(), reason="only Linux tells a process its peak")
@pytest.mark.parametrize("junk", [b" ", b'"', b'{"ph":'])
def test_a_bomb_costs_no_more_memory_than_a_few_blocks(tmp_path: Path, junk: bytes) -> None:
    head, sound, tail = trace_text(healthy()).partition(b'"traceEvents": [')
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(head + sound + tail[: tail.rindex(b"\n  ],")] + b",")
        for _ in range(BOMB_BYTES >> 20):
            file.write(junk * ((1 << 20) // len(junk)))
        file.write(tail[tail.rindex(b"\n  ],") :])
    code = f"""
from pathlib import Path
from whichwall.collect.importer import import_run
import_run([Path({str(path)!r})], Path({str(tmp_path / "run")!r}))
print(Path({str(STATUS)!r}).read_text().partition("VmHWM:")[2].split()[0])
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".types")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert int(done.stdout) < LARGEST_PEAK_KB
    found = analyze(open_run(tmp_path / "run"))
    assert found.activities.height == 4


@pytest.mark.parametrize("number", [-(2**63), 2**62, 2**63, 1e300, True, {}, [], "x" * 9000, None])
def test_whatever_a_file_says_of_its_gpu_and_its_length_the_run_can_be_opened(
    tmp_path: Path, number: object
) -> None:
    gpu = dict.fromkeys(("id", "name", "numSms", "totalGlobalMem", "computeMajor"), number)
    span = event("Trace", "PyTorch Profiler (0)", "50.000", number, pid="Spans")
    text = trace_text(
        [*healthy(), span], deviceProperties=[gpu, number], cuda_driver_version=number
    )
    found = said(tmp_path, text)
    assert found == well(**found.codes)
    assert found.codes.keys() <= {"dropped_events", "repaired_json"}


def test_gzip_within_gzip_is_refused_by_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t0\.json: no traceEvents found .*x1f"):
        said(tmp_path, packed(packed(trace_text(healthy()))))


def test_thousands_of_broken_events_are_each_mended(tmp_path: Path) -> None:
    rows = healthy(500)
    text = trace_text(rows).replace(b'"device": 0,', b'"device": 0, "bytes": N/A,')
    assert said(tmp_path, text) == well(500, repaired_json=500)


def test_a_name_of_a_megabyte_and_many_names_stay_whole(tmp_path: Path) -> None:
    rows = healthy(300)
    rows[2]["name"] = "<" * (1 << 20)
    assert said(tmp_path, trace_text(rows)) == well(300)


@pytest.mark.parametrize("name", ["run.json", "kernels.parquet", "kernels.rank3.parquet"])
def test_a_pipe_or_a_device_in_a_run_is_not_read(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with pytest.raises(InputError, match=r"pipe or a device|is missing"):
        analyze(open_run(run))
    (run / name).unlink()
    (run / name).symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"pipe or a device|is missing"):
        analyze(open_run(run))


def test_a_manifest_of_any_size_is_refused(run: Path) -> None:
    with (run / "run.json").open("ab") as file:
        file.truncate(1 << 30)
    with pytest.raises(InputError, match=r"run\.json: is larger than any"):
        open_run(run)


def test_a_report_is_not_written_through_a_link(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run / "report").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="report"):
        analyze_to_folder(run)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["../victim", "/etc/passwd", "report/../../victim"])
def test_a_manifest_that_lists_files_elsewhere_moves_and_deletes_none(
    run: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "victim").write_text("mine")
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace('"kernels.parquet"', f'"{name}"'))
    manifest = read_manifest(run)
    with (
        pytest.raises(InputError, match="no file of its own folder"),
        RunWriter(tmp_path / "whole") as writer,
    ):
        writer.adopt(run, manifest)
    analyze_to_folder(run)
    with pytest.raises(UsageError, match=r"kernels\.parquet, which is no part of a run"):
        import_run([tmp_path / "t.json"], run, overwrite=True)
    assert (tmp_path / "victim").read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "t.json", "victim"]


def vouch(run: Path, name: str, rows: int) -> None:
    """Let the manifest name a file as it is now, so that it is read and not just compared."""
    files = {name: file_facts(run / name, rows)}
    state(run, lambda m: msgspec.structs.replace(m, files={**m.files, **files}))


def rewritten(run: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    table = pq.read_table(run / "kernels.parquet")
    pq.write_table(change(table), run / "kernels.parquet", compression="zstd")
    vouch(run, "kernels.parquet", table.num_rows)
    return run


def with_names(table: pa.Table, names: list[str]) -> pa.Table:
    at = table.schema.get_field_index("name")
    return table.set_column(at, table.schema.field(at), pa.array(names))


LIES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a million equal rows": lambda t: t.take(pa.repeat(pa.scalar(0), 1 << 20)),
    "names of 100 MB": lambda t: with_names(t, ["x" * (100 << 20)] * 4),
    "times as text": lambda t: t.set_column(
        t.schema.get_field_index("dur_ns"), "dur_ns", t["dur_ns"].cast(pa.string())
    ),
    "a column less": lambda t: t.drop_columns(["start_ns"]),
    "another table": lambda t: t.replace_schema_metadata({"whichwall.table": "ops"}),
    "no name": lambda t: t.replace_schema_metadata(None),
    "a newer version": lambda t: t.replace_schema_metadata(
        {"whichwall.table": "kernels", "whichwall.version": "99"}
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_table_that_lies_is_refused_before_it_is_unpacked(run: Path, lie: str) -> None:
    with pytest.raises(InputError, match=r"kernels\.parquet"):
        read_schema_of(rewritten(run, LIES[lie]))


def read_schema_of(run: Path) -> None:
    path = run / "kernels.parquet"
    Kernels.check(read_schema(path), str(path))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.slice(0, 0),
        lambda t: pa.concat_tables([t, t]),
        lambda t: t.select(t.column_names[::-1]),
        lambda t: t.append_column("more", t["name"]),
        lambda t: t.set_column(
            t.schema.get_field_index("device"), t.schema.field("device"),
            pa.array([None, -1, 2**31 - 1, -(2**31)], pa.int32()),
        ),
        lambda t: t.set_column(
            t.schema.get_field_index("start_ns"), t.schema.field("start_ns"),
            pa.array([2**63 - 1, -(2**63), 0, 1]),
        ),
    ],
)  # fmt: skip
def test_an_odd_table_of_the_right_form_is_analyzed(
    run: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    assert analyze(open_run(rewritten(run, change))).summary.run == "run"


def test_a_file_damaged_at_any_byte_is_read_or_refused(run: Path) -> None:
    good = (run / "overheads.parquet").read_bytes()
    refused = 0
    # Every byte flipped, in turn; some make the reader panic instead of fail.
    for at in range(4, len(good), 3):
        (run / "overheads.parquet").write_bytes(
            good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :]
        )
        vouch(run, "overheads.parquet", 1)
        try:
            read_table(open_run(run), Overheads)
        except WhichwallError:
            refused += 1
    assert refused > 0


def test_a_run_copied_over_itself_by_links_is_the_same_run(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")
    for path in run.glob("*.parquet"):
        (tmp_path / "copy" / path.name).unlink()
        (tmp_path / "copy" / path.name).symlink_to(path)
    assert analyze(open_run(tmp_path / "copy")).activities.height == 4
