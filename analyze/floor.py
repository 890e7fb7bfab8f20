"""The least time that a pass can take on a device, and which wall that time stands at."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from whichwall.analyze.operations import Latent, Operation, operations
from whichwall.schemas import ceilings as ceiling_table
from whichwall.schemas.ceilings import CACHE_MULTIPLE, Ceilings
from whichwall.schemas.errors import InputError
from whichwall.schemas.hardware import GpuSheet, find_gpu
from whichwall.schemas.manifest import Gpu
from whichwall.schemas.model import Model
from whichwall.schemas.summary import Floor
from whichwall.schemas.weights import dtype_bytes, parameters

MEASURED, DATASHEET = "measured", "datasheet"

FLOPS_PER_NS_OF_TFLOPS = 1000  # 1 TFLOP/s is 1,000 FLOPs a nanosecond; 1 GB/s is 1 byte


@dataclass(frozen=True)
class Ceiling:
    """What one device can reach, and where each number comes from; null where unknown."""

    bandwidth_gbps: float | None = None
    bandwidth_from: str | None = None  # measured, datasheet
    tflops: float | None = None
    tflops_from: str | None = None
    l2_bytes: int | None = None


@dataclass(frozen=True)
class Totals:
    """Floors of a list of operations."""

    floor_ns: int | None  # sum over operations of the larger of the two times
    bytes_ns: int | None
    arithmetic_ns: int | None
    bytes: int
    flops: int


def floor(found: Iterable[Operation], bandwidth_gbps: float | None, tflops: float | None) -> Totals:
    """Add up the least times of operations that follow one another.

    floor = Σ max(bytes / bandwidth, FLOPs / rate). Without a bandwidth there is no floor;
    without a rate the floor is that of the bytes alone, which is lower and still a floor.
    """
    rows = list(found)
    total_bytes = sum(row.bytes * row.count for row in rows)
    total_flops = sum(row.flops * row.count for row in rows)
    per_ns = tflops * FLOPS_PER_NS_OF_TFLOPS if tflops else None
    arithmetic = round(total_flops / per_ns) if per_ns else None
    if not bandwidth_gbps:
        return Totals(None, None, arithmetic, total_bytes, total_flops)
    least = sum(
        row.count * max(row.bytes / bandwidth_gbps, row.flops / per_ns if per_ns else 0.0)
        for row in rows
    )
    in_bytes = round(total_bytes / bandwidth_gbps)
    return Totals(round(least), in_bytes, arithmetic, total_bytes, total_flops)


def floor_by_role(
    found: Iterable[Operation], bandwidth_gbps: float, tflops: float | None
) -> dict[str, float]:
    """Return the least time of each role's operations, ns; together they are the floor."""
    least: dict[str, float] = {}
    for row in found:
        each = row.bytes / bandwidth_gbps
        if tflops:
            each = max(each, row.flops / (tflops * FLOPS_PER_NS_OF_TFLOPS))
        least[row.role] = least.get(row.role, 0.0) + row.count * each
    return least


def ceilings_for(measured: pl.DataFrame, gpu: Gpu | None, dtype: str | None) -> Ceiling:
    """Return a device's ceilings: measured ones of the run first, its datasheet's where not.

    Bandwidth is the larger of measured read and measured copy. `measured` is a frame of
    `Ceilings`, empty where nothing was measured.
    """
    sheet = None
    if gpu is not None and not gpu.mig:  # a slice of a GPU reaches less than its sheet says
        sheet = find_gpu(gpu.name, gpu.memory_bytes, gpu.compute_capability)
    own = _own_rows(measured, gpu)
    bandwidth = _largest(own.filter(_named(ceiling_table.READ) | _named(ceiling_table.COPY)))
    rate = None
    if dtype is not None:
        same_type = pl.col(Ceilings.dtype).str.strip_prefix("torch.") == plain_dtype(dtype)
        rate = _largest(own.filter(_named(ceiling_table.MATMUL) & same_type))
    printed = sheet_ceiling(sheet, dtype) if sheet else Ceiling()
    # ROCm reports the L2 of one die, and the last level behind it not at all.
    caches = [gpu.l2_cache_bytes if gpu else None, printed.l2_bytes]
    return Ceiling(
        bandwidth_gbps=bandwidth or printed.bandwidth_gbps,
        bandwidth_from=MEASURED if bandwidth else printed.bandwidth_from,
        tflops=rate or printed.tflops,
        tflops_from=MEASURED if rate else printed.tflops_from,
        l2_bytes=max((size for size in caches if size), default=None),
    )


