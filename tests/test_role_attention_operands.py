import polars as pl
import pytest

from whichwall.analyze.roles.attention_operands import operand_roles
from whichwall.schemas import roles as r

FEEDS = "triton_poi_fused__scaled_dot_product_flash_attention_"
GROUPED = f"{FEEDS}add_cat_clone_cos_expand_mul_neg_sin_where_"
ALIKE = f"{FEEDS}add_cat_cos_mul_neg_sin_where_"


def told(*names: str) -> list[str | None]:
    return operand_roles(pl.Series("name", names, dtype=pl.String)).to_list()


def test_operands_of_an_attention_are_queries_then_keys_and_values_then_the_mask() -> None:
    layer = [f"{GROUPED}{number}" for number in (5, 6, 6, 7)]
    assert told("mm", *layer, "attend", *layer) == [
        *(None, r.ROPE, r.KV_CACHE, r.KV_CACHE, r.MASK),
        *(None, r.ROPE, r.KV_CACHE, r.KV_CACHE, r.MASK),
    ]


def test_keys_may_need_another_kernel_than_values() -> None:
    assert told(*(f"{GROUPED}{number}" for number in (5, 6, 7, 8))) == [
        *(r.ROPE, r.KV_CACHE, r.KV_CACHE, r.MASK),
    ]


def test_what_runs_twice_at_the_end_is_no_mask() -> None:
    # A mask for all layers is made ready once, ahead of the first attention.
    assert told(*(f"{GROUPED}{number}" for number in (5, 6, 6))) == [r.ROPE, r.KV_CACHE, r.KV_CACHE]


def test_keys_without_groups_are_rotated_as_queries_are() -> None:
    assert told(*(f"{ALIKE}{number}" for number in (5, 5, 7))) == [r.ROPE, r.ROPE, r.MASK]


@pytest.mark.parametrize(
    "names",
    [
        (f"{GROUPED}5", "mm", f"{GROUPED}6"),  # alone
        (f"{FEEDS}view_1", f"{FEEDS}view_2"),  # neither rotated, repeated nor chosen
        ("triton_poi_fused_add_cat_clone_where_1", "triton_poi_fused_add_cat_clone_where_2"),
        ("cudnn_generated_sdpa", "attend"),
        (),
    ],
)
def test_nothing_is_told_of_other_kernels(names: tuple[str, ...]) -> None:
    assert told(*names) == [None] * len(names)
