"""The fake vllm of these tests put where `import vllm` finds it, and taken away again."""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import ROOT
from whichwall.collect.device import choose_device
from whichwall.collect.engines.vllm_api import VARIABLES
from whichwall.collect.engines.vllm_decoder import VllmDecoder
from whichwall.collect.engines.vllm_model import VllmModel, build_vllm
from whichwall.collect.models import find_source
from whichwall.collect.options import VLLM
from whichwall.collect.point import Point

PLACE = ROOT / "tests" / "fake_vllm"
CPU = choose_device("cpu")


@contextmanager
def faked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield the fake's module, imported anew."""
    with monkeypatch.context() as patched:
        _forget()
        patched.syspath_prepend(str(PLACE))
        path = [str(PLACE), str(ROOT / ".types"), os.environ.get("PYTHONPATH", "")]
        patched.setenv("PYTHONPATH", os.pathsep.join(path))
        for name in (*VARIABLES, "VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_CPU_KVCACHE_SPACE"):
            patched.delenv(name, raising=False)
        yield importlib.import_module(VLLM)
        _forget()


def _forget() -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == VLLM]:
        del sys.modules[name]


def point(batch: int = 1, prompt: int = 8, new: int = 4) -> Point:
    return Point(0, VLLM, "auto", batch, prompt, new)


def model_for(*points: Point) -> VllmModel:
    """Return the smallest model with room for points; its engine has not started."""
    import torch

    model: VllmModel = build_vllm(find_source("tiny", "dummy"), CPU, torch.float32).module
    model.expect(points)
    return model


def decoder_for(*points: Point) -> VllmDecoder:
    return VllmDecoder(model_for(*points))
