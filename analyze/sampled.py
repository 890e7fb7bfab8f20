"""What the samples say inside a window: clocks, power, energy, and whether the card slowed."""

from typing import NamedTuple

import numpy as np
import polars as pl

from whichwall.analyze.medians import median
from whichwall.schemas.manifest import Manifest
from whichwall.schemas.passes import CLEAN, DECODE, Passes
from whichwall.schemas.samples import Samples
from whichwall.schemas.summary import SampleWindow

# NVML's bits of clocks_event_reasons.active (nvml.h).
REASONS = {
    0x1: "idle",
    0x2: "application_clocks",
    0x4: "software_power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "hardware_power_brake",
    0x100: "display_clocks",
}
UNKNOWN_REASON = "unknown"
SLOWDOWNS = {
    "power cap": ("software_power_cap", "hardware_power_brake"),
    "thermal": ("software_thermal", "hardware_thermal"),
    "application clocks": ("application_clocks",),
    "other slowdown": ("hardware_slowdown", "sync_boost", UNKNOWN_REASON),
}
HELD_BACK = frozenset(reason for reasons in SLOWDOWNS.values() for reason in reasons)
# A reason seen on fewer samples does not explain a median; an idle card may show one too.
SLOWED_SHARE = 0.2
# power.draw is an average over 1 s on most cards: a shorter window would hold the time before.
SHORTEST_POWER_WINDOW_NS = 2 * 10**9
# Nothing is interpolated across a longer silence of the sampler.
LONGEST_SILENCE_NS = 3 * 10**9

POWER = {
    "instant": Samples.power_instant_w,
    "draw": Samples.power_w,
    "average": Samples.power_average_w,
}
CLEAN_STAGE, TRACE = "clean", "trace"
MJ_PER_J = 1000
_END = "end_ns"


class Window(NamedTuple):
    """A stretch of time to read samples in, Unix epoch."""

    name: str
    start_ns: int
    end_ns: int

    @property
    def dur_ns(self) -> int:
        """Return its length."""
        return self.end_ns - self.start_ns


def window_of(passes: pl.DataFrame, trace_span: tuple[int, int] | None) -> Window | None:
    """Return the clean stage, else the stretch of the trace."""
    clean = passes.filter(pl.col(Passes.stage) == CLEAN)
    if clean.height:
        start = pl.col(Passes.start_ns)
        ends = clean.select(start.min(), (start + pl.col(Passes.wall_ns)).max().alias(_END))
        return Window(CLEAN_STAGE, *ends.row(0))
    return Window(TRACE, *trace_span) if trace_span else None


def sampled(
    samples: pl.DataFrame,
    passes: pl.DataFrame,
    manifest: Manifest,
    window: Window | None,
    generated: int | None = None,
) -> SampleWindow | None:
    """Return what the samples say inside the window; null without a sample of this GPU there.

    `generated` has the tokens that came in it, where no passes of ours made them.
    """
    uuid = gpu_of(samples, manifest)
    if window is None or uuid is None:
        return None
    mine = samples.filter(pl.col(Samples.gpu_uuid) == uuid).sort(
        Samples.time_ns, maintain_order=True
    )
    inside = mine.filter(pl.col(Samples.time_ns).is_between(window.start_ns, window.end_ns))
    if not inside.height:
        return None
    long_enough = window.dur_ns >= SHORTEST_POWER_WINDOW_NS
    power_from = next((n for n, c in POWER.items() if inside[c].null_count() < inside.height), None)
    energy_from, energy_j = _energy(manifest, mine, window, power_from)
    tokens = _tokens(passes, window) if passes.height else generated
    return SampleWindow(
        window=window.name,
        gpu_uuid=uuid,
        samples=inside.height,
        sm_clock_mhz_median=median(inside[Samples.sm_clock_mhz]),
        memory_clock_mhz_median=median(inside[Samples.memory_clock_mhz]),
        power_w_median=median(inside[POWER[power_from]]) if power_from and long_enough else None,
        power_from=power_from,
        temperature_c_median=median(inside[Samples.temperature_c]),
        energy_j=energy_j,
        energy_from=energy_from,
        energy_j_per_token=energy_j / tokens if energy_j is not None and tokens else None,
        throttle=reason_shares(inside),
    )


