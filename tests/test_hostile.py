"""Input that lies, and destinations that hold what is not ours."""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from tests.frames import event, gpu_event, launch_event, trace_text
from tests.test_folder import write_run
from tests.test_usage import refused, run
from tests.test_validate import put
from whichwall.analyze.analysis import analyze
from whichwall.analyze.tables import read_table
from whichwall.collect.importer import default_out, import_run
from whichwall.collect.kineto.source import Source
from whichwall.schemas.destination import put_in_place, put_new
from whichwall.schemas.errors import InputError, UsageError
from whichwall.schemas.passes import Passes
from whichwall.schemas.run import open_run

ROWS = [launch_event("1.000", "2.000", 1), gpu_event("k", "5.000", "2.000", 1)]
GOLDEN = ROOT / "tests" / "data" / "golden-v1"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.json"
    path.write_bytes(trace_text(ROWS))
    return path


@pytest.mark.parametrize("kind", ["cuda_runtime", "cpu_op", "overhead", "user_annotation", "Trace"])
@pytest.mark.parametrize(("ts", "dur"), [(9.2e15, 9.2e15), (-9.2e15, 9.2e15), (9.2e15, 1)])
def test_a_time_that_64_bits_cannot_add_to_costs_only_its_own_row(
    kind: str, ts: float, dur: float, tmp_path: Path
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(trace_text([*ROWS, event(kind, "ProfilerStep#1", ts, dur)]))
    (device,) = analyze(open_run(import_run([path], tmp_path / "run"))).summary.devices
    assert (device.gpu_activities, device.window_ns) == (1, 2000)


def test_overwrite_never_deletes_a_trace_that_lies_in_the_run(trace: Path, tmp_path: Path) -> None:
    out = import_run([trace], tmp_path / "run")
    inside = trace.rename(out / "t.json")
    assert "t.json" in refused(run("import", inside, "--out", out, "--overwrite"))
    assert inside.is_file()


def test_a_report_is_not_replaced_where_it_would_take_a_file_with_it(
    trace: Path, tmp_path: Path
) -> None:
    out = import_run([trace], tmp_path / "run")
    (out / "report").mkdir()
    (out / "report" / "summary.json").write_text("{}")
    (out / "report" / "notes.md").write_text("mine")
    assert "notes.md" in refused(run("analyze", out))
    assert "report/notes.md" in refused(run("import", trace, "--out", out, "--overwrite"))
    assert (out / "report" / "notes.md").read_text() == "mine"


def test_a_destination_through_its_own_name_is_replaced_whole(trace: Path, tmp_path: Path) -> None:
    out = import_run([trace], tmp_path / "run")
    import_run([trace], out / ".." / "run", overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "t.json"]


def test_a_destination_that_came_to_be_in_the_meantime_is_left_alone(tmp_path: Path) -> None:
    made, out = tmp_path / "made", tmp_path / "out"
    for folder in (made, out):
        folder.mkdir()
        (folder / folder.name).touch()
    with pytest.raises(UsageError, match="exists by now"):
        put_new(made, out)
    put_in_place(made, out)
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["out", "out/made"]


def test_one_file_is_not_two_ranks(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(trace)
    for again in (trace, tmp_path / "link.json"):
        assert "same file" in refused(run("import", trace, again, "--out", tmp_path / "run"))


def test_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    words = ("import", tmp_path / "pipe", "--out", tmp_path / "run")
    assert "pipe or a device" in refused(run(*words))


@pytest.mark.parametrize("name", [".json", "..json", "...json.gz"])
def test_a_trace_without_a_name_still_goes_below_traces(name: str) -> None:
    assert default_out(Path(name)) == Path("traces/trace")


def test_a_name_too_long_and_one_that_is_no_utf8_are_refused(trace: Path, tmp_path: Path) -> None:
    assert "too long" in refused(run("import", trace, "--out", tmp_path / ("a" * 300)))
    assert "not UTF-8" in refused(run("import", trace, "--out", f"{tmp_path}/\udcff"))


def test_fields_without_samples_are_refused(trace: Path, tmp_path: Path) -> None:
    words = ("import", trace, "--out", tmp_path / "run", "--sample-fields", "timestamp")
    assert "--samples" in refused(run(*words))


def test_damage_at_the_end_of_a_gzip_file_costs_nothing_before_it(tmp_path: Path) -> None:
    text = trace_text(ROWS)
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(text)[:-8] + bytes(8))
    source = Source(path)
    assert b"".join(source.blocks()) == text
    assert source.truncated


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (Passes.phase, "dancing"), (Passes.stage, "x" * 100_000), (Passes.wall_ns, 2**63 - 1),
        (Passes.start_ns, -(2**63)), (Passes.index, None),
    ],
)  # fmt: skip
def test_a_table_that_lies_is_called_damaged(column: str, value: object, tmp_path: Path) -> None:
    for path in GOLDEN.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    table = pq.read_table(tmp_path / "passes.parquet")
    field = table.schema.field(column).with_nullable(nullable=True)
    lies = pa.array([value] * table.num_rows, field.type)
    put(tmp_path, Passes, table.set_column(table.schema.get_field_index(column), field, lies))
    with pytest.raises(InputError, match=r"table passes is damaged .*; copy or collect") as caught:
        read_table(open_run(tmp_path), Passes)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:-1],
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:100] + raw[200:],
        # In the header of the first page: polars panics there, and says so in lines of its own.
        lambda raw: raw[:14] + bytes([raw[14] ^ 0x55]) + raw[15:],
    ],
)
def test_a_damaged_table_is_one_line_and_nothing_else_on_stderr(
    damage: Callable[[bytes], bytes], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path / "run") / "kernels.parquet"
    path.write_bytes(damage(path.read_bytes()))
    assert str(path) in refused(run("analyze", tmp_path / "run"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text",
    [b"\xef\xbb\xbf%s", b'{"n": 99999999999999999999, %s', b'{"n": "\\ud800", %s'],
)
def test_a_manifest_that_is_odd_json_is_refused(text: bytes, tmp_path: Path) -> None:
    whole = (GOLDEN / "run.json").read_bytes()
    rest = whole if text.endswith(b"bf%s") or text.startswith(b"\xef") else whole.lstrip()[1:]
    (tmp_path / "run.json").write_bytes(text.replace(b"%s", rest))
    assert "run.json" in refused(run("analyze", tmp_path))


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_importing_leaves_nothing_and_says_one_line(
    sign: signal.Signals, tmp_path: Path
) -> None:
    # Whoever runs the tests may ignore signals, as nohup does; the program is tried without.
    code = f"""
import os, signal, sys
signal.signal({int(sign)}, signal.default_int_handler if {int(sign)} == 2 else signal.SIG_DFL)
from whichwall.cli import main
from whichwall.schemas.folder import RunWriter
RunWriter.finish = lambda *_: os.kill(os.getpid(), {int(sign)})
main()
"""
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": []}))
    done = subprocess.run(
        [sys.executable, "-c", code, "import", str(path), "--out", str(tmp_path / "run")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "whichwall: interrupted; nothing was left behind\n"
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]
