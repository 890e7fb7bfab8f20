"""Take a card's limits from its datasheet, from a run that measured them, or as given."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from whichwall.analyze.floor import ceilings_for
from whichwall.analyze.quantities import with_unit
from whichwall.analyze.tables import read_table
from whichwall.schemas.ceilings import Ceilings
from whichwall.schemas.errors import InputError
from whichwall.schemas.hardware import GB, SHEETS, GpuSheet, find_gpu, named_gpu
from whichwall.schemas.manifest import Gpu
from whichwall.schemas.precision import Precision
from whichwall.schemas.prediction import DATASHEET, GIVEN, MEASURED, Limits
from whichwall.schemas.run import open_run

# In this order a type is chosen where none is stated; a CPU has a rate of the last alone.
WIDE = ("bfloat16", "float16", "float32")


@dataclass(frozen=True)
class Card:
    """A card before the type is chosen: its row, what was measured on it, or plain numbers."""

    name: str
    sheet: GpuSheet | None = None
    gpu: Gpu | None = None
    measured: pl.DataFrame | None = None  # Ceilings
    bandwidth_gbps: float | None = None
    tflops: float | None = None

    def wide(self) -> str:
        """Return the type that models run in on the card: the first that it has a rate of."""
        known = set(self.sheet.tflops) if self.sheet else set()
        if self.measured is not None:
            known |= set(self.measured[Ceilings.dtype].drop_nulls())
        return next((name for name in WIDE if name in known), WIDE[0])

    def limits(self, kept: Precision, wide: Precision) -> Limits:
        """Return the limits for weights of a type; what it cannot compute in is widened first."""
        for name in (kept.name, wide.name) if kept.computes else (wide.name,):
            found = self._limits(name)
            if found.tflops is not None:
                return msgspec.structs.replace(found, tflops_dtype=name)
        return found

    def _limits(self, dtype: str) -> Limits:
        if self.measured is not None:
            return self._of_run(dtype, self.measured)
        if self.sheet is not None:
            return _of_sheet(self.sheet, dtype)
        assert self.bandwidth_gbps is not None
        return Limits(
            name=self.name,
            bandwidth_gbps=self.bandwidth_gbps,
            bandwidth_from=GIVEN,
            tflops=self.tflops,
            tflops_from=None if self.tflops is None else GIVEN,
        )

    def _of_run(self, dtype: str, measured: pl.DataFrame) -> Limits:
        found = ceilings_for(measured, self.gpu, dtype)
        if found.bandwidth_gbps is None or found.bandwidth_from != MEASURED:
            raise InputError(
                f"--ceilings {self.name}: the run measured no bandwidth; expected one that "
                "collect --mode ceilings or --mode decode made on the card"
            )
        memory = self.gpu.memory_bytes if self.gpu else None
        return Limits(
            name=self.gpu.name if self.gpu else self.name,
            bandwidth_gbps=found.bandwidth_gbps,
            bandwidth_from=MEASURED,
            tflops=found.tflops,
            tflops_from=found.tflops_from,
            memory_bytes=memory,
            memory_from=None if memory is None else MEASURED,
            l2_bytes=found.l2_bytes,
        )


def card_named(name: str) -> Card:
    """Return the card of a row of the table.

    Raises:
        UsageError: no such row, or several; the message names close ones.
    """
    sheet = named_gpu(name)
    return Card(sheet.name, sheet=sheet)


def card_of_run(path: Path) -> Card:
    """Return the card whose limits a run measured.

    Raises:
        InputError: not a run, or it measured none.
    """
    run = open_run(path)
    measured = read_table(run, Ceilings)
    seen = set(measured[Ceilings.gpu_uuid])
    gpu = next((gpu for gpu in run.manifest.gpus if gpu.uuid in seen), None)
    sheet = find_gpu(gpu.name, gpu.memory_bytes, gpu.compute_capability) if gpu else None
    return Card(str(path), sheet=sheet, gpu=gpu, measured=measured)


def sheets() -> Iterable[str]:
    """Yield a line per card of the table: what it prints, and where that is from."""
    for sheet in SHEETS:
        rates = ", ".join(
            f"{dtype} {with_unit(rate, 'TFLOP/s')}" for dtype, rate in sheet.tflops.items()
        )
        sizes = " or ".join(map(str, sheet.memory_gb))
        bandwidth = with_unit(sheet.bandwidth_gbps, "GB/s")
        yield f"{sheet.name}: {sizes} GB, {bandwidth}, {rates}. {sheet.source}"


def _of_sheet(sheet: GpuSheet, dtype: str) -> Limits:
    rate = sheet.rate(dtype)
    return Limits(
        name=sheet.name,
        bandwidth_gbps=sheet.bandwidth_gbps,
        bandwidth_from=DATASHEET,
        tflops=rate,
        tflops_from=None if rate is None else DATASHEET,
        memory_bytes=min(sheet.memory_gb) * GB,  # where a card has several sizes, the smallest
        memory_from=DATASHEET,
        l2_bytes=sheet.l2_bytes,
        source=sheet.source,
    )
