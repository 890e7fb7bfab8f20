"""What a machine could not do, in one sentence."""

import pytest
import torch
from torch._dynamo.exc import Unsupported

from whichwall.collect.failures import is_out_of_memory, point_failures, why_refused
from whichwall.collect.point import Point
from whichwall.collect.visits import _what_did_not_fit, _why_none
from whichwall.schemas.errors import CollectError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            RuntimeError("No available kernel. Aborting execution."),
            "attention flash has no kernel for this model, type and device",
        ),
        (
            RuntimeError("cuDNN Frontend error: [cudnn_frontend] Error: No valid plans"),
            "attention flash has no kernel for this model, type and device",
        ),
        (CollectError("compile needs a GPU"), "compile needs a GPU"),
        (
            Unsupported("graph break\nin a module"),
            "engine compile cannot compile here (graph break)",
        ),
        (RuntimeError("shapes differ.\n\nadvice"), "torch failed (shapes differ)"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_refusal_is_one_sentence(error: Exception, reason: str) -> None:
    assert isinstance(error, point_failures())
    assert why_refused(error, "compile", "flash") == reason


def test_memory_that_a_compiler_ran_out_of_is_out_of_memory() -> None:
    wrapped = RuntimeError("backend='inductor' raised:")
    wrapped.__cause__ = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 34.00 GiB. …")

    assert is_out_of_memory(wrapped)
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: 12 bytes"))
    assert not is_out_of_memory(RuntimeError("shapes differ"))


def test_what_did_not_fit_is_named_by_its_size() -> None:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 34.00 GiB. GPU 0 has …")

    assert _what_did_not_fit(error) == "out of memory, allocating 34.00 GiB"


def test_of_torch_s_warnings_the_one_about_the_backend_is_told() -> None:
    said = [
        "Memory efficient kernel not used because: (Triggered internally at sdp_utils.cpp:1.)",
        "Memory Efficient attention has been runtime disabled. (Triggered internally at x.cpp:2.)",
        "Flash attention kernel not used because: (Triggered internally at sdp_utils.cpp:3.)",
        "Expected query, key and value to be half. (Triggered internally at sdp_utils.cpp:4.)",
    ]

    assert _why_none(Point(0, "eager", "flash", 1, 8, 4), said) == (
        " (Expected query, key and value to be half)"
    )
    assert _why_none(Point(0, "eager", "cudnn", 1, 8, 4), said) == ""
