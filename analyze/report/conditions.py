"""Say under which conditions the numbers were taken: clocks, power, throttle, the profiler."""

from whichwall.analyze.quantities import NOT_KNOWN, duration, percent, significant, times, with_unit
from whichwall.analyze.report.document import Block, Figure, Heading, Paragraph, Table, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.measured import diagnostic
from whichwall.analyze.sampled import CLEAN_STAGE, HELD_BACK, TRACE
from whichwall.schemas.manifest import SamplerFacts
from whichwall.schemas.summary import SampleWindow, Tax

_WINDOWS = {CLEAN_STAGE: "the clean stage", TRACE: "the trace, as the run has no clean stage"}


def spoken(reason: str) -> str:
    """Write a throttle reason as words."""
    return reason.replace("_", " ")


def slowdowns(samples: SampleWindow) -> dict[str, float]:
    """Return the reasons that hold a working GPU back, with their share of the samples."""
    return {
        reason: share
        for reason, share in sorted(samples.throttle.items(), key=lambda item: -item[1])
        if share > 0 and reason in HELD_BACK
    }


def clocks(inputs: ReportInputs, figures: set[str]) -> list[Block]:
    """Return clocks, power, energy and throttle inside the clean stage."""
    blocks: list[Block] = [Heading("Clocks and power")]
    samples = inputs.summary.samples
    if "clocks" in figures:
        blocks.append(Figure("clocks", "Clock, power and temperature over the stages of the run."))
    if samples is None:
        reason = diagnostic(inputs.summary, "samples_missing") or _no_samples(inputs)
        return [*blocks, Paragraph(f"{NOT_KNOWN.capitalize()}: {reason}")]
    where = _WINDOWS.get(samples.window, samples.window)
    blocks.append(Paragraph(f"Medians of {samples.samples:,} samples inside {where}."))
    blocks.append(Table(head=("what", "value"), rows=tuple(_rows(samples)), align="lr"))
    return blocks


def _no_samples(inputs: ReportInputs) -> str:
    sampler: SamplerFacts | None = inputs.manifest.sampler
    if sampler is None:
        return "no nvidia-smi samples were taken with this run."
    return "no sample lies inside the clean stage or the trace."


def _rows(samples: SampleWindow) -> list[tuple[Text, Text]]:
    power = "power" + (f" ({samples.power_from})" if samples.power_from else "")
    energy = "energy" + (f" (from the {samples.energy_from})" if samples.energy_from else "")
    return [
        ("SM clock", with_unit(samples.sm_clock_mhz_median, "MHz")),
        ("memory clock", with_unit(samples.memory_clock_mhz_median, "MHz")),
        (power, with_unit(samples.power_w_median, "W")),
        ("temperature", with_unit(samples.temperature_c_median, "°C")),
        (energy, with_unit(samples.energy_j, "J")),
        ("energy per token", with_unit(samples.energy_j_per_token, "J")),
        ("held back by", _throttle(samples)),
    ]


def _throttle(samples: SampleWindow) -> str:
    found = slowdowns(samples)
    if not found:
        return "nothing that the driver reports"
    return ", ".join(f"{spoken(r)} in {percent(share)} of samples" for r, share in found.items())


def tax(inputs: ReportInputs) -> list[Block]:
    """Return what the profiler costs: the same step before, under and after it."""
    blocks: list[Block] = [Heading("What the profiler costs")]
    found = inputs.summary.tax
    if found is None:
        reason = "it takes clean and profiled passes of the same step in one run"
        return [*blocks, Paragraph(f"{NOT_KNOWN.capitalize()}: {reason}.")]
    return [*blocks, Paragraph(_tax_sentence(found)), _tax_table(found)]


def _tax_sentence(found: Tax) -> str:
    if found.profiled_ratio is None:
        return f"Medians of a {found.phase} step; no profiled pass was timed."
    return (
        f"Under the profiler a {found.phase} step takes {significant(found.profiled_ratio)} times "
        "as long as before it."
    )


def _tax_table(found: Tax) -> Table:
    return Table(
        head=(f"{found.phase} step", "median", "to clean"),
        rows=(
            ("clean, before the profiler", duration(found.clean_ns_median), times(1)),
            ("under the profiler", duration(found.profiled_ns_median), times(found.profiled_ratio)),
            ("clean again, after it", duration(found.after_ns_median), times(found.after_ratio)),
        ),
        align="lrr",
    )
