"""Visits of an engine that has a process of its own, from its first visit of a sweep to its last.

A ladder runs engines in turn, and what one of them does to its process the others must not feel.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import msgspec

from whichwall.collect.companion import Companion
from whichwall.collect.engines.make import build_for, expect
from whichwall.collect.fresh import Json
from whichwall.collect.journal import Visit, kept
from whichwall.collect.options import CollectOptions
from whichwall.collect.point import Point
from whichwall.collect.progress import reporting
from whichwall.collect.request import resolve
from whichwall.collect.visits import Visitor
from whichwall.collect.workload import visits_of
from whichwall.schemas.errors import CollectError
from whichwall.schemas.points import REFUSED

FUNCTION = "whichwall.collect.rung:serve"
# Loading a large model, compiling it and capturing its graphs take minutes.
LONGEST_S = 1200.0


class Rung:
    """The engine's process; it starts with the first visit."""

    def __init__(self, options: CollectOptions) -> None:
        """Take what the sweep was asked for."""
        self._options = options
        self._companion: Companion | None = None

    def visit(self, point: Point, number: int) -> Visit:
        """Measure a point once more, or say why it cannot be."""
        if self._companion is None:
            options = kept(replace(self._options, engine=point.engine))
            spec = {"options": options, "point": asdict(point)}
            self._companion = Companion(FUNCTION, spec)
        try:
            found = self._companion.ask({"point": asdict(point), "visit": number}, LONGEST_S)
        except CollectError as error:
            self.close()
            return Visit(point.number, number, REFUSED, str(error))
        return msgspec.convert(found, Visit)

    def close(self) -> None:
        """End the process, and with it whatever it holds."""
        if self._companion is not None:
            self._companion.close()
            self._companion = None


def serve(spec: Json) -> Callable[[Json], Any]:
    """Return what visits a point in this process; see `Companion`."""
    request = resolve(CollectOptions(**spec["options"]))
    point = Point(**spec["point"])
    built = build_for(point.engine, request.source, request.device, request.dtype, "auto")
    expect(built, [point])
    visitor = Visitor(request.device, built, visits_of(request.options))

    def answer(question: Json) -> Any:
        with reporting() as reporter:
            found = visitor.visit(Point(**question["point"]), question["visit"], reporter)
        return msgspec.to_builtins(found)

    return answer
