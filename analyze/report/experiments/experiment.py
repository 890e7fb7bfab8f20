"""What a page of an experiment consists of: its answer, its section and its charts."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from altair.typing import ChartType

from whichwall.analyze.report.document import Block
from whichwall.analyze.report.inputs import ReportInputs


def _none(_: ReportInputs) -> dict[str, ChartType]:
    return {}


@dataclass(frozen=True)
class Experiment:
    """One mode: each part is a function of what the analysis found."""

    answer: Callable[[ReportInputs], str]
    section: Callable[[ReportInputs, Collection[str]], list[Block]]
    charts: Callable[[ReportInputs], dict[str, ChartType]] = _none
