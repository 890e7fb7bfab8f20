import json
import os
from pathlib import Path

import pytest
import torch

from whichwall.collect.device import choose_device
from whichwall.collect.passes import PassLog
from whichwall.collect.profiler import TraceSession
from whichwall.schemas import passes

CPU = choose_device("cpu")


def test_a_trace_holds_what_ran_between_start_and_stop_only(tmp_path: Path) -> None:
    ones = torch.ones(4, 4)
    log = PassLog(CPU, 1)

    with TraceSession(CPU) as session:
        torch.sin(ones)
        session.start()
        log.run(passes.PROFILED, passes.DECODE, tokens=1, context=0, work=lambda: ones @ ones)
        session.stop()
    torch.cos(ones)
    session.export(tmp_path / "trace.json")

    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["name"] for event in events}
    assert {"whichwall::decode#0", "aten::mm"} <= names
    assert not {"aten::sin", "aten::cos"} & names
    product = next(e for e in events if e["name"] == "aten::mm")
    assert product["args"]["Input Dims"] == [[4, 4], [4, 4]]


def test_kineto_s_own_lines_stay_off_stderr_and_others_come_through(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with TraceSession(CPU) as session:
        session.start()
        os.write(2, b"heard\n")
        session.stop()

    assert capfd.readouterr().err == "heard\n"


def test_an_interrupted_session_leaves_no_profiler_running() -> None:
    def interrupted(*, started: bool) -> None:
        with TraceSession(CPU) as session:
            if started:
                session.start()
            raise KeyboardInterrupt

    for started in (True, False):
        with pytest.raises(KeyboardInterrupt):
            interrupted(started=started)

    assert not torch.autograd.profiler._is_profiler_enabled


def test_the_facts_say_how_the_trace_was_taken() -> None:
    facts = TraceSession(CPU).facts()

    assert (facts.activities, facts.record_shapes, facts.with_stack) == (["CPU"], True, False)
