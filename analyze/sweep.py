"""Put the points of a run side by side: step and spread, floor and rates, waits, memory, trace."""

import polars as pl

from whichwall.analyze.floor import achieved
from whichwall.analyze.floors import Basis, dtype_of, floor_of
from whichwall.analyze.medians import median, median_ns
from whichwall.analyze.timings import BEGIN, LAST, TOKENS, requests, tpot
from whichwall.schemas.errors import InputError
from whichwall.schemas.model import Model
from whichwall.schemas.passes import CLEAN, DECODE, MATMUL, PREFILL, Passes
from whichwall.schemas.points import Points
from whichwall.schemas.run import frame
from whichwall.schemas.summary import Floor, StepGroup
from whichwall.schemas.sweep import Sweep
from whichwall.schemas.timings import Timings
from whichwall.schemas.weights import cache_numbers, dtype_bytes

Row = dict[str, object]
NS_PER_S = 1e9
# In this order the phases of a point are listed.
PHASES = (PREFILL, DECODE, MATMUL)
_VISIT_NS = "visit_ns"
# Facts of a point that its rows repeat.
_ASKED = (
    Points.point, Points.label, Points.engine, Points.attention, Points.dtype, Points.batch,
    Points.context_tokens, Points.prompt_tokens, Points.new_tokens, Points.outcome, Points.reason,
    Points.setup_ns, Points.memory_bytes,
)  # fmt: skip


def sweep(basis: Basis, passes: pl.DataFrame, groups: list[StepGroup]) -> pl.DataFrame:
    """Return `Sweep`: points in their order, the phases of each in the order of a request.

    Args:
        basis: what floors are worked out from; its timings are those of `passes`.
        passes: `Passes`, of which the clean ones count.
        groups: steps as traced, for what GPU work a point's step holds.
    """
    clean = passes.filter(pl.col(Passes.stage) == CLEAN)
    timed = basis.timings.filter(pl.col(Timings.stage) == CLEAN)
    rows: list[Row] = []
    for point in basis.points.sort(Points.point).iter_rows(named=True):
        asked = {name: point[name] for name in _ASKED}
        mine = timed.filter(pl.col(Timings.point) == point[Points.point])
        mine = mine.filter(pl.col(Timings.rank) == pl.col(Timings.rank).min())
        found = {row[Timings.phase]: row for row in mine.iter_rows(named=True)}
        if not found:
            rows.append(asked | {Sweep.visits: 0, Sweep.passes: 0})
            continue
        own = _of(clean, mine)
        waits = _waits(own)
        rows += [
            asked | waits | _row(basis, own, groups, asked, found[phase])
            for phase in PHASES
            if phase in found
        ]
    return frame(Sweep, rows)


def _row(basis: Basis, clean: pl.DataFrame, groups: list[StepGroup], asked: Row, timed: Row) -> Row:
    """Return what one phase of a point adds to what was asked for."""
    point, rank = _int(timed[Timings.point]), _int(timed[Timings.rank])
    phase, step = str(timed[Timings.phase]), _int(timed[Timings.wall_ns_median])
    floor = floor_of(basis, point, rank, phase).floor
    traced = next((g for g in groups if (g.point, g.phase) == (point, phase) and g.count), None)
    of_phase = clean.filter(pl.col(Passes.phase) == phase)
    visits = of_phase.group_by(Passes.visit).agg(pl.col(Passes.wall_ns).median().alias(_VISIT_NS))
    return {
        Sweep.phase: phase,
        Sweep.visits: visits.height,
        Sweep.passes: timed[Timings.count],
        Sweep.step_ns: step,
        Sweep.step_ns_p10: timed[Timings.wall_ns_p10],
        Sweep.step_ns_p90: timed[Timings.wall_ns_p90],
        Sweep.visit_ns_lowest: round(_float(visits[_VISIT_NS].min())),
        Sweep.visit_ns_highest: round(_float(visits[_VISIT_NS].max())),
        Sweep.gpu_ns: timed[Timings.gpu_ns_median],
        **_throughput(phase, timed, step),
        Sweep.cache_bytes: _cache_bytes(basis, asked, phase, timed),
        **_floor(floor, step),
        Sweep.busy_ns: traced.busy_ns_median if traced else None,
        Sweep.kernels: traced.kernels_median if traced else None,
        Sweep.launches: traced.launches_median if traced else None,
    }


def _throughput(phase: str, timed: Row, step_ns: int) -> Row:
    """Return tokens a second: generated in a decode step, fed in a prefill."""
    batch = timed[Timings.batch]
    tokens = batch if phase == DECODE else timed[Timings.tokens]
    if phase == MATMUL or tokens is None or not batch or not step_ns:
        return {}
    rate = _float(tokens) * NS_PER_S / step_ns
    return {Sweep.tokens_per_s: rate, Sweep.tokens_per_s_each: rate / _float(batch)}


def _cache_bytes(basis: Basis, asked: Row, phase: str, timed: Row) -> int | None:
    """Return the size of the cache that a decode step finds, or that a prefill leaves."""
    model, batch = basis.model, timed[Timings.batch]
    if phase == DECODE:
        tokens = asked[Points.context_tokens] or timed[Timings.context_tokens]
    else:
        tokens = asked[Points.prompt_tokens]
    if model is None or batch is None or tokens is None or phase == MATMUL:
        return None
    dtype = dtype_of(basis.points, model, _int(asked[Points.point]))
    each = _bytes_of_a_token(model, dtype)
    return None if each is None else round(_float(batch) * _float(tokens)) * each


def _bytes_of_a_token(model: Model, dtype: str | None) -> int | None:
    if dtype is None:
        return None
    try:
        return model.layers * cache_numbers(model) * dtype_bytes(dtype)
    except InputError:  # a type without a known width has no known bytes
        return None


def _floor(floor: Floor | None, step_ns: int) -> Row:
    if floor is None:
        return {}
    gbps, tflops = achieved(floor, step_ns)
    return {
        Sweep.floor_ns: floor.floor_ns,
        Sweep.floor_bytes: floor.bytes,
        Sweep.floor_flops: floor.flops,
        Sweep.cached_weights: floor.cached_weights,
        Sweep.times_floor: step_ns / floor.floor_ns if floor.floor_ns and step_ns else None,
        Sweep.achieved_gbps: gbps,
        Sweep.achieved_tflops: tflops,
        Sweep.intensity: floor.flops / floor.bytes if floor.bytes else None,
    }


def _of(clean: pl.DataFrame, timed: pl.DataFrame) -> pl.DataFrame:
    """Keep the passes of one point on its first rank."""
    point, rank = timed.select(Timings.point, Timings.rank).row(0)
    return clean.filter((pl.col(Passes.point) == point) & (pl.col(Passes.rank) == rank))


def _waits(passes: pl.DataFrame) -> Row:
    """Return TTFT, TPOT and the whole of the longest requests of a point."""
    prefills = passes.filter(pl.col(Passes.phase) == PREFILL)[Passes.wall_ns]
    found = requests(passes)
    whole = found.filter(pl.col(TOKENS) == pl.col(TOKENS).max())
    several = whole.filter(pl.col(TOKENS) > 1)
    return {
        Sweep.ttft_ns: median_ns(prefills),
        Sweep.tpot_ns: median_ns(several.select(tpot()).to_series()),
        Sweep.request_ns: median_ns(whole.select(pl.col(LAST) - pl.col(BEGIN)).to_series()),
        Sweep.request_tokens: _whole(median(whole[TOKENS])),
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _float(value: object) -> float:
    assert isinstance(value, (int, float))
    return float(value)
