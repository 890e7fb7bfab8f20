import json

import pytest
from polars.testing import assert_frame_equal

from whichwall.analyze.roles.operator_roles import attribute_ops
from whichwall.schemas import roles as r
from whichwall.schemas.model import Model
from whichwall.schemas.ops import Ops
from whichwall.schemas.role_totals import OperatorRoleTotals
from whichwall.schemas.run import frame

FLOAT, LONG = "float", "long int"

MODEL = Model(
    name="toy",
    model_type="toy",
    hidden=32,
    intermediate=80,
    layers=1,
    heads=4,
    kv_heads=4,
    head_dim=8,
    vocab=500,
)


def op(
    name: str, start: int, dur: int, *sizes: list[int], tid: int = 1, types: tuple[str, ...] = ()
) -> dict[str, object]:
    return {
        Ops.point: 0,
        Ops.rank: 0,
        Ops.name: name,
        Ops.pid: 9,
        Ops.tid: tid,
        Ops.start_ns: start,
        Ops.dur_ns: dur,
        Ops.input_dims: json.dumps(sizes),
        Ops.input_types: json.dumps(types or [FLOAT] * len(sizes)),
    }


def totals(*rows: tuple[str, int, float | None, int]) -> list[dict[str, object]]:
    names = (
        OperatorRoleTotals.role,
        OperatorRoleTotals.self_ns,
        OperatorRoleTotals.share,
        OperatorRoleTotals.ops,
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def linear(start: int, inputs: int, outputs: int) -> list[dict[str, object]]:
    return [
        op("aten::linear", start, 100, [1, 5, inputs], [outputs, inputs]),
        op("aten::t", start + 5, 10, [outputs, inputs]),
        op("aten::addmm", start + 20, 70, [outputs], [5, inputs], [inputs, outputs]),
        op("aten::copy_", start + 25, 15, [5, outputs], [5, outputs]),
    ]


def test_time_goes_to_the_role_of_the_work_that_operators_are_part_of_or_call() -> None:
    rows = [
        op("aten::embedding", 0, 50, [500, 32], [1, 5], types=(FLOAT, LONG)),
        *linear(100, 32, 96),
        op("aten::view", 210, 10, [1, 5, 96]),
        op("aten::scaled_dot_product_attention", 300, 80, [1, 4, 5, 8], [1, 4, 5, 8]),
        op("aten::bmm", 310, 40, [4, 5, 8], [4, 8, 5]),
        *linear(400, 32, 32),
        *linear(500, 32, 80),
        op("aten::relu", 600, 20, [1, 5, 80]),
        *linear(700, 80, 32),
        *linear(800, 32, 500),
    ]
    found = attribute_ops(frame(Ops, rows), MODEL)
    whole = 50 + 5 * 100 + 10 + 80 + 20
    assert_frame_equal(
        found,
        frame(
            OperatorRoleTotals,
            totals(
                (r.EMBEDDING, 50, 50 / whole, 1),
                (r.QKV_PROJ, 110, 110 / whole, 5),
                (r.ATTENTION, 80, 80 / whole, 2),
                (r.O_PROJ, 100, 100 / whole, 4),
                (r.GATE_UP_PROJ, 100, 100 / whole, 4),
                (r.ACTIVATION, 20, 20 / whole, 1),
                (r.DOWN_PROJ, 100, 100 / whole, 4),
                (r.LM_HEAD, 100, 100 / whole, 4),
            ),
        ),
    )


def test_threads_nest_apart_and_what_nothing_explains_is_other() -> None:
    rows = [
        op("aten::silu", 0, 100, [1, 5, 80], tid=1),
        op("autograd::mystery", 10, 50, [3], tid=2),
    ]
    assert_frame_equal(
        attribute_ops(frame(Ops, rows), MODEL),
        frame(
            OperatorRoleTotals,
            totals((r.ACTIVATION, 100, 2 / 3, 1), (r.OTHER, 50, 1 / 3, 1)),
        ),
    )


def test_no_operators_have_no_roles() -> None:
    assert_frame_equal(attribute_ops(frame(Ops, []), MODEL), frame(OperatorRoleTotals, []))


@pytest.mark.parametrize("model", [MODEL, None])
def test_a_share_of_no_time_is_unknown(model: Model | None) -> None:
    found = attribute_ops(frame(Ops, [op("aten::silu", 5, 0, [1, 5, 80])]), model)
    assert found[OperatorRoleTotals.share].to_list() == [None]
