"""What a client saw where other runs have passes: the clean step, the window, tokens and joules."""

from pathlib import Path

import msgspec
import pytest

from tests.experiment_runs import BEGIN_NS, MS, S, a_run, completion, point, sampled
from tests.frames import MANIFEST, Row, table
from tests.golden import GPU
from whichwall.analyze.analysis import analyze
from whichwall.analyze.groups import FROM_COMPLETIONS, Clean
from whichwall.analyze.sampled import Window
from whichwall.analyze.served import clean_window, first_median, generated_tokens, served_steps
from whichwall.analyze.serving import serving
from whichwall.schemas.completions import Completions
from whichwall.schemas.manifest import ServerFacts
from whichwall.schemas.points import Points
from whichwall.schemas.run import frame
from whichwall.schemas.samples import Samples
from whichwall.schemas.serving import Served
from whichwall.schemas.tokens import Tokens

WARM = completion(0, 0, stage="warmup")


def one_point(lanes: int) -> list[Served]:
    """Return a point with one answer of three tokens, 2 ms apart."""
    tokens: list[Row] = [
        {Tokens.point: 0, Tokens.completion: 1, Tokens.index: n, Tokens.at_ns: at * MS}
        for n, at in enumerate((10, 12, 14))
    ]
    points, asked = table(Points, point(0, batch=lanes)), table(Completions, completion(0, 1))
    return serving(points, asked, table(Tokens, *tokens))


def test_the_clean_step_is_the_time_per_token_of_one_request_at_a_time() -> None:
    assert served_steps(one_point(1)) == {0: Clean(2 * MS, 2 * MS, 2 * MS, FROM_COMPLETIONS)}
    assert served_steps(one_point(4)) == {}


def test_the_first_point_speaks_for_the_run() -> None:
    assert first_median(one_point(1), lambda one: one.ttft) == 10 * MS
    assert first_median([], lambda one: one.ttft) is None


def test_the_clean_stage_is_from_the_first_clean_request_to_the_end_of_the_last() -> None:
    rows = table(Completions, WARM, completion(0, 1), completion(0, 3))

    assert clean_window(rows) == Window("clean", BEGIN_NS + 20 * MS, BEGIN_NS + 80 * MS)
    assert clean_window(table(Completions, WARM)) is None
    assert clean_window(frame(Completions, [])) is None


@pytest.mark.parametrize(
    ("more", "tokens"),
    [([], 6), ([completion(0, 9, outcome="dropped", new_tokens=None)], None)],
)
def test_tokens_in_a_window_are_known_if_those_of_each_request_are(
    more: list[Row], tokens: int | None
) -> None:
    rows = table(Completions, WARM, completion(0, 1), completion(0, 3), *more)

    assert generated_tokens(rows, Window("clean", BEGIN_NS + 20 * MS, BEGIN_NS + S)) == tokens
    assert generated_tokens(rows, None) is None


def test_energy_is_that_of_the_time_in_which_requests_were_answered(tmp_path: Path) -> None:
    answered = [completion(0, n * 50, total_ns=S) for n in range(5)]
    server = ServerFacts(url="http://a", model="m", is_here=True)
    run = a_run(
        tmp_path / "run", "decode",
        {Points: [point(0)], Completions: answered, Samples: sampled(BEGIN_NS - S, 8)},
        gpus=[GPU], manifest=msgspec.structs.replace(MANIFEST, server=server),
    )  # fmt: skip

    found = analyze(run).summary.samples

    assert found is not None
    assert (found.window, found.power_w_median) == ("clean", 130.0)
    assert found.energy_j == pytest.approx(5 * 130.0)
    assert found.energy_j_per_token == pytest.approx(650.0 / 15)
