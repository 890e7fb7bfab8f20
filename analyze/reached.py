"""Put measured limits beside what the datasheet prints, and sustained ones beside a burst."""

import polars as pl

from whichwall.schemas import ceilings as names
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.experiments import Reached
from whichwall.schemas.hardware import GpuSheet, find_gpu
from whichwall.schemas.manifest import Gpu

# A limit measured over seconds is named after the one measured in a burst.
SUSTAINED = "_sustained"
MEMORY = (names.READ, names.COPY)


def reached(ceilings: pl.DataFrame, gpus: list[Gpu]) -> list[Reached]:
    """Return the limits of the first rank, in the order in which they were measured."""
    rows = ceilings.filter(pl.col(Ceilings.rank) == pl.col(Ceilings.rank).min())
    rows = rows.sort(Ceilings.start_ns, maintain_order=True)
    burst = {
        (row[Ceilings.name], row[Ceilings.dtype]): row[Ceilings.value]
        for row in reversed(list(rows.iter_rows(named=True)))
    }
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    found = []
    for row in rows.iter_rows(named=True):
        gpu = by_uuid.get(row[Ceilings.gpu_uuid])
        name, dtype, value = row[Ceilings.name], row[Ceilings.dtype], row[Ceilings.value]
        printed = _printed(_sheet(gpu), name.removesuffix(SUSTAINED), dtype)
        whole = burst.get((name.removesuffix(SUSTAINED), dtype)) if SUSTAINED in name else None
        found.append(
            Reached(
                name=name,
                dtype=dtype,
                shape=row[Ceilings.shape],
                value=value,
                unit=row[Ceilings.unit],
                p10=row[Ceilings.p10],
                p90=row[Ceilings.p90],
                datasheet=printed,
                share=value / printed if printed else None,
                sustained_of=value / whole if whole else None,
                sm_clock_mhz=row[Ceilings.sm_clock_mhz],
                temperature_c=row[Ceilings.temperature_c],
            )
        )
    return found


def _sheet(gpu: Gpu | None) -> GpuSheet | None:
    if gpu is None or gpu.mig:  # a slice of a GPU reaches less than its sheet says
        return None
    return find_gpu(gpu.name, gpu.memory_bytes, gpu.compute_capability)


def _printed(sheet: GpuSheet | None, name: str, dtype: str | None) -> float | None:
    if sheet is None:
        return None
    if name in MEMORY:
        return float(sheet.bandwidth_gbps)
    rate = sheet.rate(dtype) if name == names.MATMUL and dtype else None
    return None if rate is None else float(rate)
