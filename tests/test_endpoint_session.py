"""Whole runs of a server: what is in them, what goes wrong on the way, and what is kept secret."""

import os
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.served import Served, serving
from tests.served_runs import asked, clean, codes, rows
from whichwall.analyze.analysis import analyze_to_folder
from whichwall.analyze.validate import validate
from whichwall.collect.collect import collect
from whichwall.collect.endpoint import plan, session
from whichwall.collect.endpoint.load import Span
from whichwall.collect.endpoint.plan import VisitPlan
from whichwall.collect.endpoint.visits import Visitor
from whichwall.collect.journal import FILE, folder_of
from whichwall.collect.options import CollectOptions
from whichwall.schemas.completions import Completions
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.manifest import read_manifest
from whichwall.schemas.points import Points
from whichwall.schemas.tokens import Tokens

# Requests of each lane in a visit, and visits of each point.
EACH, VISITS = 2, 2


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each lane send so many requests, however long they take; wait for nothing."""
    monkeypatch.setattr(plan, "QUICK", VisitPlan(VISITS, Span(0.0, EACH), 2))
    monkeypatch.setattr(session, "GONE_WAIT_S", 0.0)


def ends(run: Path) -> list[tuple[object, object]]:
    return [(row[Points.outcome], row[Points.reason]) for row in rows(run, Points)]


def test_a_run_has_its_requests_their_tokens_and_who_served_them(tmp_path: Path) -> None:
    with serving(usage="running", longest=4096, version="1.2") as served:
        run = collect(asked(served, tmp_path / "run"))

    manifest = read_manifest(run)
    assert manifest.server is not None
    assert (manifest.server.url, manifest.server.model) == (served.url, "toy")
    assert (manifest.server.version, manifest.server.longest_tokens) == ("1.2", 4096)
    assert manifest.command == (
        f"whichwall collect --mode decode --engine openai --url {served.url} --model toy "
        "--prompt-tokens 8 --new-tokens 4 --batch-size 1 --timeout-s 20 --sample-interval-ms 100 "
        "--quick"
    )
    assert len(clean(run)) == VISITS * EACH
    assert {(r[Completions.outcome], r[Completions.new_tokens]) for r in clean(run)} == {
        ("done", 4)
    }
    of_one = [
        r for r in rows(run, Tokens) if r[Tokens.completion] == clean(run)[0][Completions.index]
    ]
    assert [(row[Tokens.index], row[Tokens.tokens]) for row in of_one] == [(n, 1) for n in range(4)]


def test_a_run_is_whole_and_can_be_analyzed(tmp_path: Path) -> None:
    with serving() as served:
        run = collect(asked(served, tmp_path / "run"))

    assert validate(run).findings == []
    inputs, report = analyze_to_folder(run)
    assert inputs.summary.serving[0].done == VISITS * EACH
    assert inputs.summary.ttft_ns is not None
    assert inputs.summary.verdict.wall is None
    assert "no trace was recorded" in (inputs.summary.verdict.reason or "")
    assert (report / "waits.svg").exists()


def test_no_prompt_is_sent_twice(tmp_path: Path) -> None:
    with serving() as served:
        collect(asked(served, tmp_path / "run"))

        prompts = [tuple(body["prompt"]) for body in served.bodies]
    assert len(set(prompts)) == len(prompts)


@pytest.mark.parametrize(
    ("mode", "sizes"),
    [
        ("prefill", [(1, 8, 1)]),
        ("batch", [(1, 8, 4), (3, 8, 4)]),
        ("prompt", [(1, 1, 1), (1, 3, 1)]),
        ("output", [(1, 8, 1), (1, 8, 3)]),
    ],
)
def test_each_mode_varies_what_it_says(
    mode: str, sizes: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    values = {} if mode == "prefill" else {"values": "1,3"}
    with serving() as served:
        run = collect(asked(served, tmp_path / "run", mode, **values))

    columns = (Points.batch, Points.prompt_tokens, Points.new_tokens)
    assert [tuple(row[c] for c in columns) for row in rows(run, Points)] == sizes
    lanes = Counter((row[Completions.point], row[Completions.lane]) for row in clean(run))
    assert lanes == {
        (point, lane): VISITS * EACH
        for point, (batch, *_) in enumerate(sizes)
        for lane in range(batch)
    }


def test_points_are_visited_back_and_forth(tmp_path: Path) -> None:
    with serving() as served:
        run = collect(asked(served, tmp_path / "run", "output", values="1,2,3"))

    by_start = sorted(clean(run), key=lambda row: int(row[Completions.start_ns]))
    order = [(row[Completions.point], row[Completions.visit]) for row in by_start]
    assert list(dict.fromkeys(order)) == [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1)]


def test_a_shared_prefix_is_found_in_the_cache_and_unique_prompts_are_not(tmp_path: Path) -> None:
    with serving(caches=True) as served:
        run = collect(asked(served, tmp_path / "run", "prefix", prompt_tokens=64))

    inputs, _ = analyze_to_folder(run)
    found = inputs.summary.prefix
    assert found is not None
    assert (found.rounds, found.prefix_tokens, found.prompt_tokens) == (VISITS, 64, 80)
    assert found.cached_tokens_later is not None
    assert found.cached_tokens_later >= 64
    assert (found.cached_tokens_first or 0) < 8
    assert (found.cached_tokens_unique or 0) < 8
    assert "64 tokens of 80" in (inputs.summary.answer or "")


def test_a_point_that_is_longer_than_the_server_takes_is_not_tried(tmp_path: Path) -> None:
    with serving(longest=64) as served:
        run = collect(asked(served, tmp_path / "run", "prompt", values="8,64"))

    assert ends(run) == [
        ("done", None),
        ("refused", "the server takes 64 tokens: a prompt of 64 and 1 new tokens do not fit"),
    ]


def test_requests_that_fail_are_rows_and_count_in_no_time(tmp_path: Path) -> None:
    # The first two are the negotiation and the warm-up.
    with serving(statuses=(200, 200, 503)) as served:
        run = collect(asked(served, tmp_path / "run"))

    outcomes = Counter(row[Completions.outcome] for row in clean(run))
    assert outcomes == {"done": 3, "refused": 1}
    (point,) = analyze_to_folder(run)[0].summary.serving
    assert (point.requests, point.done, point.failures) == (4, 3, {"refused": 1})
    assert point.reasons == {"refused": "status 503, come back later"}
    assert point.ttft is not None
    assert point.ttft.count == 3
    assert "requests_failed" in codes(run)


def test_a_point_without_an_answer_is_refused_with_the_reason_and_said(tmp_path: Path) -> None:
    with serving(statuses=(200, *[503] * 9)) as served:
        run = collect(asked(served, tmp_path / "run"))

    assert ends(run) == [("refused", "1 request refused (status 503, come back later)")]
    assert (analyze_to_folder(run)[0].summary.answer or "").startswith("Not known: ")


def test_a_server_that_goes_away_ends_the_run_whole(tmp_path: Path) -> None:
    with serving(dies_after=5) as served:
        run = collect(asked(served, tmp_path / "run", "output", values="2,3"))

    assert [outcome for outcome, _ in ends(run)] == ["interrupted", "interrupted"]
    assert all("no longer answers" in str(reason) for _, reason in ends(run))
    assert {row[Completions.outcome] for row in clean(run)} >= {"done", "dropped"}
    assert "server_gone" in codes(run)
    assert validate(run).is_whole
    assert "stopped answering" in (analyze_to_folder(run)[0].summary.answer or "")
    assert not folder_of(run).exists()


def test_no_server_is_a_line_and_no_run(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        served = Served.__new__(Served)
        served.port = taken.getsockname()[1]
        with pytest.raises(CollectError, match="no server answers"):
            collect(asked(served, tmp_path / "run"))

    assert list(tmp_path.iterdir()) == []


def test_what_the_server_would_not_take_is_said(tmp_path: Path) -> None:
    refused = frozenset({"min_tokens"})
    with serving(refuses=refused, takes_ids=False, tokens_a_word=2.0) as served:
        run = collect(asked(served, tmp_path / "run"))

    server = read_manifest(run).server
    assert server is not None
    assert (server.fields_refused, server.prompts) == (["min_tokens"], "text")
    assert {"fields_refused", "prompt_is_text"} <= codes(run)
    assert {row[Completions.prompt_tokens_served] for row in clean(run)} == {8}


def test_no_secret_is_in_the_run_or_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with serving() as served:
        url = served.url.replace("http://", "http://someone:hidden@") + "/v1?token=hidden"
        run = collect(asked(served, tmp_path / "run", "output", values="1,2", url=url))

        assert all("token=hidden" in path for path in served.paths)
    written = b"".join(path.read_bytes() for path in run.iterdir())
    said = capsys.readouterr()
    for secret in ("sk-secret", "someone", "hidden"):
        assert secret.encode() not in written
        assert secret not in said.out + said.err


def test_a_key_is_sent_and_a_wrong_one_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(key="sk-right") as served:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
        with pytest.raises(UsageError) as refused:
            collect(asked(served, tmp_path / "run"))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-right")
        collect(asked(served, tmp_path / "run"))

    assert "sk-wrong" not in str(refused.value)
    assert "set OPENAI_API_KEY" in str(refused.value)


@pytest.mark.parametrize("key", ["sk-\u00e9", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {"OPENAI_API_KEY": key})
    with serving() as served, pytest.raises(UsageError, match="OPENAI_API_KEY: holds letters"):
        collect(asked(served, tmp_path / "run"))


def test_an_interrupted_sweep_goes_on_from_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with serving() as served:
        with monkeypatch.context() as patched:
            patched.setattr(Visitor, "visit", _interrupting(Visitor.visit))
            with pytest.raises(KeyboardInterrupt, match="2 visits are kept; go on with --resume"):
                collect(asked(served, out, "output", values="1,2"))
        assert (folder_of(out) / FILE).exists()

        run = collect(CollectOptions(resume=out))

    assert not folder_of(out).exists()
    assert ends(run) == [("done", None)] * 2
    visits = Counter((row[Completions.point], row[Completions.visit]) for row in clean(run))
    assert visits == {(point, visit): EACH for point in range(2) for visit in range(VISITS)}
    numbers = [(row[Completions.point], row[Completions.index]) for row in rows(run, Completions)]
    assert len(set(numbers)) == len(numbers)
    assert "sweep_resumed" in codes(run)
    assert validate(run).is_whole


def _interrupting(visit: Any) -> Any:
    made: list[Any] = []

    async def interrupted(*given: Any) -> Any:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(given)
        return await visit(*given)

    return interrupted


def test_a_sweep_with_a_secret_in_its_address_leaves_no_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Visitor, "visit", _interrupting(Visitor.visit))
    with serving() as served:
        url = served.url.replace("http://", "http://someone:hidden@")
        options = asked(served, tmp_path / "run", "output", values="1,2", url=url)
        with pytest.raises(KeyboardInterrupt):
            collect(options)

    assert list(tmp_path.iterdir()) == []


def test_a_run_is_named_by_mode_model_and_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving() as served:
        run = collect(replace(asked(served, tmp_path), out=None))

    assert run.name.startswith(f"decode-toy-127.0.0.1-{served.port}-")
