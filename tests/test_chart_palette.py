"""Colours tell roles, causes, stages and walls apart for every kind of colour vision."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from whichwall.analyze.charts.palette import (
    CAUSE_COLOURS,
    REQUEST_COLOURS,
    ROLE_COLOURS,
    SERIES_COLOURS,
    STAGE_COLOURS,
    WALL_COLOURS,
)
from whichwall.analyze.walls import ARITHMETIC, BYTES, KERNELS, LAUNCHES
from whichwall.schemas.gaps import CAUSES
from whichwall.schemas.roles import ROLES

# Linear RGB as seen with no cones of one kind (Machado, Oliveira and Fernandes 2009, severity 1).
VISIONS = {
    "all cones": np.eye(3),
    "no long cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no middle cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "no short cones": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# Linear RGB to OKLab (Ottosson 2020).
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


ALL = [
    ROLE_COLOURS,
    CAUSE_COLOURS,
    STAGE_COLOURS,
    REQUEST_COLOURS,
    dict(zip("abc", SERIES_COLOURS, strict=True)),
]


def distance(one: str, other: str) -> float:
    """Return how far two colours are apart in OKLab, for the vision that sees least of it."""
    return min(
        float(np.linalg.norm(_lab(one, vision) - _lab(other, vision)))
        for vision in VISIONS.values()
    )


def _lab(colour: str, vision: np.ndarray) -> np.ndarray:
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    seen: np.ndarray = TO_LAB @ np.cbrt(TO_CONES @ np.clip(vision @ linear, 0, 1))
    return seen


def test_every_role_cause_and_wall_has_a_colour_in_its_order() -> None:
    assert tuple(ROLE_COLOURS) == ROLES
    assert tuple(CAUSE_COLOURS) == CAUSES
    assert tuple(WALL_COLOURS) == (LAUNCHES, KERNELS, BYTES, ARITHMETIC)


@pytest.mark.parametrize("colours", ALL)
def test_no_two_colours_look_alike_to_anyone(colours: dict[str, str]) -> None:
    alike = [
        (one, other)
        for one, other in combinations(colours, 2)
        if distance(colours[one], colours[other]) < 0.055
    ]

    assert alike == []


@pytest.mark.parametrize("colours", ALL)
def test_neighbours_in_order_are_well_apart(colours: dict[str, str]) -> None:
    close = [
        (one, other)
        for one, other in pairwise(colours)
        if distance(colours[one], colours[other]) < 0.12
    ]

    assert close == []