def sheet_ceiling(sheet: GpuSheet, dtype: str | None) -> Ceiling:
    """Return the ceilings that a datasheet prints."""
    rate = sheet.rate(dtype) if dtype is not None else None
    return Ceiling(
        bandwidth_gbps=sheet.bandwidth_gbps,
        bandwidth_from=DATASHEET,
        tflops=rate,
        tflops_from=DATASHEET if rate else None,
        l2_bytes=sheet.l2_bytes,
    )


def floor_of_pass(
    model: Model,
    phase: str,
    point: int,
    batch: int,
    tokens: int,
    context_tokens: int,
    ceiling: Ceiling,
    *,
    dtype: str | None = None,
    cache_dtype: str | None = None,
    logits_tokens: int | None = None,
    latent: Latent = "expanded",
) -> Floor:
    """Return the floors of one pass; `tokens` and `context_tokens` are per sequence.

    `dtype` is that of the weights, the model's own where not given, and of the cache unless
    `cache_dtype` differs.

    Raises:
        InputError: the type of the weights is not known or they are quantized, so that their
            bytes do not follow from the dimensions; or the pass has no tokens.
    """
    stated = dtype or model.dtype
    if stated is None:
        raise InputError(f"{model.name}: the type of its weights is not known; state a dtype")
    if model.quantization is not None:
        raise InputError(
            f"{model.name}: weights are quantized ({model.quantization}), so their bytes do not "
            "follow from the dimensions; only a model in one dtype has a floor"
        )
    each = dtype_bytes(stated)
    found = operations(
        model,
        batch,
        tokens,
        context_tokens,
        each,
        dtype_bytes(cache_dtype) if cache_dtype else each,
        logits_tokens=logits_tokens,
        latent=latent,
    )
    totals = floor(found, ceiling.bandwidth_gbps, ceiling.tflops)
    return Floor(
        phase=phase,
        point=point,
        batch=batch,
        tokens=tokens,
        context_tokens=context_tokens,
        floor_ns=totals.floor_ns,
        bytes_ns=totals.bytes_ns,
        arithmetic_ns=totals.arithmetic_ns,
        bytes=totals.bytes,
        flops=totals.flops,
        bandwidth_gbps=ceiling.bandwidth_gbps,
        bandwidth_from=ceiling.bandwidth_from,
        tflops=ceiling.tflops,
        tflops_from=ceiling.tflops_from,
        cached_weights=parameters(model) * each < CACHE_MULTIPLE * (ceiling.l2_bytes or 0),
    )


def achieved(of: Floor, took_ns: int | None) -> tuple[float | None, float | None]:
    """Return the GB/s and TFLOP/s that a pass reached in a time; nulls where that is unknown."""
    if not took_ns or took_ns < 0:
        return None, None
    return of.bytes / took_ns, of.flops / took_ns / FLOPS_PER_NS_OF_TFLOPS


def _own_rows(measured: pl.DataFrame, gpu: Gpu | None) -> pl.DataFrame:
    """Keep the rows of one device; a run that measured one device needs no identity for it."""
    uuid = gpu.uuid if gpu else None
    if uuid is None and measured[Ceilings.gpu_uuid].n_unique() == 1:
        return measured
    return measured.filter(pl.col(Ceilings.gpu_uuid).eq_missing(pl.lit(uuid, pl.String)))


def _named(name: str) -> pl.Expr:
    return pl.col(Ceilings.name) == name


def _largest(rows: pl.DataFrame) -> float | None:
    found = rows[Ceilings.value].max()
    return float(found) if isinstance(found, (int, float)) else None


def plain_dtype(dtype: str) -> str:
    """Return a type's name without the prefix that torch writes it with."""
    return dtype.removeprefix("torch.")
