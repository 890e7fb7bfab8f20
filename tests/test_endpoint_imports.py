"""A server is measured without torch: none of its modules may load it."""

from tests.conftest import ROOT
from tests.test_layers import TORCH, imported_after


def test_measuring_a_server_loads_neither_torch_nor_transformers() -> None:
    paths = sorted((ROOT / "collect" / "endpoint").glob("*.py"))
    names = [f"whichwall.collect.endpoint.{path.stem}" for path in paths if path.stem != "__init__"]

    loaded = imported_after("\n".join(f"import {name}" for name in [*names, "whichwall.cli"]))

    assert "httpx2" in loaded
    assert not loaded & TORCH
