import pytest
import torch

from whichwall.collect.device import (
    Device,
    choose_device,
    choose_dtype,
    dtype_name,
    first_line,
    gpu_uuid,
    runs_on,
)
from whichwall.schemas.errors import CollectError

CPU = Device(torch.device("cpu"), "cpu")


@pytest.mark.parametrize(
    ("built_for", "capability", "runs"),
    [
        (["sm_75", "sm_80"], (7, 5), True),
        (["sm_80"], (8, 6), True),  # machine code runs on later minors of its major
        (["sm_86"], (8, 0), False),
        (["sm_80"], (9, 0), False),
        (["sm_80", "compute_80"], (9, 0), True),  # portable code is translated
        (["compute_90"], (8, 9), False),
        (["sm_90a"], (9, 0), True),
        (["sm_100a"], (10, 3), False),
        (["sm_100f"], (10, 3), True),
        (["compute_90a"], (10, 0), False),
        (["sm_120"], (12, 0), True),
        (["gfx942"], (9, 4), False),
    ],
)
def test_code_runs_on_the_capabilities_it_was_built_for(
    built_for: list[str], capability: tuple[int, int], *, runs: bool
) -> None:
    assert runs_on(built_for, capability) is runs


def test_uuids_are_written_as_nvidia_smi_does() -> None:
    assert gpu_uuid("e4c4a7b1-c86c") == "GPU-e4c4a7b1-c86c"
    assert gpu_uuid("MIG-e4c4a7b1") == "MIG-e4c4a7b1"


def test_the_cpu_runs_float32_unless_told_otherwise() -> None:
    assert dtype_name(choose_dtype("auto", CPU)) == "float32"
    assert dtype_name(choose_dtype("bf16", CPU)) == "bfloat16"


def test_the_cpu_is_always_to_be_had() -> None:
    assert choose_device("cpu") == CPU


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_refused_with_the_reason_and_the_way_out() -> None:
    with pytest.raises(CollectError, match=r"no usable GPU: torch .*--device cpu"):
        choose_device("cuda")


def test_a_library_s_essay_is_cut_to_its_first_line() -> None:
    assert first_line(RuntimeError("CUDA error: busy.\nConsider this.\n")) == "CUDA error: busy"
    assert first_line(ValueError("")) == "ValueError"
