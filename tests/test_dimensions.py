import msgspec
import polars as pl

from tests.decoder import CALLS, MODEL, recording
from whichwall.analyze.dimensions import calls_of, contradictions, dimensions
from whichwall.analyze.roles.attribute import attribute
from whichwall.schemas.activities import Activities
from whichwall.schemas.model import Model
from whichwall.schemas.ops import Ops
from whichwall.schemas.roles import Roles
from whichwall.schemas.run import frame
from whichwall.schemas.summary import Dimensions

WORK = recording(CALLS)
ROLES = attribute(WORK, MODEL)

OF_CONFIG = Dimensions(
    source="config",
    hidden=32,
    vocab=500,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=8,
    value_dim=None,
    inner=[80],
    experts=None,
    experts_per_token=None,
    latent=[],
    shards=1,
    inferred_from={"all": "the model given"},
)


def other(**dimensions: int) -> Model:
    return msgspec.structs.replace(MODEL, **dimensions)


def said(given: Model | None, roles: pl.DataFrame = ROLES) -> list[str]:
    return [one.message for one in contradictions(WORK, roles, given)]


def test_a_config_wins_and_agrees_with_the_shapes_of_its_model() -> None:
    assert dimensions(WORK, ROLES, MODEL) == OF_CONFIG
    assert said(MODEL) == []


def test_without_a_config_the_same_comes_from_the_shapes_and_says_from_which() -> None:
    assert dimensions(WORK, ROLES, None) == msgspec.structs.replace(
        OF_CONFIG,
        source="shapes",
        inferred_from={
            "hidden, vocab": "index_select [[500, 32], [1]]",
            "kv_heads, head_dim": "cat [[1, 2, 9, 8], [1, 2, 1, 8]]",
            "heads": "mul [[1, 4, 1, 8], [1, 1, 1, 8]]",
            "inner": "weights [32, n] and [n, 32], n in [80]",
        },
    )
    assert said(None) == []


def test_a_config_that_the_shapes_contradict_is_called_so_with_what_was_seen() -> None:
    assert said(other(hidden=64, vocab=900)) == [
        "the config says hidden 64, shapes 32 (index_select [[500, 32], [1]]); "
        "vocab 900, shapes 500 (index_select [[500, 32], [1]]): roles and floors go by the config"
    ]
    (one,) = contradictions(WORK, ROLES, other(kv_heads=1))
    assert (one.code, one.severity, one.count) == ("dimensions_differ", "warning", 1)


def test_a_padded_vocabulary_is_no_contradiction() -> None:
    assert said(other(vocab=450)) == []


def test_more_layers_than_the_config_has_contradict_it_fewer_only_in_a_whole_pass() -> None:
    more = (
        "the config says 1 layers, the order of kernels shows 2: roles and floors go by the config"
    )
    assert said(other(layers=1)) == [more]
    assert len(said(other(layers=24))) == 1
    inside = ROLES.filter(pl.col(Roles.layer).is_not_null())
    assert said(other(layers=24), inside) == []


def test_without_gpu_activity_dimensions_come_from_the_operators_of_the_cpu() -> None:
    rows: list[dict[str, object]] = [
        {Ops.point: 0, Ops.rank: 0, Ops.name: name, Ops.pid: 1, Ops.tid: 1, Ops.start_ns: i,
         Ops.dur_ns: 1, Ops.input_dims: dims, Ops.input_types: types}
        for i, (name, dims, types) in enumerate(
            WORK.select(Activities.op_name, Activities.op_dims, Activities.op_types).iter_rows()
        )
    ]  # fmt: skip
    calls = calls_of(WORK.clear(), frame(Ops, rows))
    found = dimensions(calls, ROLES.clear(), None)
    assert found is not None
    assert (found.hidden, found.vocab, found.layers) == (32, 500, None)


def test_nothing_called_has_no_dimensions() -> None:
    assert dimensions(WORK.clear(), ROLES.clear(), None) is None


def test_more_key_heads_than_a_cache_holds_contradict_it_also_if_every_query_has_one() -> None:
    everyone = WORK.with_columns(
        pl.col(Activities.op_dims).str.replace_all("[1, 2, ", "[1, 4, ", literal=True)
    )
    (one,) = contradictions(everyone, ROLES, MODEL)
    assert one.message.startswith("the config says kv_heads 2, shapes 4 (cat [[1, 4, 9, 8]")


def test_keys_repeated_for_a_call_of_attention_contradict_nothing() -> None:
    repeated = WORK.filter(pl.col(Activities.op_name) != "aten::cat").with_columns(
        pl.col(Activities.op_dims).str.replace_all("[1, 2, 10, 8]", "[1, 4, 10, 8]", literal=True)
    )
    assert contradictions(repeated, ROLES, MODEL) == []


def test_an_unknown_architecture_is_held_to_the_heads_that_its_config_states() -> None:
    def kv_heads_of_unknown(count: int) -> list[str]:
        return said(msgspec.structs.replace(MODEL, kv_heads=count, assumed=True))

    assert kv_heads_of_unknown(4) == []  # as many as query heads: perhaps for want of a number
    (one,) = kv_heads_of_unknown(1)
    assert "kv_heads 1, shapes 2" in one
