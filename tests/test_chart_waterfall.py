"""What a waterfall shows: each part from where the last ended, small roles together."""

import pytest

from whichwall.analyze.charts.theme import svg
from whichwall.analyze.charts.waterfall import waterfall as drawn
from whichwall.analyze.waterfall import waterfall
from whichwall.schemas.account import Account, AccountPart

US = 1000


def an_account(*parts: tuple[str, str | None, int]) -> Account:
    listed = [AccountPart(kind, detail, us * US) for kind, detail, us in parts]
    return Account(
        point=0, rank=0, device=0, phase="decode", of="clean",
        step_ns=sum(part.ns for part in listed), parts=listed, scale=None, graph_nodes=0,
        node_idle_ns=None, node_idle_measured=None, expected_ns=None, error=None, notes=[],
    )  # fmt: skip


STEP = an_account(
    ("floor", "bytes", 200), ("kernels", "norm", 300), ("kernels", "rope", 5),
    ("kernels", "mask", 2), ("kernels", "lm_head", -100), ("graph_idle", None, 50),
    ("idle", "launch", 600), ("host", None, 43), ("remainder", None, -100),
)  # fmt: skip


def test_each_part_begins_where_the_last_ended_and_the_step_is_the_whole() -> None:
    assert waterfall(STEP).rows() == [
        ("floor, bytes", "bytes", 0.0, 0.2, "200 µs  ·  20.0 %"),
        ("norm over its floor", "norm", 0.2, 0.5, "300 µs  ·  30.0 %"),
        ("2 small roles over their floors", "kernels", 0.5, 0.507, "7.00 µs  ·  0.7 %"),
        ("lm_head over its floor", "lm_head", 0.507, 0.407, "−100 µs"),
        ("idle between nodes of a graph", "graph", 0.407, 0.457, "50.0 µs  ·  5.0 %"),
        ("idle, launched too late", "launch", 0.457, 1.057, "600 µs  ·  60.0 %"),
        ("host, before and after the GPU", "host", 1.057, 1.1, "43.0 µs  ·  4.3 %"),
        ("remainder", "remainder", 1.1, 1.0, "−100 µs"),
        ("clean decode step", "step", 0.0, 1.0, "1.00 ms"),
    ]


def test_a_single_small_role_keeps_its_name() -> None:
    names = waterfall(an_account(("kernels", "norm", 300), ("kernels", "rope", 1)))["name"]

    assert names.to_list() == ["norm over its floor", "rope over its floor", "clean decode step"]


@pytest.mark.parametrize("name", ["floor, bytes", "lm_head over its floor", "remainder"])
def test_every_part_is_named_in_the_picture(name: str) -> None:
    assert f">{name}<" in svg(drawn(waterfall(STEP), "the title", []))
