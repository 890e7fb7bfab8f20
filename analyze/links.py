"""Which launch and which operator stand behind each GPU activity.

A launch is found by correlation. An operator is found by External id where the file's External
ids can be trusted and the operator's interval holds the launch; else by containment: the
innermost operator on the launching thread at the moment of the launch. Arrows are never used.
"""

import polars as pl

from whichwall.analyze.containment import innermost
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import Kernels
from whichwall.schemas.launches import Launches
from whichwall.schemas.ops import Ops

# Before torch 2.5 an unlinked row carried its own correlation as External id, on nearly all GPU
# rows of a file; a sound file has such a coincidence on a few rows at most (kineto#873, #1001).
SELF_ID_SHARE = 0.9
# An id of 0 is how a record without a link is written (roctracer#100, kineto#520).
NO_LINK = 0

# Whatever the vendor calls it: cudaLaunchKernel, hipGraphLaunch, urEnqueueKernelLaunch.
LAUNCH_NAME = r"(?i)launch"
GRAPH_LAUNCH_NAME = r"(?i)graphlaunch"
COMMUNICATION_NAME = (
    r"(?i)nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|cross_device_reduce|multimem_|nvshmem"
)
BY_EXTERNAL_ID, BY_CONTAINMENT, BY_CAPTURE = "external_id", "containment", "capture"

PLACE = [Activities.point, Activities.rank]
ORDER = [
    Activities.point, Activities.rank, Activities.device, Activities.start_ns, Activities.end_ns,
]  # fmt: skip
_OP_TID, _OP_START, _OP_END, _CALL_EXTERNAL_ID = "op_tid", "op_start", "op_end", "call_external_id"


def external_ids_trusted(kernels: pl.DataFrame) -> bool:
    """Tell whether External ids mean operators, rather than repeat the row's correlation."""
    both = kernels.filter(
        pl.col(Kernels.external_id).is_not_null() & (pl.col(Kernels.correlation) != NO_LINK)
    )
    if not both.height:
        return True
    same = both.select((pl.col(Kernels.external_id) == pl.col(Kernels.correlation)).mean()).item()
    return bool(same < SELF_ID_SHARE)


def link(kernels: pl.DataFrame, launches: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """Return the activities, linked to launch and operator; steps are still unknown.

    Args:
        kernels: valid rows of `Kernels`.
        launches: rows of `Launches`, in file order; row numbers become `launch`.
        ops: rows of `Ops`, in file order; row numbers become `op`.
    """
    trusted = external_ids_trusted(kernels)
    linked = _with_launch(kernels, launches)
    linked = _with_op_id(linked, ops, trusted=trusted)
    linked = _with_op_by_containment(linked, launches, ops)
    described = ops.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias(Activities.op),
        pl.col(Ops.name).alias(Activities.op_name),
        pl.col(Ops.input_dims).alias(Activities.op_dims),
        pl.col(Ops.input_types).alias(Activities.op_types),
    )
    return (
        linked.join(described, on=Activities.op, how="left", maintain_order="left")
        .with_columns(pl.lit(None, pl.Int64).alias(Activities.step))
        .select(list(Activities.COLUMNS))
        .sort(ORDER, nulls_last=True, maintain_order=True)
    )


