"""What a server is asked: points of each mode, and which GPU of this machine is sampled."""

import stat
from pathlib import Path
from typing import Any

import pytest

from whichwall.collect.endpoint.address import address_of
from whichwall.collect.endpoint.load import Span
from whichwall.collect.endpoint.local_gpu import find_gpu
from whichwall.collect.endpoint.plan import VALUES, plan_points, visit_plan
from whichwall.collect.options import CollectOptions
from whichwall.schemas.manifest import Gpu

HERE, AWAY = address_of("http://127.0.0.1:8000"), address_of("http://10.0.0.1:8000")
GIB = 1 << 30


def options(mode: str, **more: Any) -> CollectOptions:
    return CollectOptions(mode=mode, engine="openai", url="http://a", **more)


@pytest.mark.parametrize("mode", list(VALUES))
def test_a_sweep_has_values_of_its_own(mode: str) -> None:
    assert len(plan_points(options(mode), None)) == len(VALUES[mode])


def test_the_default_prompt_fits_into_what_the_server_takes() -> None:
    (point,) = plan_points(options("decode"), 512)

    assert point.prompt_tokens + point.new_tokens <= 512
    assert point.refused is None


def test_a_prompt_that_was_asked_for_is_not_shortened() -> None:
    (point,) = plan_points(options("decode", prompt_tokens=600), 512)

    assert (point.prompt_tokens, point.refused is None) == (600, False)


def test_a_shared_prefix_has_a_suffix_beyond_it_and_all_prompts_one_length() -> None:
    points = plan_points(options("prefix", prompt_tokens=100), None)

    assert [(p.label, p.prompt_tokens, p.prefix_tokens) for p in points] == [
        ("unique", 116, 0), ("first", 116, 100), ("later", 116, 100),
    ]  # fmt: skip


def test_points_are_visited_at_least_as_often_as_asked() -> None:
    assert visit_plan(options("decode", repeat=9)).visits == 9
    assert visit_plan(options("decode")).clean == Span(5.0, 3)


def smi(folder: Path, gpus: str, users: str = "") -> None:
    """Put an nvidia-smi into a folder that lists GPUs and those at work."""
    program = folder / "nvidia-smi"
    lines = f'case "$1" in --query-gpu=*) printf "{gpus}";; *) printf "{users}";; esac'
    program.write_text(f"#!/bin/sh\n{lines}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


ONE, TWO = "0, GPU-a, Card, 1024\\n", "0, GPU-a, Card, 1024\\n1, GPU-b, Card, 1024\\n"


@pytest.mark.parametrize(
    ("gpus", "users", "uuid", "why"),
    [
        (ONE, "", "GPU-a", None),
        (TWO, "GPU-b\\n", "GPU-b", None),
        (TWO, "", None, "0 of 2 GPUs are at work, and which one serves is not known"),
        (TWO, "GPU-a\\nGPU-b\\n", None, "2 of 2 GPUs are at work, and which one serves is not"),
        ("NVIDIA-SMI has failed\\n", "", None, "nvidia-smi lists no GPU"),
    ],
)
def test_the_only_gpu_or_the_only_one_at_work_is_sampled(
    gpus: str, users: str, uuid: str | None, why: str | None,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    smi(tmp_path, gpus, users)
    monkeypatch.setenv("PATH", str(tmp_path))

    found = find_gpu(HERE)

    assert (found.gpu.uuid if found.gpu else None) == uuid
    assert (found.why_none or "").startswith(why or "")


def test_a_gpu_is_named_with_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smi(tmp_path, ONE)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_gpu(HERE).gpu == Gpu(name="Card", ordinal=0, uuid="GPU-a", memory_bytes=GIB)


def test_a_server_elsewhere_is_not_on_our_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi(tmp_path, ONE)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_gpu(AWAY).why_none == "the server is on another machine"


def test_without_nvidia_smi_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_gpu(HERE).why_none == "no nvidia-smi on the path"
