"""The sampler against an nvidia-smi that the test writes: rows, refusals, deaths."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from whichwall.collect import sampler as module
from whichwall.collect.sampler import Sampler
from whichwall.collect.smi_fields import QUERY
from whichwall.schemas.samples import Samples

UUID = "GPU-e4c4a7b1-c86c-fa3d-5ae8-70662e48e4fe"
INTERVAL_MS = 20
# Far beyond what anything here takes; only a hang reaches it.
PATIENCE_S = 20.0

PREAMBLE = f"""\
#!{sys.executable} -S
import datetime, sys, time

FIELDS = {list(QUERY)!r}
given = sys.argv[1:]

def rows(count, pause={INTERVAL_MS / 1000}):
    query = next(a for a in given if a.startswith("--query-gpu=")).partition("=")[2].split(",")
    for _ in range(count):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        values = {{"timestamp": now, "index": "0", "uuid": "{UUID}", "pstate": "P0"}}
        values["clocks_event_reasons.active"] = "0x0000000000000004"
        print(", ".join(values.get(name, "50") for name in query), flush=True)
        time.sleep(pause)

if "--help-query-gpu" in given:
    print("\\n".join(f'"{{name}}"\\nSome words.\\n' for name in FIELDS))
    sys.exit()
"""
FOREVER = "rows(10**6)"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a folder for a fake nvidia-smi first on the path."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "nvidia-smi"


def write(path: Path, body: str) -> None:
    path.write_text(PREAMBLE + textwrap.dedent(body) + "\n")
    path.chmod(0o755)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_samples_cover_the_work_and_one_lies_after_it(fake: Path) -> None:
    write(fake, FOREVER)

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        began_ns = time.time_ns()
        time.sleep(5 * INTERVAL_MS / 1000)
        ended_ns = time.time_ns()
        found = sampler.finish()

    received = [int(str(row[Samples.received_ns])) for row in found.rows]
    assert received[0] < began_ns
    assert received[-1] > ended_ns
    assert found.diagnostics == []
    assert found.facts is not None
    assert found.facts.fields == list(QUERY)
    assert found.rows[0][Samples.gpu_uuid] == UUID
    assert found.rows[0][Samples.throttle_reasons] == 4


def test_a_refused_field_is_dropped_and_named(fake: Path) -> None:
    write(
        fake,
        """
        if "temperature.gpu.tlimit" in " ".join(given):
            print('Field "temperature.gpu.tlimit" is not a valid field to query.')
            sys.exit(2)
        rows(10**6)
        """,
    )

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        found = sampler.finish()

    assert found.facts is not None
    assert found.facts.fields_refused == ["temperature.gpu.tlimit"]
    assert "temperature.gpu.tlimit" not in found.facts.fields
    assert found.rows


def test_a_field_that_the_driver_does_not_list_is_not_asked_for(fake: Path) -> None:
    write(fake, FOREVER)
    fake.write_text(fake.read_text().replace("'pstate', ", ""))

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        found = sampler.finish()

    assert found.facts is not None
    assert found.facts.fields_refused == ["pstate"]
    assert found.rows


def test_a_lost_gpu_is_an_event_and_the_rows_before_it_stay(fake: Path) -> None:
    write(
        fake,
        """
        rows(3)
        print("Unable to determine the device handle for GPU 0: GPU is lost.", flush=True)
        time.sleep(60)
        """,
    )

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        time.sleep(10 * INTERVAL_MS / 1000)
        found = sampler.finish()

    assert len(found.rows) == 3
    assert found.facts is not None
    assert found.facts.events == ["gpu_lost (line 4)"]
    assert {d.code for d in found.diagnostics} == {"sampler_gap"}


def test_an_early_death_is_told_with_its_status(fake: Path) -> None:
    write(fake, "rows(2)\nsys.exit(9)")

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        time.sleep(10 * INTERVAL_MS / 1000)
        found = sampler.finish()

    assert len(found.rows) == 2
    assert "ended by itself (status 9)" in found.diagnostics[0].message


def test_a_child_that_ignores_the_request_to_end_is_killed(fake: Path) -> None:
    write(
        fake,
        """
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        rows(1)
        time.sleep(600)
        """,
    )

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        child = sampler._child
        assert child is not None
        found = sampler.finish()

    assert not is_alive(child.process.pid)
    assert [d.code for d in found.diagnostics] == ["sampler_gap"]


def test_a_child_that_says_nothing_is_given_up(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_ROW_S", 0.3)
    write(fake, "time.sleep(600)")

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        found = sampler.finish()

    assert (found.rows, found.facts) == ([], None)
    assert [d.code for d in found.diagnostics] == ["samples_missing"]


def test_an_unknown_gpu_is_told_in_its_own_words(fake: Path) -> None:
    write(fake, "print('No devices were found'); sys.exit(6)")

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        found = sampler.finish()

    assert "no_devices" in found.diagnostics[0].message


def test_without_nvidia_smi_samples_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    with Sampler(UUID, INTERVAL_MS) as sampler:
        sampler.start()
        found = sampler.finish()

    assert (found.rows, found.facts) == ([], None)
    assert found.diagnostics[0].message.startswith("no nvidia-smi on the path")


def test_leaving_the_block_by_an_error_ends_the_child(fake: Path) -> None:
    write(fake, FOREVER)
    children = []

    def work() -> None:
        with Sampler(UUID, INTERVAL_MS) as sampler:
            sampler.start()
            assert sampler._child is not None
            children.append(sampler._child.process.pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()

    assert [is_alive(pid) for pid in children] == [False]


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc to see children in")
def test_a_killed_parent_leaves_no_child(fake: Path) -> None:
    write(fake, "rows(1)\ntime.sleep(600)")  # silent, so that no broken pipe ends it
    code = f"""
        import time
        from whichwall.collect.sampler import Sampler
        with Sampler({UUID!r}, {INTERVAL_MS}) as sampler:
            sampler.start()
            print(sampler._child.process.pid, flush=True)
            time.sleep(600)
        """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types")},
    )
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    assert is_alive(child)

    parent.send_signal(signal.SIGKILL)
    parent.wait()

    deadline = time.monotonic() + PATIENCE_S
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(child)