def _with_launch(kernels: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    calls = (
        launches.select(
            pl.int_range(pl.len(), dtype=pl.Int64).alias(Activities.launch),
            Launches.point,
            Launches.rank,
            Launches.correlation,
            pl.col(Launches.name).alias(Activities.launch_name),
            pl.col(Launches.tid).alias(Activities.launch_tid),
            pl.col(Launches.start_ns).alias(Activities.launch_start_ns),
            (pl.col(Launches.start_ns) + pl.col(Launches.dur_ns)).alias(Activities.launch_end_ns),
            pl.col(Launches.external_id).alias(_CALL_EXTERNAL_ID),
        )
        .filter(pl.col(Launches.correlation) != NO_LINK)
        .sort(~pl.col(Activities.launch_name).str.contains(LAUNCH_NAME), maintain_order=True)
        .unique([*PLACE, Launches.correlation], keep="first", maintain_order=True)
    )
    return kernels.join(
        calls, on=[*PLACE, Kernels.correlation], how="left", maintain_order="left"
    ).with_columns(
        (pl.col(Kernels.start_ns) + pl.col(Kernels.dur_ns)).alias(Activities.end_ns),
        pl.col(Activities.launch_name)
        .str.contains(GRAPH_LAUNCH_NAME)
        .fill_null(value=False)
        .alias(Activities.graph_replay),
        pl.col(Kernels.name).str.contains(COMMUNICATION_NAME).alias(Activities.communication),
    )


def _with_op_id(linked: pl.DataFrame, ops: pl.DataFrame, *, trusted: bool) -> pl.DataFrame:
    """Add the operator named by External id, the row's own first, then its launch's."""
    if not trusted:
        return linked.with_columns(
            pl.lit(None, pl.Int64).alias(Activities.op),
            pl.lit(None, pl.String).alias(Activities.op_link),
        )
    named = (
        ops.select(
            pl.int_range(pl.len(), dtype=pl.Int64).alias(Activities.op),
            Ops.point,
            Ops.rank,
            Ops.external_id,
            pl.col(Ops.tid).alias(_OP_TID),
            pl.col(Ops.start_ns).alias(_OP_START),
            (pl.col(Ops.start_ns) + pl.col(Ops.dur_ns)).alias(_OP_END),
        )
        .filter(pl.col(Ops.external_id) != NO_LINK)
        .unique([*PLACE, Ops.external_id], keep="first", maintain_order=True)
    )
    own = _op_of(linked, named, Kernels.external_id)
    calls = _op_of(linked, named, _CALL_EXTERNAL_ID)
    op = own.fill_null(calls)
    return linked.with_columns(
        op.alias(Activities.op),
        pl.when(op.is_not_null()).then(pl.lit(BY_EXTERNAL_ID)).alias(Activities.op_link),
    )


def _op_of(linked: pl.DataFrame, named: pl.DataFrame, key: str) -> pl.Series:
    """Return the operator that an id names, where its interval holds the launch."""
    time = pl.col(Activities.launch_start_ns)
    holds = (
        (pl.col(Activities.launch_tid) == pl.col(_OP_TID))
        & (pl.col(_OP_START) <= time)
        & (time <= pl.col(_OP_END))
    )
    return (
        linked.select(
            *PLACE,
            Activities.launch_tid,
            Activities.launch_start_ns,
            pl.col(key).alias(Ops.external_id),
        )
        .join(named, on=[*PLACE, Ops.external_id], how="left", maintain_order="left")
        # No launch on record: nothing speaks against the id.
        .select(pl.when(time.is_null() | holds).then(pl.col(Activities.op)))
        .to_series()
    )


def _with_op_by_containment(
    linked: pl.DataFrame, launches: pl.DataFrame, ops: pl.DataFrame
) -> pl.DataFrame:
    missing = linked.filter(
        pl.col(Activities.op).is_null() & pl.col(Activities.launch).is_not_null()
    ).select(pl.col(Activities.launch).unique().sort())
    if not missing.height or not ops.height:
        return linked
    wanted = missing.to_series()
    found = innermost(launches[wanted], ops)
    contained = pl.DataFrame({Activities.launch: wanted, _OP_TID: found})
    op = linked.select(Activities.launch).join(
        contained, on=Activities.launch, how="left", maintain_order="left"
    )[_OP_TID]
    return linked.with_columns(
        pl.col(Activities.op).fill_null(op).alias(Activities.op),
        pl.when(pl.col(Activities.op).is_not_null())
        .then(pl.col(Activities.op_link))
        .when(op.is_not_null())
        .then(pl.lit(BY_CONTAINMENT))
        .alias(Activities.op_link),
    )
