"""A decoder's pass as operators call it: what each call is, and the role and layer it has."""

import json
from collections.abc import Sequence

import polars as pl

from whichwall.schemas import roles as r
from whichwall.schemas.activities import Activities
from whichwall.schemas.kernels import KERNEL
from whichwall.schemas.model import Model
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame

HALF, FLOAT, LONG, LIST, NUMBER = "c10::Half", "float", "long int", "TensorList", "Scalar"

MODEL = Model(
    name="toy",
    model_type="toy",
    hidden=32,
    intermediate=80,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=8,
    vocab=500,
)

Call = tuple[str, Sequence[object], Sequence[str]]  # operator, input sizes, input types
Told = tuple[str, int | None]  # role, layer

PROLOGUE: list[tuple[Call, str]] = [
    (("aten::index_select", [[500, 32], [], [1]], [HALF, NUMBER, LONG]), r.EMBEDDING),
    (("aten::arange", [[], [], [], [0]], [NUMBER, NUMBER, NUMBER, LONG]), r.OTHER),
    (("aten::copy_", [[1, 1, 1], [1, 1, 1], []], [FLOAT, LONG, NUMBER]), r.ROPE),
    (("aten::bmm", [[1, 4, 1], [1, 1, 1]], [FLOAT, FLOAT]), r.ROPE),
    (("aten::cat", [[[1, 1, 4], [1, 1, 4]], []], [LIST, NUMBER]), r.ROPE),
    (("aten::cos", [[1, 1, 8]], [FLOAT]), r.ROPE),
    (("aten::sin", [[1, 1, 8]], [FLOAT]), r.ROPE),
]
NORM: list[tuple[Call, str]] = [
    (("aten::copy_", [[1, 1, 32], [1, 1, 32], []], [FLOAT, HALF, NUMBER]), r.NORM),
    (("aten::pow", [[1, 1, 32], []], [FLOAT, NUMBER]), r.NORM),
    (("aten::mean", [[1, 1, 32], [], [], []], [FLOAT, "ScalarList", NUMBER, ""]), r.NORM),
    (("aten::add", [[1, 1, 1], [], []], [FLOAT, "double", NUMBER]), r.NORM),
    (("aten::rsqrt", [[1, 1, 1]], [FLOAT]), r.NORM),
    (("aten::mul", [[1, 1, 32], [1, 1, 1]], [FLOAT, FLOAT]), r.NORM),
    (("aten::mul", [[32], [1, 1, 32]], [HALF, HALF]), r.NORM),
]


def turn(heads: int) -> list[tuple[Call, str]]:
    return [
        (("aten::mul", [[1, heads, 1, 8], [1, 1, 1, 8]], [HALF, HALF]), r.ROPE),
        (("aten::neg", [[1, heads, 1, 4]], [HALF]), r.ROPE),
        (("aten::cat", [[[1, heads, 1, 4], [1, heads, 1, 4]], []], [LIST, NUMBER]), r.ROPE),
        (("aten::add", [[1, heads, 1, 8], [1, heads, 1, 8], []], [HALF, HALF, NUMBER]), r.ROPE),
    ]


SQUARE: Call = ("aten::mm", [[1, 32], [32, 32]], [HALF, HALF])
SUM: Call = ("aten::add", [[1, 1, 32], [1, 1, 32], []], [HALF, HALF, NUMBER])
GATE: Call = ("aten::mm", [[1, 32], [32, 80]], [HALF, HALF])
APPEND: Call = ("aten::cat", [[[1, 2, 9, 8], [1, 2, 1, 8]], []], [LIST, NUMBER])
ATTEND: Call = (
    "aten::_flash_attention_forward",
    [[1, 4, 1, 8], [1, 2, 10, 8], [1, 2, 10, 8]],
    [HALF, HALF, HALF],
)
LAYER: list[tuple[Call, str]] = [
    *NORM,
    (SQUARE, r.QKV_PROJ),
    (("aten::mm", [[1, 32], [32, 16]], [HALF, HALF]), r.QKV_PROJ),
    (("aten::mm", [[1, 32], [32, 16]], [HALF, HALF]), r.QKV_PROJ),
    *turn(4),
    *turn(2),
    (APPEND, r.KV_CACHE),
    (APPEND, r.KV_CACHE),
    (ATTEND, r.ATTENTION),
    (SQUARE, r.O_PROJ),
    (SUM, r.RESIDUAL),
    *NORM,
    (GATE, r.GATE_UP_PROJ),
    (("aten::silu", [[1, 1, 80]], [HALF]), r.ACTIVATION),
    (GATE, r.GATE_UP_PROJ),
    (("aten::mul", [[1, 1, 80], [1, 1, 80]], [HALF, HALF]), r.ACTIVATION),
    (("aten::mm", [[1, 80], [80, 32]], [HALF, HALF]), r.DOWN_PROJ),
    (SUM, r.RESIDUAL),
]
EPILOGUE: list[tuple[Call, str]] = [
    *NORM,
    (("aten::mm", [[1, 32], [32, 500]], [HALF, HALF]), r.LM_HEAD),
    (("aten::argmax", [[1, 500], [], []], [HALF, NUMBER, NUMBER]), r.SAMPLING),
]
PASS: list[tuple[Call, Told]] = [
    *((call, (role, None)) for call, role in PROLOGUE),
    *((call, (role, 0)) for call, role in LAYER),
    *((call, (role, 1)) for call, role in LAYER),
    *((call, (role, None)) for call, role in EPILOGUE),
]
CALLS = [call for call, _ in PASS]
EXPECTED = [told for _, told in PASS]


def row(i: int, call: Call | None, **more: object) -> dict[str, object]:
    told: dict[str, object] = {}
    if call:
        op, dims, types = call
        told = {
            Activities.op_name: op,
            Activities.op_dims: json.dumps(dims),
            Activities.op_types: json.dumps(types),
        }
    return {
        Activities.point: 0,
        Activities.rank: 0,
        Activities.device: 0,
        Activities.stream: 7,
        Activities.kind: KERNEL,
        Activities.name: "kernel",
        Activities.start_ns: 1000 + 10 * i,
        Activities.end_ns: 1008 + 10 * i,
        Activities.dur_ns: 8,
        Activities.launch_start_ns: 10 * i,
        Activities.step: 0,
        **told,
        **more,
    }


def recording(calls: list[Call]) -> pl.DataFrame:
    return frame(Activities, [row(i, call) for i, call in enumerate(calls)])


def told(found: pl.DataFrame) -> list[Told]:
    return list(found.select(Roles.role, Roles.layer).iter_rows())
