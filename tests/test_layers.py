import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.conftest import ROOT

TOP = ("analyze", "collect", "schemas")

TORCH = {"torch", "transformers"}
FRAMES = {"polars", "altair", "vl_convert"}


def modules(*tops: str) -> list[str]:
    """Return the dotted name of every module under the named folders."""
    paths = [p for top in tops for p in sorted((ROOT / top).rglob("*.py"))]
    names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in paths]
    return ["whichwall." + name.removesuffix(".__init__") for name in names]


def imported_after(statements: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter holds after the statements."""
    code = f"{statements}\nimport sys, json\njson.dump(sorted(sys.modules), sys.stdout)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=_environment()
    )
    assert run.returncode == 0, run.stderr
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def _environment() -> dict[str, str]:
    """Return our environment, in which a checkout that is not installed is importable."""
    return {**os.environ, "PYTHONPATH": str(ROOT / ".types")}


def _top_level_imports(name: str) -> set[str]:
    path = ROOT.joinpath(*name.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    body = ast.parse(path.read_text()).body
    plain = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    named = {node.module or "" for node in body if isinstance(node, ast.ImportFrom)}
    return {found.partition(".")[0] for found in plain | named}


def test_every_import_points_downwards() -> None:
    code = (
        "import sys; from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(cache_dir=None))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=_environment()
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "Contracts: 3 kept, 0 broken." in run.stdout


def test_analyze_and_schemas_import_neither_torch_nor_transformers() -> None:
    imports = "\n".join(f"import {name}" for name in modules("analyze", "schemas"))

    assert not imported_after(imports) & TORCH


def test_collect_imports_no_polars_and_no_altair() -> None:
    names = modules("collect")
    if not find_spec("torch"):
        names = [name for name in names if not _top_level_imports(name) & TORCH]

    assert not imported_after("\n".join(f"import {name}" for name in names)) & FRAMES


def test_the_program_itself_imports_nothing_heavy() -> None:
    heavy = {*TORCH, *FRAMES, "pyarrow", "numpy", "rich"}

    assert not imported_after("import whichwall, whichwall.cli") & heavy


@pytest.mark.parametrize("top", ["cli.py", "analyze", "collect", "benchmarks"])
def test_columns_are_named_as_strings_in_schemas_only(top: str) -> None:
    paths = [ROOT / top] if top.endswith(".py") else sorted((ROOT / top).rglob("*.py"))
    spelled = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if any(call in line for call in ('pl.col("', "pl.col('", 'pl.col(f"'))
    ]

    assert not spelled


def test_analyzing_a_run_does_not_import_pandas() -> None:
    code = (
        "import whichwall\n"
        "from whichwall.analyze.analysis import analyze\n"
        "analyze(whichwall.open('tests/data/golden-v1'))"
    )

    assert "pandas" not in imported_after(code)
