"""Real H200 passes of many architectures: what their shapes say, against the right config."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import polars as pl
import pytest

from tests.conftest import ROOT, SHARED
from whichwall.analyze.dimensions import calls_of, contradictions
from whichwall.analyze.role_check import check_roles
from whichwall.analyze.roles.dims import FULL
from whichwall.analyze.roles.looks import dims_of
from whichwall.analyze.trace import read_trace
from whichwall.collect.importer import import_run
from whichwall.schemas.model import Model
from whichwall.schemas.run import open_run
from whichwall.schemas.summary import RoleCheck

RUNS = sorted(path for path in (ROOT / "tests" / "data" / "roles").iterdir() if path.is_dir())
TRACES = sorted((SHARED / "traces" / "roles").glob("*.json.gz"))
each_run = pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)


@cache
def read(path: Path) -> tuple[pl.DataFrame, pl.DataFrame, Model]:
    run = open_run(path)
    trace = read_trace(run)
    assert run.manifest.model is not None
    return calls_of(trace.activities, trace.ops), trace.roles, run.manifest.model


def checked(path: Path, *, given: bool) -> RoleCheck:
    run = open_run(path)
    if not given:
        run.manifest = msgspec.structs.replace(run.manifest, model=None)
    check = check_roles(run, read_trace(run))
    assert check is not None
    return check


def altered(model: Model) -> Iterator[Model]:
    """Yield the model with one dimension twice what it is, for each that a pass shows."""
    names = ["vocab", "hidden", "heads", "head_dim", "layers"]
    names += ["kv_heads"] if model.kv_lora_rank is None else ["kv_lora_rank", "v_head_dim"]
    names += ["experts", "experts_per_token", "expert_intermediate"] if model.experts else []
    names += ["intermediate"] if model.sparse_layers < model.layers else []
    names += ["positions"] if model.positions else []
    for name in names:
        yield msgspec.structs.replace(model, **{name: 2 * getattr(model, name)})


@each_run
def test_roles_are_as_right_by_the_shapes_alone_as_by_the_config(path: Path) -> None:
    alone, by_config = checked(path, given=False), checked(path, given=True)

    def shares(check: RoleCheck) -> tuple[float | None, ...]:
        return check.time_right, check.kernels_right, check.layers_right

    assert shares(alone) == shares(by_config)


@each_run
def test_the_right_config_contradicts_nothing(path: Path) -> None:
    assert contradictions(*read(path)) == []


@each_run
def test_a_config_with_one_dimension_wrong_is_contradicted(path: Path) -> None:
    calls, roles, model = read(path)
    missed = [other for other in altered(model) if not contradictions(calls, roles, other)]
    assert missed == []


@pytest.mark.skipif(not TRACES, reason="no handed traces: ../shared is absent")
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_the_right_config_of_a_handed_trace_contradicts_nothing(path: Path, tmp_path: Path) -> None:
    config = path.with_name(f"{path.name.split('_')[0]}.config.json")
    assert contradictions(*read(import_run([path], tmp_path / "run", model=config))) == []


INFERRED = (
    "hidden", "intermediate", "layers", "heads", "kv_heads", "head_dim", "vocab", "gated_mlp",
    "positions",
)  # fmt: skip


@each_run
def test_the_model_inferred_is_that_of_the_config_or_none_where_it_has_experts(path: Path) -> None:
    run = open_run(path)
    model = run.manifest.model
    run.manifest = msgspec.structs.replace(run.manifest, model=None)
    assert model is not None
    inferred = read_trace(run).model
    if model.assumed:
        pytest.skip("the config's own reading is a guess")
    assert (inferred is None) == (model.experts is not None)
    if inferred is not None:
        assert [getattr(inferred, f) for f in INFERRED] == [getattr(model, f) for f in INFERRED]


def test_norms_over_all_heads_are_inferred_of_the_models_that_have_them_alone() -> None:
    found = {path.name for path in RUNS if dims_of(read(path)[0], None).flat_norms}
    assert found == {path.name for path in RUNS if read(path)[2].qk_norm == FULL}
