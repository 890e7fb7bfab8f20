"""Answer whether the card slowed itself under work, by how much, and what its driver says."""

from collections.abc import Collection

from whichwall.analyze.quantities import NOT_KNOWN, duration, percent, times, with_unit
from whichwall.analyze.report.conditions import spoken
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph, Table, Text
from whichwall.analyze.report.experiments.experiment import Experiment
from whichwall.analyze.report.experiments.words import not_timed, notes
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.sampled import SLOWED_SHARE
from whichwall.schemas.experiments import CLOCKS, ClockChange, Side
from whichwall.schemas.passes import MATMUL


def answer(inputs: ReportInputs) -> str:
    """Say whether the card slowed itself and why that is said, and how the step changed."""
    found = inputs.summary.clocks
    if found is None:
        said = "Not known: the same work was not timed on both a rested and a worked card."
        return " ".join([said, *not_timed(inputs.sweep.iter_rows(named=True))])
    change = (
        f"the same {_work(found)} takes {duration(found.rested.step_ns)} rested and "
        f"{duration(found.hot.step_ns)} hot ({times(found.step_ratio)})"
    )
    return f"{verdict(inputs, found)}; {change}{_clock(found)}."


def verdict(inputs: ReportInputs, found: ClockChange) -> str:
    """Say whether the card slowed itself, and why that is said."""
    if not inputs.manifest.gpus:
        return "Whether a card slows itself is not known: this run used no GPU"
    if found.slowed is None:
        return f"Whether the card slowed itself is not known: {found.why}"
    if found.slowed:
        return f"The card slowed itself: {found.why}{_share(found)}"
    return f"The card did not slow itself: {found.why}"


def _share(found: ClockChange) -> str:
    most = max(found.reasons.values(), default=None)
    return "" if most is None else f", in {percent(most)} of samples at the end of the soak"


def _work(found: ClockChange) -> str:
    """Return what was timed: a step of the model, or a pass of several products."""
    return f"{found.hot.phase} {'pass' if found.hot.phase == MATMUL else 'step'}"


def _clock(found: ClockChange) -> str:
    rested, hot = found.rested.sm_clock_mhz, found.hot.sm_clock_mhz
    if rested is None or hot is None:
        return ""
    return f", at {with_unit(rested, 'MHz')} and {with_unit(hot, 'MHz')}"


def section(inputs: ReportInputs, figures: Collection[str]) -> list[Block]:
    """Return both sides next to each other, and the clocks over the run."""
    found = inputs.summary.clocks
    blocks: list[Block] = [Heading("A rested card and a worked one")]
    if CLOCKS in figures:
        says = "Clock, power and temperature: the rested passes, the soak, the passes after it."
        blocks.append(Figure(CLOCKS, says))
    if found is None:
        return [*blocks, Paragraph(answer(inputs))]
    blocks.append(
        Table(
            head=("what", found.rested.label, found.hot.label, "change"),
            rows=tuple(_rows(found)),
            align="lrrr",
        )
    )
    blocks.append(Paragraph(_reasons(found)))
    needs = "Clocks, power and the driver's reasons for slowing need one."
    return blocks + notes(inputs, needs)


def _rows(found: ClockChange) -> list[tuple[Text, ...]]:
    one, other = found.rested, found.hot
    return [
        (
            _work(found),
            duration(one.step_ns),
            duration(other.step_ns),
            times(found.step_ratio),
        ),
        ("p10 to p90", _spread(one), _spread(other), ""),
        ("passes", str(one.passes), str(other.passes), ""),
        (
            "SM clock",
            with_unit(one.sm_clock_mhz, "MHz"),
            with_unit(other.sm_clock_mhz, "MHz"),
            times(found.clock_ratio),
        ),
        ("power", with_unit(one.power_w, "W"), with_unit(other.power_w, "W"), ""),
        (
            "temperature",
            with_unit(one.temperature_c, "°C"),
            with_unit(other.temperature_c, "°C"),
            "",
        ),
        ("samples", str(one.samples), str(other.samples), ""),
    ]


def _spread(side: Side) -> str:
    return f"{duration(side.step_ns_p10)} to {duration(side.step_ns_p90)}"


def _reasons(found: ClockChange) -> str:
    if not found.soak_samples:
        return f"The driver's reasons are {NOT_KNOWN}: no sample of the soak holds any."
    given = ", ".join(f"{spoken(r)} in {percent(share)}" for r, share in found.reasons.items())
    highest = with_unit(found.highest_clock_mhz, "MHz")
    return (
        f"Of {found.soak_samples} samples from the end of the soak to the last hot pass, the "
        f"driver held the card back: {given or 'in none'}. The highest clock of the run is "
        f"{highest}. A card slowed itself where a reason shows in at least "
        f"{percent(SLOWED_SHARE)} of these samples and its clock lies below its highest."
    )


# It has no chart of its own: the clocks over a run are drawn for every run with samples.
EXPERIMENT = Experiment(answer, section)
