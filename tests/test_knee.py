"""The knee of a sweep is found by a fit: on hinges with noise, on the lab's own batch sweep."""

from hypothesis import given
from hypothesis import strategies as st

from whichwall.schemas.knee import knee

BATCHES = [1, 2, 4, 8, 16, 32, 64, 128]


@st.composite
def hinges(draw: st.DrawFn) -> tuple[int, list[tuple[int, float]]]:
    """Draw a knee and steps that rise by a quarter or more at the next batch, with 2 % noise."""
    place = draw(st.integers(1, len(BATCHES) - 2))
    level = draw(st.floats(1e3, 1e9))
    after = draw(st.floats(0.25, 1.0))  # doubling the batch doubles a step at most
    rise = after * level / (BATCHES[place + 1] - BATCHES[place])
    noise = draw(st.lists(st.floats(0.98, 1.02), min_size=8, max_size=8))
    steps = [
        (batch, (level + rise * max(0, batch - BATCHES[place])) * factor)
        for batch, factor in zip(BATCHES, noise, strict=True)
    ]
    return BATCHES[place], draw(st.permutations(steps))


@given(hinges())
def test_the_knee_of_a_noisy_hinge_is_found(hinge: tuple[int, list[tuple[int, float]]]) -> None:
    at, steps = hinge

    found = knee(steps)

    assert found is not None
    assert found.at == at


@given(st.floats(1e3, 1e9), st.lists(st.floats(0.98, 1.02), min_size=2, max_size=8))
def test_a_flat_sweep_has_no_knee(level: float, noise: list[float]) -> None:
    assert knee(zip(BATCHES, [level * factor for factor in noise], strict=False)) is None


@given(hinges(), st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(
    hinge: tuple[int, list[tuple[int, float]]], factor: float
) -> None:
    _, steps = hinge

    one, other = knee(steps), knee([(batch, step * factor) for batch, step in steps])

    assert one is not None
    assert other is not None
    assert one.at == other.at


def test_a_falling_sweep_has_no_knee() -> None:
    assert knee([(1, 40.0), (2, 30.0), (4, 20.0)]) is None


def test_one_batch_has_no_knee() -> None:
    assert knee([(1, 33.0), (1, 35.0)]) is None


def test_a_step_that_grows_from_the_start_has_its_knee_there() -> None:
    found = knee([(1, 10.0), (2, 20.0), (4, 40.0), (8, 80.0)])

    assert found is not None
    assert (found.at, round(found.level_ns, 6), round(found.rise_ns, 6)) == (1, 10.0, 10.0)


def test_a_rise_within_the_spread_is_none() -> None:
    steps = [(1, 10.0), (2, 10.0), (4, 12.0)]

    assert knee(steps) is not None
    assert knee(steps, least_rise=0.25) is None


def test_the_free_ride_of_the_t4_ends_at_sixteen() -> None:
    steps = [
        (1, 33.82), (2, 32.02), (4, 33.70), (8, 32.54), (16, 35.99), (32, 55.01), (64, 100.44),
    ]  # fmt: skip

    found = knee(steps)

    assert found is not None
    assert found.at == 16


def test_a_rise_with_the_square_has_its_knee_where_it_leaves_the_level() -> None:
    prompts = [
        (16, 36.4), (64, 36.2), (128, 35.8), (256, 37.0), (512, 57.0), (1024, 151.0),
        (2048, 468.3), (4096, 1677.1), (8192, 7173.1),
    ]  # fmt: skip

    found = knee(prompts)

    assert found is not None
    assert found.at == 256


@given(st.integers(1, 6), st.floats(1e3, 1e9), st.floats(0.3, 3.0))
def test_an_exact_hinge_is_fitted_exactly(place: int, level: float, after: float) -> None:
    at = BATCHES[place]
    steps = [(batch, level * (1 + after * max(0, batch - at) / at)) for batch in BATCHES]

    found = knee(steps)

    assert found is not None
    assert found.at == at
    assert abs(found.step_ns(BATCHES[-1]) / steps[-1][1] - 1) < 1e-6
