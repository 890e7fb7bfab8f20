import numpy as np

from whichwall.analyze.roles.dims import Dims
from whichwall.analyze.roles.flat_norms import are_norms_flat
from whichwall.analyze.roles.operators import Operator, Shape

DIMS = Dims(hidden=32, vocab=500, heads=4, kv_heads=4, head_dim=8, inner=frozenset({80}))


def op(word: str, *shapes: Shape) -> Operator:
    return Operator(word, shapes, ("c10::Half",) * len(shapes))


PROJECT, UP, DOWN = (op("mm", (1, n), (n, m)) for n, m in ((32, 32), (32, 80), (80, 32)))
NORM = [op("pow", (1, 1, 32)), op("mean", (1, 1, 32)), op("mul", (1, 1, 32), (1, 1, 1))]
ADD = op("add", (1, 1, 32), (1, 1, 32))
ATTEND = op("scaled_dot_product_attention", (1, 4, 1, 8), (1, 4, 9, 8), (1, 4, 9, 8))
MLP = [UP, DOWN]


def told(*sequence: Operator | None, dims: Dims = DIMS) -> bool:
    return are_norms_flat(sequence, np.arange(len(sequence)), dims)


def test_norms_between_two_projections_are_of_queries_and_keys() -> None:
    flat = [PROJECT, *NORM, PROJECT, *NORM, PROJECT, ATTEND, PROJECT, ADD, *NORM, *MLP, ADD]
    assert told(*NORM, *flat)


def test_norms_of_the_residual_stream_are_not() -> None:
    plain = [PROJECT, PROJECT, PROJECT, ATTEND, PROJECT, ADD, *NORM, *MLP, ADD]
    assert not told(*NORM, *plain)


def test_a_norm_of_what_attention_adds_is_not() -> None:
    after = [PROJECT, PROJECT, PROJECT, ATTEND, PROJECT, *NORM, ADD, *NORM, *MLP, *NORM, ADD]
    assert not told(*NORM, *after)


def test_a_norm_ahead_of_an_mlp_beside_attention_is_not() -> None:
    assert not told(*NORM, PROJECT, PROJECT, PROJECT, ATTEND, PROJECT, *NORM, *MLP, ADD, ADD)


def test_a_norm_that_adds_a_stream_is_not() -> None:
    fused = op("fused_add_rms_norm", (1, 32), (1, 32), (32,))
    assert not told(PROJECT, fused, PROJECT, fused, PROJECT)


def test_kernels_without_an_operator_tell_nothing() -> None:
    assert not told(None, None)
    assert not told(PROJECT, *NORM, PROJECT, dims=Dims())
