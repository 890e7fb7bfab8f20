"""What datasheets print of GPUs: dense rates and bandwidth, a source for each row.

A rate is that of matrix products without sparsity, accumulated in float32 as torch does it; a
GeForce card reaches only half of the figure that is advertised for float16 accumulation. What
no source at hand states is null. A ceiling measured on the device comes before any of this.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from whichwall.schemas.errors import UsageError

MIB = 1024**2
GB = 10**9

# Drivers report between 0.93 (ECC held back) and 1.08 (GiB sold as GB) of the printed size.
MEMORY_SHARE = (0.9, 1.1)

# Words that say who made or sold the card, not which one it is.
_BRANDS = re.compile(r"\b(nvidia|amd|tesla|geforce|instinct|graphics)\b")


@dataclass(frozen=True)
class GpuSheet:
    """One row of the table; `pattern` is matched against a name without its brands."""

    name: str
    pattern: str
    memory_gb: tuple[int, ...]
    compute_capability: str
    bandwidth_gbps: float
    source: str
    tflops: Mapping[str, float] = field(default_factory=dict)  # by type, as torch names it
    tdp_w: float | None = None
    l2_bytes: int | None = None  # the last level before memory

    def rate(self, dtype: str) -> float | None:
        """Return the TFLOP/s of a type, or None where the hardware or the source has none."""
        plain = dtype.removeprefix("torch.")
        return self.tflops.get("float8" if plain.startswith("float8") else plain)


def _tensor(
    half: float, *, fp8: float | None = None, fp32: float | None = None, bf16: bool = True
) -> dict[str, float]:
    """Return rates by type; bfloat16 runs at the rate of float16 wherever it is native."""
    rates = {"float16": half}
    if bf16:
        rates["bfloat16"] = half
    if fp8 is not None:
        rates["float8"] = fp8
    if fp32 is not None:
        rates["float32"] = fp32  # torch's default: no TF32 for matrix products
    return rates


SHEETS: tuple[GpuSheet, ...] = (
    GpuSheet(
        "T4", r"t4", (16,), "7.5", 320,
        "NVIDIA T4 specification (sysrqmts.com/en/gpus/nvidia/tesla/t4); one sheet prints 300 GB/s",
        _tensor(65, fp32=8.1, bf16=False), 70, 4 * MIB,
    ),
    GpuSheet(
        "V100 SXM2", r"v100 sxm2( (16|32)gb)?", (16, 32), "7.0", 900,
        "NVIDIA V100 datasheet (through LLM-Viewer, llm-analysis); TDP not confirmed",
        _tensor(125, fp32=15.7, bf16=False), 300, 6 * MIB,
    ),
    GpuSheet(
        "V100 PCIe", r"v100 pcie( (16|32)gb)?", (16, 32), "7.0", 900,
        "NVIDIA V100 datasheet (through LLM-Viewer, llm-analysis); TDP not confirmed",
        _tensor(112, bf16=False), 250, 6 * MIB,
    ),
    GpuSheet(
        "A10", r"a10( pcie)?( 24gb)?", (24,), "8.6", 600,
        "NVIDIA A10 datasheet (through llm-analysis; sysrqmts.com, A10 PCIe)",
        _tensor(125, fp32=31.2), 150, 6 * MIB,
    ),
    GpuSheet(
        "A10G", r"a10g", (24,), "8.6", 600,
        "NVIDIA A10G specification (baseten.co, A10 vs A10G)",
        _tensor(70), None, 6 * MIB,
    ),
    GpuSheet(
        "A100 SXM 40GB", r"a100 sxm4? 40gb", (40,), "8.0", 1555,
        "NVIDIA A100 datasheet 1758950 (through glennklockwood.com; deviceQuery for the cache)",
        _tensor(312, fp32=19.5), 400, 40 * MIB,
    ),
    GpuSheet(
        "A100 PCIe 40GB", r"a100 pcie 40gb|a100 40gb pcie", (40,), "8.0", 1555,
        "NVIDIA A100 datasheet 1758950 (through LLM-Viewer; sysrqmts.com, A100 PCIe)",
        _tensor(312, fp32=19.5), 250, 40 * MIB,
    ),
    GpuSheet(
        "A100 SXM 80GB", r"a100 sxm4? 80gb", (80,), "8.0", 2039,
        "NVIDIA A100 datasheet 1758950 (through aiconfigurator, glennklockwood.com)",
        _tensor(312, fp32=19.5), 400, 40 * MIB,
    ),
    GpuSheet(
        "A100 PCIe 80GB", r"a100 pcie 80gb|a100 80gb pcie", (80,), "8.0", 1935,
        "NVIDIA A100 datasheet 1758950 (through aiconfigurator)",
        _tensor(312, fp32=19.5), 300, 40 * MIB,
    ),
    GpuSheet(
        "L4", r"l4( 24gb)?", (24,), "8.9", 300,
        "NVIDIA L4 datasheet (through aiconfigurator l4.yaml; fpsbench.com for float32, cache)",
        _tensor(121, fp8=242, fp32=30.3), 72, 48 * MIB,
    ),
    GpuSheet(
        "L40S", r"l40s( 48gb)?", (48,), "8.9", 864,
        "NVIDIA L40S datasheet (through aiconfigurator l40s.yaml; mullet.se)",
        _tensor(362, fp8=733, fp32=91.6), 350,
    ),
    GpuSheet(
        "H100 SXM", r"h100 sxm5?( 80gb)?|h100 80gb hbm3", (80,), "9.0", 3350,
        "NVIDIA H100 datasheet (through aiconfigurator, Modal GPU glossary)",
        _tensor(989, fp8=1979, fp32=67), 700, 50 * MIB,
    ),
    GpuSheet(
        "H100 PCIe", r"h100 pcie( 80gb)?|h100 80gb pcie", (80,), "9.0", 2000,
        "NVIDIA H100 PCIe product brief (through aiconfigurator); some sheets print 2039 GB/s",
        _tensor(756, fp8=1513), 350, 50 * MIB,
    ),
    GpuSheet(
        "H200 SXM", r"h200( sxm5?)?( 141gb)?( hbm3e)?", (141,), "9.0", 4800,
        "NVIDIA H200 datasheet (through aiconfigurator); cache as torch reads it off the device",
        _tensor(989, fp8=1979, fp32=67), 700, 60 * MIB,
    ),
    GpuSheet(
        "B200 SXM", r"b200( sxm6?)?( (180|192)gb)?", (180, 192), "10.0", 8000,
        "NVIDIA Blackwell datasheet at 1,000 W (through aiconfigurator, glennklockwood.com); "
        "HGX boards print 7,700 GB/s",
        _tensor(2250, fp8=4500, fp32=80), 1000,
    ),
    GpuSheet(
        "GB200", r"gb200( 186gb)?", (186, 192), "10.0", 8000,
        "NVIDIA Blackwell datasheet at 1,200 W (through aiconfigurator, glennklockwood.com)",
        _tensor(2500, fp8=5000, fp32=90), 1200,
    ),
    GpuSheet(
        "RTX 3090", r"rtx 3090", (24,), "8.6", 936,
        "NVIDIA GA102 white paper (cuttingedgegamer.com); float16 is twice float32, unconfirmed; "
        "compute runs at 912 GB/s",
        _tensor(71, fp32=35.6), 350, 6 * MIB,
    ),
    GpuSheet(
        "RTX 4090", r"rtx 4090", (24,), "8.9", 1008,
        "NVIDIA Ada white paper (through hmc-tech.com, fpsbench.com)",
        _tensor(165, fp8=330, fp32=82.6), 450, 72 * MIB,
    ),
    GpuSheet(
        "RTX 5090", r"rtx 5090", (32,), "12.0", 1792,
        "NVIDIA RTX Blackwell white paper (through spheron.network, Linux Format 2025-05): half "
        "and a quarter of the sparse float16-accumulated rate",
        _tensor(209.5, fp8=419, fp32=104.8), 575, 96 * MIB,
    ),
    GpuSheet(
        "MI300X", r"mi300x( oam)?( 192gb)?", (192,), "9.4", 5300,
        "AMD MI300X data sheet (through GenZ, aiwiki.ai); float8 not confirmed",
        _tensor(1307, fp8=2615), 750, 256 * MIB,
    ),
)  # fmt: skip


def find_gpu(
    name: str, memory_bytes: int | None = None, compute_capability: str | None = None
) -> GpuSheet | None:
    """Return the row of a GPU named as torch or nvidia-smi name it, or as the table does.

    None where no row fits, where several do, or where memory or compute capability
    contradict the name: a MIG slice or a laptop part is another device.
    """
    plain = " ".join(_BRANDS.sub(" ", name.lower().replace("-", " ").replace("_", " ")).split())
    fitting = [
        sheet
        for sheet in SHEETS
        if (re.fullmatch(sheet.pattern, plain) or plain == sheet.name.lower())
        and _fits(sheet, memory_bytes, compute_capability)
    ]
    return fitting[0] if len(fitting) == 1 else None


def named_gpu(name: str) -> GpuSheet:
    """Return the row of a GPU that a user named.

    Raises:
        UsageError: no such row, or several; the message names close ones.
    """
    found = find_gpu(name)
    if found is not None:
        return found
    names = {sheet.name.lower(): sheet.name for sheet in SHEETS}
    begun = [full for key, full in names.items() if key.startswith(name.lower())]
    close = begun or [names[k] for k in difflib.get_close_matches(name.lower(), names)]
    hint = f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(names.values())}"
    raise UsageError(f"no datasheet for GPU {name!r}; {hint}")


def _fits(sheet: GpuSheet, memory_bytes: int | None, compute_capability: str | None) -> bool:
    """Tell whether the facts that are known agree with a row."""
    if compute_capability is not None and compute_capability != sheet.compute_capability:
        return False
    if memory_bytes is None:
        return True
    low, high = MEMORY_SHARE
    return any(low <= memory_bytes / (size * GB) <= high for size in sheet.memory_gb)
