"""Say whether the card slowed itself under work, by the driver's reasons and the clock together."""

import polars as pl

from whichwall.analyze.medians import median
from whichwall.analyze.sampled import (
    HELD_BACK,
    POWER,
    SLOWED_SHARE,
    UNKNOWN_REASON,
    Window,
    gpu_of,
    reason_shares,
)
from whichwall.analyze.thresholds import CLOCK_FELL
from whichwall.schemas.experiments import ClockChange, Side
from whichwall.schemas.manifest import Manifest
from whichwall.schemas.passes import CLEAN, PREFILL, WARMUP, Passes
from whichwall.schemas.points import HOT, RESTED, Points
from whichwall.schemas.samples import Samples

# The end of the soak, in which the card has long settled: power and temperature do in seconds.
SOAK_END_NS = 10 * 10**9
# Readings are renewed about every 100 ms, so one tells of the time before it.
READING_NS = 100 * 10**6
# A few passes may fall between two readings; the nearest one still tells of them.
NEAR_NS = 500 * 10**6


def clock_change(
    points: pl.DataFrame, passes: pl.DataFrame, samples: pl.DataFrame, manifest: Manifest
) -> ClockChange | None:
    """Return both sides and the verdict; null where either was not timed clean.

    The driver's reasons are those of the end of the soak and of the hot passes. It slowed itself
    where one of them shows in at least `SLOWED_SHARE` of the samples and the clock lies below the
    highest of the run; it did not where neither is so. Where only one is, the reasons decide if
    the clock did not fall, and nothing is known if it fell without a reason.
    """
    rested, hot = (_passes_of(points, passes, label) for label in (RESTED, HOT))
    if not rested.height or not hot.height:
        return None
    uuid = gpu_of(samples, manifest)
    known = samples.filter(pl.col(Samples.gpu_uuid) == uuid) if uuid else samples.clear()
    mine = known.sort(Samples.time_ns)
    one, other = _side(RESTED, rested, mine), _side(HOT, hot, mine)
    soak = _inside(mine, _soak(passes, hot))
    shares = {name: share for name, share in reason_shares(soak).items() if name in HELD_BACK}
    highest = mine[Samples.sm_clock_mhz].max()
    highest = float(highest) if isinstance(highest, float) else None
    told = len(soak[Samples.throttle_reasons].drop_nulls())
    slowed, why = _verdict(shares, told, _settled_mhz(soak, other), highest)
    return ClockChange(
        rested=one,
        hot=other,
        step_ratio=other.step_ns / one.step_ns,
        clock_ratio=_ratio(other.sm_clock_mhz, one.sm_clock_mhz),
        highest_clock_mhz=highest,
        soak_samples=told,
        reasons=shares,
        slowed=slowed,
        why=why,
    )


def _verdict(
    shares: dict[str, float], told: int, clock: float | None, highest: float | None
) -> tuple[bool | None, str]:
    """Return whether it slowed itself, and why that is said."""
    if not told:
        return None, "the driver gave no clock event reasons while the card worked"
    fell = None if clock is None or highest is None else clock < CLOCK_FELL * highest
    given = {name: share for name, share in shares.items() if share >= SLOWED_SHARE}
    known = given.keys() - {UNKNOWN_REASON}
    named = ", ".join(name.replace("_", " ") for name in sorted(known or given))
    if given and fell is not False:
        return True, f"the driver gives {named} as the reason"
    if given:
        return False, f"the driver names {named}, but the clock stayed at its highest"
    if fell:
        return None, "the clock fell and the driver gives no reason for it"
    return False, "the driver gives no reason for a lower clock"


def _settled_mhz(soak: pl.DataFrame, hot: Side) -> float | None:
    """Return the clock of the settled card; the hot passes alone may lie between two readings."""
    found = median(soak[Samples.sm_clock_mhz])
    return hot.sm_clock_mhz if found is None else found


def _passes_of(points: pl.DataFrame, passes: pl.DataFrame, label: str) -> pl.DataFrame:
    """Return the clean passes of a point: those of its decode or matmul work."""
    numbers = points.filter(pl.col(Points.label) == label).select(Points.point)
    return passes.join(numbers, on=Passes.point, how="semi").filter(
        (pl.col(Passes.stage) == CLEAN) & (pl.col(Passes.phase) != PREFILL)
    )


def _side(label: str, passes: pl.DataFrame, samples: pl.DataFrame) -> Side:
    wall = passes[Passes.wall_ns]
    inside = _around(samples, _span(label, passes))
    power = next((c for c in POWER.values() if inside[c].drop_nulls().len()), None)
    return Side(
        label=label,
        phase=str(passes[Passes.phase][0]),
        passes=passes.height,
        step_ns=_ns(wall.quantile(0.5, "linear")),
        step_ns_p10=_ns(wall.quantile(0.1, "linear")),
        step_ns_p90=_ns(wall.quantile(0.9, "linear")),
        samples=inside.height,
        sm_clock_mhz=median(inside[Samples.sm_clock_mhz]),
        power_w=median(inside[power]) if power else None,
        temperature_c=median(inside[Samples.temperature_c]),
    )


def _span(name: str, passes: pl.DataFrame) -> Window:
    start = pl.col(Passes.start_ns)
    ends = passes.select(start.min(), (start + pl.col(Passes.wall_ns)).max().alias(Passes.wall_ns))
    first, last = ends.row(0)
    return Window(name, first, last)


def _soak(passes: pl.DataFrame, hot: pl.DataFrame) -> Window:
    """Return the end of the soak and the hot passes after it; without a soak, these alone."""
    clean = _span(HOT, hot)
    warm = passes.join(hot.select(Passes.point).unique(), on=Passes.point, how="semi").filter(
        (pl.col(Passes.stage) == WARMUP) & (pl.col(Passes.start_ns) < clean.start_ns)
    )
    if warm.is_empty():
        return clean
    begun = _span(WARMUP, warm)
    return Window(HOT, max(begun.start_ns, begun.end_ns - SOAK_END_NS), clean.end_ns)


def _inside(samples: pl.DataFrame, window: Window) -> pl.DataFrame:
    return samples.filter(pl.col(Samples.time_ns).is_between(window.start_ns, window.end_ns))


def _around(samples: pl.DataFrame, window: Window) -> pl.DataFrame:
    """Return the samples that tell of a window, else the nearest one to its end that is near."""
    late = Window(window.name, window.start_ns + READING_NS, window.end_ns + READING_NS)
    inside = _inside(samples, late)
    if inside.height:
        return inside
    near = Window(window.name, late.start_ns - NEAR_NS, late.end_ns + NEAR_NS)
    return _inside(samples, near).sort((pl.col(Samples.time_ns) - late.end_ns).abs()).head(1)


def _ns(value: float | None) -> int:
    assert value is not None
    return round(value)


def _ratio(value: float | None, of: float | None) -> float | None:
    return value / of if value is not None and of else None
