"""What can be wrong with a series of samples: silences, a clock that goes back, a shared GPU."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from whichwall.collect.smi_fields import MIG
from whichwall.collect.smi_rows import NS_PER_S, Event, SmiParser
from whichwall.schemas.diagnostics import Diagnostic, Severity
from whichwall.schemas.manifest import SamplerFacts

NS_PER_MS = 1_000_000

# A gap is silence of more than three periods: one missed reading and one late one are jitter.
GAP_PERIODS = 3
# Readings change about every 100 ms whatever the period, so silence of less than five readings
# loses nothing that a median over a stage of seconds would notice.
GAP_FLOOR_NS = 500 * NS_PER_MS


@dataclass(frozen=True)
class Gap:
    """A silence between two samples of one GPU."""

    uuid: str | None
    from_ns: int
    to_ns: int


@dataclass(frozen=True)
class ClockStep:
    """A stamp earlier than the same GPU's stamp before it."""

    line: int
    ns: int


def observed_period_ns(parser: SmiParser) -> int | None:
    """Return the median time between two samples of one GPU; None below two samples."""
    steps = [step for times in parser.times_by_gpu().values() for step in _steps(times)]
    forward = [step for step in steps if step > 0]
    return int(median(forward)) if forward else None


def _steps(times: Iterable[tuple[int, int]]) -> list[int]:
    stamps = [stamp for _, stamp in times]
    return [after - before for before, after in pairwise(stamps)]


def find_gaps(parser: SmiParser, period_ns: int | None) -> list[Gap]:
    """Return the silences longer than `GAP_PERIODS` periods, per GPU."""
    period_ns = period_ns or observed_period_ns(parser)
    if period_ns is None:
        return []
    limit = max(GAP_PERIODS * period_ns, GAP_FLOOR_NS)
    gaps = []
    for gpu, times in parser.times_by_gpu().items():
        uuid = gpu if isinstance(gpu, str) else None
        stamps = [stamp for _, stamp in times]
        for before, after in pairwise(stamps):
            if after - before > limit:
                gaps.append(Gap(uuid, before, after))
    return gaps


def find_clock_steps(parser: SmiParser) -> list[ClockStep]:
    """Return where a GPU's stamps go back; rows stay in order of arrival all the same."""
    found = []
    for times in parser.times_by_gpu().values():
        for (_, before), (line, after) in pairwise(times):
            if after < before:
                found.append(ClockStep(line, after - before))
    return sorted(found, key=lambda step: step.line)


def diagnose(parser: SmiParser, period_ns: int | None) -> list[Diagnostic]:
    """Return what a reader of the samples must know."""
    if not parser.values:
        return [missing("nvidia-smi gave no sample" + _said(parser.events))]
    found = []
    if gaps := find_gaps(parser, period_ns):
        longest = max(gap.to_ns - gap.from_ns for gap in gaps) / NS_PER_S
        text = f"{len(gaps)} silences between samples, the longest {longest:.1f} s"
        found.append(Diagnostic("sampler_gap", "warning", len(gaps), text))
    if lost := [e for e in parser.events if e.kind in ("gpu_lost", "gpu_unreachable")]:
        text = "a GPU stopped answering nvidia-smi; it has no samples from there on"
        found.append(Diagnostic("sampler_gap", "error", len(lost), text))
    if steps := find_clock_steps(parser):
        back = min(step.ns for step in steps) / NS_PER_S
        text = f"nvidia-smi's clock went back by {-back:.3f} s; stamps around that are not in order"
        found.append(Diagnostic("sampler_clock_step", "warning", len(steps), text))
    if "Enabled" in parser.column(MIG):
        found.append(divided_card())
    return found


def divided_card() -> Diagnostic:
    """Return the diagnostic of samples taken while MIG is on."""
    text = "MIG is on: power, clocks and temperature are the whole card's, not this slice's"
    return Diagnostic("shared_gpu", "warning", None, text)


def missing(why: str, severity: Severity = "warning") -> Diagnostic:
    """Return the diagnostic of a run without samples."""
    text = f"{why}; clocks, power and throttling are not known"
    return Diagnostic("samples_missing", severity, None, text)


def _said(events: Sequence[Event]) -> str:
    return f" ({events[0]})" if events else ""


def sampler_facts(parser: SmiParser, source: str, interval_ms: int | None) -> SamplerFacts:
    """Return what the manifest says of these samples."""
    period = observed_period_ns(parser)
    return SamplerFacts(
        source=source,
        interval_ms=interval_ms,
        fields=list(parser.fields),
        fields_refused=[e.field for e in parser.events if e.field],
        nulls={name: dict(counts) for name, counts in parser.nulls.items()},
        rejected_lines=len(parser.rejected),
        events=[str(event) for event in parser.events],
        observed_ms_median=None if period is None else period / NS_PER_MS,
    )
