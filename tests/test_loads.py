"""Work that keeps a card busy: what a few passes are, and to which point each belongs."""

from collections import Counter

import torch

from whichwall.collect.decoder import Decoder
from whichwall.collect.device import choose_device
from whichwall.collect.loads import Decoding, Load, Multiplying
from whichwall.collect.passes import PassLog
from whichwall.collect.progress import reporting
from whichwall.collect.workload import Workload
from whichwall.schemas.passes import Passes

CPU = choose_device("cpu")
PROMPT = torch.zeros(1, 4, dtype=torch.int64)


class Nothing(Decoder):
    """A decoder without a model."""

    def __init__(self) -> None: ...

    def prefill(self, tokens: torch.Tensor) -> tuple[torch.Tensor, object]:
        return tokens[:, -1:], None

    def step(self, tokens: torch.Tensor, cache: object) -> tuple[torch.Tensor, object]:
        return tokens, cache


def decoding(new_tokens: int) -> Decoding:
    logs = [PassLog(CPU, 1, point=n) for n in range(2)]
    return Decoding([Workload(Nothing(), log, PROMPT, new_tokens) for log in logs])


def multiplying(once_s: float) -> tuple[Multiplying, Counter[str]]:
    done: Counter[str] = Counter()
    logs = [PassLog(CPU, None, point=n) for n in range(2)]
    return Multiplying(lambda: done.update(["product"]), once_s, logs), done


def passes(load: Load) -> list[tuple[object, object, object]]:
    return [
        (row[Passes.point], row[Passes.stage], row[Passes.phase])
        for log in load.logs
        for row in log.rows
    ]


def test_a_few_steps_follow_those_that_wake_the_card() -> None:
    load = decoding(32)

    load.few(1)

    assert passes(load) == [
        (1, "warmup", "prefill"),
        *[(1, "warmup", "decode")] * 2,
        *[(1, "clean", "decode")] * 16,
    ]


def test_the_shortest_request_has_one_step_that_counts() -> None:
    load = decoding(2)

    load.few(0)

    assert passes(load) == [(0, "warmup", "prefill"), (0, "clean", "decode")]


def test_decoding_keeps_busy_with_whole_requests() -> None:
    load = decoding(3)

    with reporting() as reporter:
        load.keep_busy(1, 0.0, reporter)

    assert passes(load) == [(1, "warmup", "prefill"), *[(1, "warmup", "decode")] * 2]


def test_products_are_timed_several_to_a_pass() -> None:
    load, done = multiplying(0.01)

    load.few(0)

    assert passes(load) == [(0, "warmup", "matmul"), *[(0, "clean", "matmul")] * 4]
    assert done["product"] == 5 * 3


def test_products_keep_busy_until_the_time_is_over() -> None:
    load, done = multiplying(1.0)

    with reporting() as reporter:
        load.keep_busy(1, 0.01, reporter)

    assert done["product"] >= 1
    assert set(passes(load)) == {(1, "warmup", "matmul")}
