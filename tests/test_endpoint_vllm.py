"""A real vLLM server on the CPU, in an environment of its own: measured and traced."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.conftest import ROOT
from tests.served_runs import clean
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.analyze.validate import validate
from whichwall.collect.collect import collect
from whichwall.collect.options import CollectOptions
from whichwall.schemas.completions import Completions
from whichwall.schemas.manifest import read_manifest

PYTHON = Path(os.environ.get("VLLM_VENV") or ROOT / ".venv-vllm") / "bin" / "python"
# A server starts within half a minute; only one that hangs takes as long as this.
PATIENCE_S = 240.0
CONFIG = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 128,
    "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 4096, "max_position_embeddings": 2048,
    "tie_word_embeddings": True, "torch_dtype": "float32",
}  # fmt: skip
VARIABLES = {
    "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
}  # fmt: skip

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="no vLLM: make vllm, or name its environment in VLLM_VENV"
)


@dataclass(frozen=True)
class Server:
    """A server that runs, and where it puts its traces."""

    url: str
    traces: Path

    def options(self, out: Path, mode: str, **more: Any) -> CollectOptions:
        given: dict[str, Any] = {
            "mode": mode,
            "engine": "openai",
            "url": self.url,
            "quick": True,
            "out": out,
        }
        return CollectOptions(**(given | {"prompt_tokens": 256} | more))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a tiny model of random weights, without a tokenizer, for all tests of this file."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "model").mkdir()
    (folder / "traces").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(CONFIG))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profiler = {"profiler": "torch", "torch_profiler_dir": str(folder / "traces")}
    command = [
        str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder / "model"),
        "--load-format", "dummy", "--skip-tokenizer-init", "--dtype", "float32",
        "--host", "127.0.0.1", "--port", str(port), "--enable-prompt-tokens-details",
        "--profiler-config", json.dumps(profiler),
    ]  # fmt: skip
    log = folder / "log"
    with log.open("wb") as file:
        child = subprocess.Popen(
            command, stdout=file, stderr=file, env={**os.environ, **VARIABLES},
            start_new_session=True,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, child, log)
        yield Server(url, folder / "traces")
    finally:
        os.killpg(child.pid, 15)
        child.wait()


def _wait_for(url: str, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with urlopen(f"{url}/v1/models"):
                return
        except (URLError, ConnectionError):
            time.sleep(0.5)
    pytest.fail(f"vLLM did not start: {log.read_text(errors='replace')[-2000:]}")


def test_a_server_is_measured_token_by_token_and_traced(server: Server, tmp_path: Path) -> None:
    run = collect(
        server.options(tmp_path / "run", "decode", new_tokens=8, trace_folder=server.traces)
    )

    facts = read_manifest(run)
    assert facts.server is not None
    assert (facts.server.made_by, facts.server.prompts, facts.server.fields_refused) == (
        "vllm", "ids", [],
    )  # fmt: skip
    assert facts.server.longest_tokens == CONFIG["max_position_embeddings"]
    assert facts.server.profiled == "traced by /start_profile"
    assert [rank.rank for rank in facts.ranks] == [0]
    assert {row[Completions.outcome] for row in clean(run)} == {"done"}
    assert {row[Completions.new_tokens] for row in clean(run)} == {8}
    assert validate(run).is_whole
    (point,) = analyze_to_folder(run)[0].summary.serving
    assert point.tpot is not None
    assert point.prompt_tokens_served == 256


def test_a_shared_prefix_comes_from_its_cache(server: Server, tmp_path: Path) -> None:
    found = analyze_to_folder(collect(server.options(tmp_path / "run", "prefix")))[0].summary.prefix

    assert found is not None
    assert found.failed == 0
    assert (found.cached_tokens_unique, found.cached_tokens_first) == (0, 0)
    assert (found.cached_tokens_later or 0) >= 192


def test_requests_in_flight_are_served_together(server: Server, tmp_path: Path) -> None:
    run = collect(
        server.options(tmp_path / "run", "batch", values="1,4", prompt_tokens=32, new_tokens=8)
    )

    one, four = analyze_to_folder(run)[0].summary.serving
    assert (one.lanes_busy or 0) > 0.5
    assert (four.lanes_busy or 0) > 2
    assert one.tokens_per_s is not None
    assert four.tokens_per_s is not None


def test_a_request_that_is_too_long_is_refused_with_the_servers_reason(
    server: Server, tmp_path: Path
) -> None:
    run = collect(server.options(tmp_path / "run", "prompt", prompt_tokens=None, values="32,9000"))

    points = analyze_to_folder(run)[0].summary.serving
    assert [point.outcome for point in points] == ["done", "refused"]
    assert "takes 2048 tokens" in (points[1].reason or "")
