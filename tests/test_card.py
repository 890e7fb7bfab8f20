"""What is run without a model: its point, its folder and its command."""

from pathlib import Path

import pytest

from whichwall.collect.card import resolve_card
from whichwall.collect.options import CollectOptions, default_out
from whichwall.schemas.errors import UsageError


def test_the_command_of_a_run_without_a_model_names_none() -> None:
    card = resolve_card(CollectOptions(mode="ceilings", device="cpu", quick=True))

    assert card.origin().command == (
        "whichwall collect --mode ceilings --dtype float32 --device cpu "
        "--sample-interval-ms 100 --quick"
    )
    assert card.origin().model is None


def test_the_command_says_what_heated_the_card() -> None:
    card = resolve_card(CollectOptions(mode="clocks", work="matmul", device="cpu"))

    assert card.origin().command == (
        "whichwall collect --mode clocks --work matmul --dtype float32 --device cpu "
        "--sample-interval-ms 100"
    )


def test_a_folder_without_a_model_is_named_by_mode_device_and_time() -> None:
    assert default_out("ceilings", None, "NVIDIA H200", "20260101T000000Z") == Path(
        "traces/ceilings-nvidia-h200-20260101T000000Z"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (CollectOptions(mode="clocks", work="poetry"), "--work poetry: not built"),
        (CollectOptions(mode="decode", work="matmul"), "--work matmul: goes with --mode clocks"),
        (CollectOptions(mode="clocks", new_tokens=1), "--new-tokens 1: must be at least 2"),
        (CollectOptions(mode="tax", new_tokens=1), "--new-tokens 1: must be at least 2"),
    ],
)
def test_work_that_cannot_be_is_refused(options: CollectOptions, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        options.check()

    assert str(refused.value).startswith(message)
