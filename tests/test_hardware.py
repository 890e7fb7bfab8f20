"""The hardware table, and the names under which drivers know its rows."""

import pytest

from whichwall.schemas.errors import UsageError
from whichwall.schemas.hardware import SHEETS, find_gpu, named_gpu

GIB = 1024**3

# Names and sizes as torch and nvidia-smi give them.
DRIVER_NAMES = [
    ("Tesla T4", 15_828_320_256, "7.5", "T4"),
    ("Tesla V100-SXM2-16GB", 16_945_512_448, "7.0", "V100 SXM2"),
    ("Tesla V100-SXM2-32GB", 34_079_637_504, "7.0", "V100 SXM2"),
    ("Tesla V100-PCIE-32GB", 34_079_637_504, "7.0", "V100 PCIe"),
    ("NVIDIA A10", 23_609_475_072, "8.6", "A10"),
    ("NVIDIA A10G", 23_609_475_072, "8.6", "A10G"),
    ("NVIDIA A100-SXM4-40GB", 42_405_855_232, "8.0", "A100 SXM 40GB"),
    ("A100-PCIE-40GB", 42_505_273_344, "8.0", "A100 PCIe 40GB"),
    ("NVIDIA A100-SXM4-80GB", 85_094_825_984, "8.0", "A100 SXM 80GB"),
    ("NVIDIA A100 80GB PCIe", 85_094_825_984, "8.0", "A100 PCIe 80GB"),
    ("NVIDIA L4", 23_580_639_232, "8.9", "L4"),
    ("NVIDIA L40S", 47_697_362_944, "8.9", "L40S"),
    ("NVIDIA H100 80GB HBM3", 85_018_279_936, "9.0", "H100 SXM"),
    ("NVIDIA H100 PCIe", 85_045_280_768, "9.0", "H100 PCIe"),
    ("NVIDIA H200", 150_109_880_320, "9.0", "H200 SXM"),
    ("NVIDIA B200", 191_503_138_816, "10.0", "B200 SXM"),
    ("NVIDIA GB200", 184 * GIB, "10.0", "GB200"),
    ("NVIDIA GeForce RTX 3090", 25_438_126_080, "8.6", "RTX 3090"),
    ("NVIDIA GeForce RTX 4090", 25_393_692_672, "8.9", "RTX 4090"),
    ("NVIDIA GeForce RTX 5090", 33_669_120_000, "12.0", "RTX 5090"),
    ("AMD Instinct MI300X", 206_141_652_992, "9.4", "MI300X"),
]

# Real devices that share a name with a row and little else.
OTHERS = [
    ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5 * GIB, "8.0"),
    ("NVIDIA A100-SXM4-40GB", 5 * GIB, "8.0"),
    ("NVIDIA A100-PG509-200", 42_297_524_224, "8.0"),
    ("NVIDIA H100", 102_085_492_736, "9.0"),
    ("NVIDIA H100 NVL", 99_857_989_632, "9.0"),
    ("NVIDIA H200 NVL", 150_109_880_320, "9.0"),
    ("NVIDIA GeForce RTX 4090 Laptop GPU", 16 * GIB, "8.9"),
    ("NVIDIA GeForce RTX 4090 D", 25_393_692_672, "8.9"),
    ("NVIDIA GeForce RTX 3090 Ti", 25_438_126_080, "8.6"),
    ("NVIDIA L40", 47_697_362_944, "8.9"),
    ("Tesla V100S-PCIE-32GB", 34_079_637_504, "7.0"),
    ("AMD Radeon Graphics", 68_702_699_520, "9.0"),
    ("", None, None),
]


@pytest.mark.parametrize(("name", "memory_bytes", "capability", "row"), DRIVER_NAMES)
def test_the_driver_s_name_finds_the_row(
    name: str, memory_bytes: int, capability: str, row: str
) -> None:
    found = find_gpu(name, memory_bytes, capability)

    assert found is not None
    assert found.name == row


def test_every_row_is_found_by_a_driver_s_name_and_by_its_own() -> None:
    assert {row for *_, row in DRIVER_NAMES} == {sheet.name for sheet in SHEETS}
    assert [find_gpu(sheet.name) for sheet in SHEETS] == list(SHEETS)


@pytest.mark.parametrize(("name", "memory_bytes", "capability"), OTHERS)
def test_another_device_is_not_taken_for_a_row(
    name: str, memory_bytes: int | None, capability: str | None
) -> None:
    assert find_gpu(name, memory_bytes, capability) is None


def test_an_ambiguous_name_finds_nothing() -> None:
    assert find_gpu("NVIDIA A100", None, None) is None


def test_a_contradicted_name_finds_nothing() -> None:
    assert find_gpu("NVIDIA H200", 80 * GIB) is None
    assert find_gpu("NVIDIA H200", compute_capability="8.0") is None


def test_rates_are_dense_and_those_of_float32_accumulation() -> None:
    rows = {sheet.name: sheet for sheet in SHEETS}

    assert rows["H200 SXM"].rate("bfloat16") == 989
    assert rows["H200 SXM"].rate("torch.float8_e4m3fn") == 1979
    assert rows["RTX 4090"].rate("float16") == 165
    assert rows["B200 SXM"].rate("bfloat16") == 2250


def test_a_type_the_hardware_lacks_has_no_rate() -> None:
    assert named_gpu("T4").rate("bfloat16") is None
    assert named_gpu("A100 SXM 80GB").rate("float8_e4m3fn") is None
    assert named_gpu("H200").rate("int4") is None


def test_every_row_names_its_source_and_moves_more_than_a_cpu() -> None:
    for sheet in SHEETS:
        assert sheet.source
        assert sheet.bandwidth_gbps >= 300
        assert sheet.rate("float16")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a100", "did you mean A100 SXM 40GB, A100 PCIe 40GB, A100 SXM 80GB, A100 PCIe 80GB?"),
        ("h20", "did you mean H200 SXM?"),
        ("abacus", "known: T4, V100 SXM2"),
    ],
)
def test_a_user_s_unknown_name_is_answered_with_close_ones(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        named_gpu(name)

    assert f"no datasheet for GPU {name!r}" in str(refused.value)
    assert hint in str(refused.value)