def gpu_of(samples: pl.DataFrame, manifest: Manifest) -> str | None:
    """Return the GPU whose samples count: the run's own, else the only one sampled.

    Null where the run names its GPUs and none of them was sampled: another's samples are no use.
    """
    present = samples[Samples.gpu_uuid].drop_nulls().unique(maintain_order=True).to_list()
    named = [gpu.uuid for gpu in manifest.gpus if gpu.uuid is not None]
    if named:
        return next((uuid for uuid in named if uuid in present), None)
    return str(present[0]) if len(present) == 1 else None


def slowdowns(window: SampleWindow | None) -> list[str]:
    """Return in words what slowed the card during a good part of the window."""
    if window is None:
        return []
    return [
        f"{words}: {100 * share:.0f} % of the samples in the {window.window} window"
        for words, names in SLOWDOWNS.items()
        if (share := max(window.throttle.get(name, 0.0) for name in names)) > SLOWED_SHARE
    ]


def integrate(samples: pl.DataFrame, column: str, window: Window) -> float | None:
    """Return the trapezoid of power over the window in J, interpolated at both ends.

    Null where no sample lies beyond an end, or the sampler was silent for too long.
    """
    times = samples[Samples.time_ns].to_numpy()
    if len(times) < 2 or times[0] > window.start_ns or times[-1] < window.end_ns:
        return None
    first = int(np.searchsorted(times, window.start_ns, side="right")) - 1
    last = int(np.searchsorted(times, window.end_ns, side="left"))
    if np.diff(times[first : last + 1]).max(initial=0) > LONGEST_SILENCE_NS:
        return None
    # Relative to the window's start, so that floats keep every nanosecond.
    at = (times - window.start_ns).astype(np.float64)
    inner = at[(at > 0) & (at < window.dur_ns)]
    grid = np.concatenate([[0.0], inner, [float(window.dur_ns)]])
    watts = np.interp(grid, at, samples[column].to_numpy())
    return float(np.trapezoid(watts, grid) / 1e9)


def _energy(
    manifest: Manifest, mine: pl.DataFrame, window: Window, power_from: str | None
) -> tuple[str | None, float | None]:
    """Return the counter's joules over the clean stage, else the integral of the power."""
    if window.name == CLEAN_STAGE and manifest.energy is not None:
        return "counter", manifest.energy.energy_mj / MJ_PER_J
    if power_from is None or window.dur_ns < SHORTEST_POWER_WINDOW_NS:
        return None, None
    column = POWER[power_from]
    joules = integrate(mine.filter(pl.col(column).is_not_null()), column, window)
    return (None, None) if joules is None else ("samples", joules)


def _tokens(passes: pl.DataFrame, window: Window) -> int | None:
    """Return tokens generated in the window, or fed in where nothing but prefills ran."""
    inside = passes.filter(
        (pl.col(Passes.stage) == CLEAN)
        & pl.col(Passes.start_ns).is_between(window.start_ns, window.end_ns)
        # The joules are of one GPU, the first rank's.
        & (pl.col(Passes.rank) == passes[Passes.rank].min())
    )
    decodes = bool((inside[Passes.phase] == DECODE).any())
    counted = inside[Passes.batch if decodes else Passes.tokens]
    return int(counted.sum()) if len(counted) and not counted.null_count() else None


def reason_shares(rows: pl.DataFrame) -> dict[str, float]:
    """Return each of the driver's reasons with its share of the samples, those that occur."""
    masks = rows[Samples.throttle_reasons].drop_nulls().to_numpy()
    if not len(masks):
        return {}
    bits = {name: bit for bit, name in REASONS.items()} | {UNKNOWN_REASON: ~sum(REASONS)}
    shares = {name: float(np.mean((masks & bit) != 0)) for name, bit in bits.items()}
    return {name: share for name, share in shares.items() if share > 0}
