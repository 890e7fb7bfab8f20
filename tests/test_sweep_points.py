"""What each sweep varies, in what order, and what it does not try."""

from typing import Any

import pytest
import torch

from whichwall.collect.device import Device
from whichwall.collect.options import CollectOptions
from whichwall.collect.point import Point
from whichwall.collect.sweep import in_turn
from whichwall.collect.sweep_points import NOT_ON_CPU, Planned, plan_points, points_to_trace
from whichwall.collect.traced import in_one_process
from whichwall.schemas.model import Model

CPU, GPU = Device(torch.device("cpu"), "cpu"), Device(torch.device("cuda", 0), "card", "GPU-1")
MODEL = Model("toy", "toy", 32, 80, 2, 4, 2, 8, 500)
SHORT = Model("short", "toy", 32, 80, 2, 4, 2, 8, 500, positions=64)


def planned(mode: str, device: Device = GPU, model: Model = MODEL, **asked: Any) -> list[Planned]:
    return plan_points(CollectOptions(mode=mode, **asked), device, model, "sdpa")


def point(number: int, **changed: Any) -> Point:
    return Point(**{"number": number, "engine": "eager", "attention": "sdpa", "batch": 1,
                    "prompt_tokens": 8, "new_tokens": 4, **changed})  # fmt: skip


def test_a_context_leaves_its_prompt_in_the_cache_and_one_long_answer_is_given_once() -> None:
    found = planned("context", CPU, values="16,32,long")

    assert found == [
        Planned(point(0, prompt_tokens=16, new_tokens=32)),
        Planned(point(1, prompt_tokens=32, new_tokens=32)),
        Planned(point(2, prompt_tokens=16, new_tokens=96, label="long generation"), once=True),
    ]


def test_a_prompt_is_followed_by_no_step() -> None:
    found = planned("prompt", values="16,64", engine="cuda-graph", batch_size=4)

    assert [one.point for one in found] == [
        point(0, engine="cuda-graph", batch=4, prompt_tokens=16, new_tokens=1),
        point(1, engine="cuda-graph", batch=4, prompt_tokens=64, new_tokens=1),
    ]


def test_batches_have_a_shorter_prompt_unless_told() -> None:
    assert planned("batch", values="1,8")[1].point == point(
        1, batch=8, prompt_tokens=512, new_tokens=32
    )
    assert planned("batch", values="8", prompt_tokens=100)[0].point.prompt_tokens == 100


def test_a_ladder_is_one_engine_after_another_at_the_same_request() -> None:
    assert [one.point for one in planned("ladder")] == [
        point(number, engine=engine, prompt_tokens=1024, new_tokens=32, label=engine)
        for number, engine in enumerate(
            ("eager", "static-cache", "cuda-graph", "compile", "compile-reduce-overhead")
        )
    ]


def test_attention_goes_through_backends_and_the_library_s_own() -> None:
    assert [one.point.attention for one in planned("attention")] == [
        "math", "efficient", "flash", "cudnn", "eager",
    ]  # fmt: skip


@pytest.mark.parametrize(("values", "refused"), [(None, NOT_ON_CPU), ("compile", None)])
def test_a_cpu_compiles_only_if_asked(values: str | None, refused: str | None) -> None:
    found = {one.point.engine: one.refused for one in planned("ladder", CPU, values=values)}

    assert found["compile"] == refused


def test_what_does_not_fit_a_model_s_positions_is_refused_and_the_rest_is_tried() -> None:
    found = planned("context", CPU, SHORT, values="16,32,48")

    assert [one.refused for one in found] == [
        None,
        None,
        "short has 64 positions: a prompt of 48 and 32 new tokens do not fit",
    ]


def test_a_default_prompt_is_cut_to_positions() -> None:
    assert planned("ladder", GPU, SHORT)[0].point.prompt_tokens == 64 - 32 - 8


def test_rounds_go_back_and_forth_without_what_is_refused_or_needed_once() -> None:
    plan = [Planned(point(0)), Planned(point(1), "no"), Planned(point(2), once=True),
            Planned(point(3))]  # fmt: skip

    assert [(one.point.number, visit) for one, visit in in_turn(plan, 3)] == [
        (0, 0), (2, 0), (3, 0), (3, 1), (0, 1), (0, 2), (3, 2),
    ]  # fmt: skip


def test_of_batches_the_ends_and_the_knee_are_traced() -> None:
    done = [point(number, batch=2**number) for number in range(6)]
    steps = {number: [max(1.0, 2**number / 8)] * 2 for number in range(6)}

    assert points_to_trace("batch", done, steps) == [done[0], done[3], done[5]]


def test_of_a_flat_line_of_batches_only_the_ends_are_traced() -> None:
    done = [point(number, batch=2**number) for number in range(3)]

    found = points_to_trace("batch", done, {number: [1.0, 1.0] for number in range(3)})

    assert found == [done[0], done[2]]


def test_of_attention_backends_the_prompt_is_traced() -> None:
    assert points_to_trace("attention", [point(2, attention="flash")], {}) == [
        point(2, attention="flash", new_tokens=1)
    ]


def test_points_that_replay_graphs_are_traced_in_processes_of_their_own() -> None:
    engines = ("eager", "cuda-graph", "compile", "compile-reduce-overhead")
    points = [Point(n, engine, "sdpa", 1, 8, 4) for n, engine in enumerate(engines)]

    found = [[point.engine for point in group] for group in in_one_process(points)]

    assert found == [["eager", "compile"], ["cuda-graph"], ["compile-reduce-overhead"]]
