"""Idle time between nodes of a replayed graph, read from a trace."""

import json
from pathlib import Path

from whichwall.collect.node_idle import idle_in_replay


def kernel(ts: str, dur: str, correlation: int) -> str:
    arguments = json.dumps({"device": 0, "stream": 7, "correlation": correlation})
    return (
        f'{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {ts}, '
        f'"dur": {dur}, "args": {arguments}}}'
    )


def write(path: Path, *kernels: str) -> Path:
    path.write_text('{"traceEvents": [' + ", ".join(kernels) + "]}")
    return path


def test_gaps_are_those_within_the_largest_replay(tmp_path: Path) -> None:
    trace = write(
        tmp_path / "graph.json",
        kernel("1.000", "5.000", 3),
        kernel("12.416", "1.000", 9),
        kernel("10.000", "2.000", 9),
        kernel("13.800", "1.000", 9),
        kernel("90.000", "1.000", 11),
    )
    assert idle_in_replay(trace) == [416, 384]


def test_a_trace_without_a_replay_has_none(tmp_path: Path) -> None:
    trace = write(tmp_path / "graph.json", kernel("1.0", "5.0", 3), kernel("9.0", "5.0", 4))
    assert idle_in_replay(trace) == []


def test_a_trace_without_kernels_has_none(tmp_path: Path) -> None:
    assert idle_in_replay(write(tmp_path / "graph.json")) == []
