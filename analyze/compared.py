"""Put what was measured of two points, or of two whole runs, side by side."""

from collections.abc import Sequence

from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.sampled import REASONS, UNKNOWN_REASON
from whichwall.analyze.sides import groups, sides, timed_points
from whichwall.schemas.comparison import PointSide, Quantity, RoleChange
from whichwall.schemas.experiments import Reached
from whichwall.schemas.gaps import CAUSES
from whichwall.schemas.samples import Samples
from whichwall.schemas.summary import Floor, RoleTotal, StepGroup
from whichwall.schemas.sweep import Sweep

NS, COUNT, RATIO, SHARE = "ns", "", "×", "share"

Known = dict[str, tuple[float | None, str]]  # name -> value and unit


def quantities(
    a: ReportInputs, b: ReportInputs, mine: PointSide, other: PointSide
) -> list[Quantity]:
    """Return the quantities of a point that either side knows, in a fixed order."""
    return _beside(_of_point(a, mine), _of_point(b, other))


def run_quantities(a: ReportInputs, b: ReportInputs) -> list[Quantity]:
    """Return clocks, power, energy and waits of the whole runs, those that either side knows."""
    return _beside(_of_run(a), _of_run(b))


def limits(a: ReportInputs, b: ReportInputs) -> list[Quantity]:
    """Return the measured limits that either side has, by name and type."""
    return _beside(_of_limits(a.summary.ceilings), _of_limits(b.summary.ceilings))


def roles(a: ReportInputs, b: ReportInputs, mine: PointSide, other: PointSide) -> list[RoleChange]:
    """Return GPU time by role, the largest change first; none unless both sides were traced."""
    left, right = _roles(a, mine), _roles(b, other)
    if not left or not right:
        return []
    nothing = (0.0, 0.0)
    found = []
    for role in {**left, **right}:
        (a_ns, a_kernels), (b_ns, b_kernels) = left.get(role, nothing), right.get(role, nothing)
        found.append(RoleChange(role, a_ns, b_ns, b_ns - a_ns, a_kernels, b_kernels))
    return sorted(found, key=lambda one: (-abs(one.difference_ns), -one.a_ns, one.role))


def _roles(inputs: ReportInputs, side: PointSide) -> dict[str, tuple[float, float]]:
    group = groups(inputs).get((side.point, side.phase))
    if group is None or not group.count:
        return {}
    each = group.count
    return {t.role: (t.busy_ns / each, t.kernels / each) for t in _worked(group.roles)}


def _worked(totals: Sequence[RoleTotal]) -> list[RoleTotal]:
    return [total for total in totals if total.busy_ns > 0]


def _beside(a: Known, b: Known) -> list[Quantity]:
    """Return the quantities that a side knows at least, in their order."""
    found = []
    for name, (_, unit) in {**a, **b}.items():
        mine, other = a.get(name, (None, unit))[0], b.get(name, (None, unit))[0]
        # A cause or reason that neither side has says nothing.
        if not mine and not other:
            continue
        ratio = other / mine if mine and other is not None else None
        found.append(Quantity(name, unit, mine, other, ratio))
    return found


def _of_point(inputs: ReportInputs, side: PointSide) -> Known:
    group = groups(inputs).get((side.point, side.phase))
    row = _row(inputs, side)
    busy = group.busy_ns_median if group else None
    floor = _floor(inputs, side)
    least = floor.floor_ns if floor else None
    return {
        "step_ns": (side.step_ns, NS),
        "step_ns_p10": (side.step_ns_p10, NS),
        "step_ns_p90": (side.step_ns_p90, NS),
        "tokens_per_s": (_tokens_per_s(row, side.step_ns), "tokens/s"),
        "floor_ns": (least, NS),
        "times_floor": (side.step_ns / least if side.step_ns and least else None, RATIO),
        "busy_ns": (busy, NS),
        "idle_ns": (_idle(side.step_ns, busy), NS),
        "kernels": (group.kernels_median if group else None, COUNT),
        "launches": (group.launches_median if group else None, COUNT),
        "kernel_median_ns": (group.kernel_median_ns if group else None, NS),
        "traced_step_ns": (group.window_ns_median if group else None, NS),
        "gap_median_ns": (group.gap_median_ns if group else None, NS),
        **_gaps(group),
        "memory_bytes": (row.get(Sweep.memory_bytes), "bytes"),
        "setup_ns": (row.get(Sweep.setup_ns), NS),
    }


def _tokens_per_s(row: dict[str, float | None], step_ns: float | None) -> float | None:
    """Return the point's rate at the step that is compared."""
    rate, median_ns = row.get(Sweep.tokens_per_s), row.get(Sweep.step_ns)
    return rate * median_ns / step_ns if rate and median_ns and step_ns else None


def _idle(step_ns: float | None, busy_ns: float | None) -> float | None:
    """Return what the clean step leaves to idle; null where trace and stopwatch disagree."""
    if step_ns is None or busy_ns is None or busy_ns > step_ns:
        return None
    return step_ns - busy_ns


def _gaps(group: StepGroup | None) -> Known:
    """Return idle time by cause as traced: 0 of a cause that did not occur."""
    traced = group is not None and group.busy_ns_median is not None
    causes = group.gaps_by_cause_ns if group else {}
    return {f"gaps_{c}_ns": (causes.get(c, 0) if traced else None, NS) for c in CAUSES}


def _row(inputs: ReportInputs, side: PointSide) -> dict[str, float | None]:
    for row in inputs.sweep.iter_rows(named=True):
        if (row[Sweep.point], row[Sweep.phase]) == (side.point, side.phase):
            return dict(row)
    return {}


def _floor(inputs: ReportInputs, side: PointSide) -> Floor | None:
    place = (side.point, side.phase)
    found = inputs.summary.floors_by_phase
    return next((floor for floor in found if (floor.point, floor.phase) == place), None)


def _of_run(inputs: ReportInputs) -> Known:
    summary, window = inputs.summary, inputs.summary.samples
    # Of several points together a token stands for nothing.
    single = timed_points(sides(inputs)) == 1
    found: Known = {
        "ttft_ns": (summary.ttft_ns if single else None, NS),
        "tpot_ns": (summary.tpot_ns if single else None, NS),
    }
    if window is None:
        return found
    energy = window.energy_j_per_token if single else None
    found |= {
        "sm_clock_mhz": (window.sm_clock_mhz_median, "MHz"),
        "memory_clock_mhz": (window.memory_clock_mhz_median, "MHz"),
        "power_w": (window.power_w_median, "W"),
        "temperature_c": (window.temperature_c_median, "°C"),
        "energy_j_per_token": (energy, "J/token"),
    }
    told = inputs.samples[Samples.throttle_reasons].drop_nulls().len() > 0
    return found | {
        f"throttle_{name}": (window.throttle.get(name, 0.0) if told else None, SHARE)
        for name in (*REASONS.values(), UNKNOWN_REASON)
    }


def _of_limits(found: Sequence[Reached]) -> Known:
    """Return limits by name; of products, each type is one of its own."""
    known: Known = {}
    for one in found:
        name = f"{one.name} {one.dtype}" if one.unit.endswith("OP/s") else one.name
        known.setdefault(name, (one.value, one.unit))
    return known
