"""Idle time at the nodes of a replayed graph: clean time less what the kernels took."""

import json
from pathlib import Path

from whichwall.collect.node_idle import durations_in_replay, idle_per_node_us


def kernel(ts: str, dur: str, correlation: int) -> str:
    arguments = json.dumps({"device": 0, "stream": 7, "correlation": correlation})
    return (
        f'{{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": {ts}, '
        f'"dur": {dur}, "args": {arguments}}}'
    )


def write(path: Path, *kernels: str) -> Path:
    path.write_text('{"traceEvents": [' + ", ".join(kernels) + "]}")
    return path


def test_durations_are_those_of_the_largest_replay(tmp_path: Path) -> None:
    trace = write(
        tmp_path / "graph.json",
        kernel("1.000", "5.000", 3),
        kernel("12.416", "1.000", 9),
        kernel("10.000", "2.000", 9),
        kernel("13.800", "1.504", 9),
        kernel("90.000", "1.000", 11),
    )
    assert durations_in_replay(trace) == [1000, 2000, 1504]


def test_a_trace_without_a_replay_has_none(tmp_path: Path) -> None:
    trace = write(tmp_path / "graph.json", kernel("1.0", "5.0", 3), kernel("9.0", "5.0", 4))
    assert durations_in_replay(trace) == []


def test_a_trace_without_kernels_has_none(tmp_path: Path) -> None:
    assert durations_in_replay(write(tmp_path / "graph.json")) == []


def test_idle_is_the_clean_replay_less_its_kernels_over_the_kernels() -> None:
    assert idle_per_node_us([10e-6, 6e-6], [2000, 3000]) == [2.5, 0.5]


def test_a_replay_shorter_than_its_traced_kernels_has_no_idle() -> None:
    assert idle_per_node_us([4e-6], [2000, 3000]) == [0.0]
