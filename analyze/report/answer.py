"""Say the verdict in two sentences, and what it rests on."""

from whichwall.analyze.names import printable
from whichwall.analyze.quantities import (
    NOT_KNOWN,
    count,
    duration,
    percent,
    significant,
    times,
    whole_percent,
)
from whichwall.analyze.report.document import Answer, Strong, Text, parts
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject, subject
from whichwall.analyze.step_shares import known_shares
from whichwall.analyze.thresholds import MAJORITY
from whichwall.analyze.walls import (
    ARITHMETIC,
    BYTES,
    KERNELS,
    LAUNCHES,
    MIXED,
    idle_with_gaps_cut,
)
from whichwall.schemas.summary import Floor, Shares, StepGroup, Summary

# The share of the clean step that names a wall, in words.
ENOUGH = f"at least {whole_percent(MAJORITY)}"

_WHY: dict[str, str] = {
    LAUNCHES: "the GPU is idle for {share} of {step}, waiting to be told what to do next",
    KERNELS: "{share} of {step} goes to kernels that run longer than their bytes and FLOPs need",
    BYTES: "{share} of {step} is the least time in which the bytes it needs can be read",
    ARITHMETIC: "{share} of {step} is the least time in which its arithmetic can be done",
}


def answer(inputs: ReportInputs) -> str:
    """Return the answer of a run as plain text, for a terminal."""
    return printable(inputs.summary.answer or verdict_in_words(inputs))


def verdict_in_words(inputs: ReportInputs) -> str:
    """Return the verdict and why as plain text."""
    said = headline(inputs, subject(inputs)).sentences
    plain = [
        "".join(part if isinstance(part, str) else part.text for part in parts(text))
        for text in said
    ]
    return " ".join(plain)


def headline(inputs: ReportInputs, chosen: Subject) -> Answer:
    """Return the verdict, why, and the figures behind it."""
    verdict = inputs.summary.verdict
    sentences = [_first(inputs, chosen), _second(inputs.summary, chosen)]
    if verdict.wall is not None and verdict.reason:
        sentences.insert(1, sentence(verdict.reason))
    return Answer(
        wall=verdict.wall,
        sentences=tuple(s for s in sentences if s),
        figures=tuple(_figures(inputs.summary, chosen)),
        notes=tuple(sentence(note) for note in verdict.annotations),
    )


def who(inputs: ReportInputs) -> str:
    """Name the workload: model and device."""
    model = inputs.summary.model or inputs.manifest.model
    name = model.name if model else "The model"
    gpus = inputs.manifest.gpus
    if not gpus:
        return name
    if len(gpus) == 1:
        return f"{name} on one {gpus[0].name}"
    return f"{name} on {len(gpus)} × {gpus[0].name}"


def ended(text: str) -> str:
    """Return a text that ends like a sentence."""
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def sentence(text: str) -> str:
    """Return a text that begins and ends like a sentence."""
    return ended(text[:1].upper() + text[1:])


def _clean_step(chosen: Subject, group: StepGroup) -> str:
    return f"a clean {chosen.step} of {duration(group.clean_step_ns_median)}"


def _first(inputs: ReportInputs, chosen: Subject) -> Text:
    verdict = inputs.summary.verdict
    if verdict.wall is None:
        reason = verdict.reason or "the run does not hold what a verdict needs"
        return (Strong("No verdict"), f": {ended(reason)}")
    shares = verdict.shares
    if verdict.wall == MIXED:
        return (f"{who(inputs)} stands at ", Strong("no single wall"), _mixed(chosen, shares))
    stands = (f"{who(inputs)} stands at the ", Strong(verdict.wall), " wall")
    why = _why(verdict.wall, shares, chosen)
    return (*stands, f": {why}." if why else ".")


def _why(wall: str, shares: Shares | None, chosen: Subject) -> str | None:
    """Say what the wall takes; without a clean step, what the trace shows of launches."""
    group = chosen.group
    share = known_shares(shares).get(wall) if shares else None
    if group and group.clean_step_ns_median is not None:
        if share is None and wall == LAUNCHES and group.busy_fraction_clean is not None:
            share = 1 - group.busy_fraction_clean
        if share is None:
            return None
        return _WHY[wall].format(share=whole_percent(share), step=_clean_step(chosen, group))
    busy = group.busy_fraction_traced if group else None
    window = group.window_ns_median if group else None
    if group is None and chosen.device:
        busy, window = chosen.device.busy_fraction, chosen.device.window_ns
    if wall != LAUNCHES or busy is None or window is None:
        return None
    idle = whole_percent(idle_with_gaps_cut(round(busy * window), window))
    return (
        f"in a traced {chosen.step} of {duration(window)} the GPU would be idle for {idle} even if "
        "every gap were cut to a third, waiting to be told what to do next"
    )


def _mixed(chosen: Subject, shares: Shares | None) -> str:
    if shares is None or chosen.group is None:
        return "."
    said = [f"{wall} {whole_percent(share)}" for wall, share in known_shares(shares).items()]
    return (
        f": no part of {_clean_step(chosen, chosen.group)} is {ENOUGH} of it ({', '.join(said)})."
    )


def _second(summary: Summary, chosen: Subject) -> Text:
    """Say how far the GPU's work is from its floor, and what is left without this wall."""
    group = chosen.group
    said: list[str] = []
    if not summary.devices:
        return _without_gpu(summary, chosen)
    if group and group.busy_ns_median is not None:
        busy = f"the GPU works {duration(group.busy_ns_median)} per step"
        floor = _floor(summary)
        if floor and floor.floor_ns:
            ratio = times(group.busy_ns_median / floor.floor_ns)
            busy += f", {ratio} its floor of {duration(floor.floor_ns)}"
        said.append(busy)
    predicted = summary.verdict.predicted_step_ms
    if predicted is not None:
        what = "a step" if group else "the recording"
        said.append(f"without this wall {what} is predicted to take {duration(predicted * 1e6)}")
    return sentence("; ".join(said)) if said else ""


def _floor(summary: Summary) -> Floor | None:
    floor = summary.floors
    return None if floor is None or floor.cached_weights else floor


def _figures(summary: Summary, chosen: Subject) -> list[tuple[str, str]]:
    group = chosen.group
    if group is None:
        return _recording_figures(chosen)
    clean = duration(group.clean_step_ns_median)
    figures = [(f"clean {chosen.step}", clean)]
    if group.window_ns_median is not None:
        figures.append((f"traced {chosen.step}", duration(group.window_ns_median)))
    if group.busy_ns_median is not None:
        fraction = group.busy_fraction_clean
        clean_or_traced = "of the clean step" if fraction is not None else "of the traced step"
        known = fraction if fraction is not None else group.busy_fraction_traced
        figures.append(("GPU busy per step", duration(group.busy_ns_median)))
        figures.append((f"busy, {clean_or_traced}", percent(known)))
    floor = summary.floors
    if floor and floor.floor_ns:
        figures.append(("floor of a step", duration(floor.floor_ns)))
    if group.kernels_median is not None:
        figures.append(("kernels per step", count(group.kernels_median)))
    if group.tokens_per_s is not None:
        figures.append(("tokens per second", significant(group.tokens_per_s)))
    return figures


def _recording_figures(chosen: Subject) -> list[tuple[str, str]]:
    device = chosen.device
    if device is None:
        return [("GPU activity", "none")]
    return [
        ("recording", duration(device.window_ns)),
        ("GPU busy", duration(device.busy_ns)),
        ("busy, of the recording", percent(device.busy_fraction)),
        ("kernels", count(device.kernels)),
        ("steps", NOT_KNOWN),
    ]


def _without_gpu(summary: Summary, chosen: Subject) -> Text:
    """Say what a run on the CPU measured: its step, its floor and where its operators went."""
    group, floor = chosen.group, _floor(summary)
    said: list[str] = []
    if group and group.clean_step_ns_median is not None:
        took = f"a clean {chosen.step} took {duration(group.clean_step_ns_median)}"
        if floor and floor.floor_ns:
            ratio = times(group.clean_step_ns_median / floor.floor_ns)
            took += f", {ratio} its floor of {duration(floor.floor_ns)}"
        said.append(took)
    shares = [t for t in summary.cpu_roles if t.share is not None]
    if shares:
        most = max(shares, key=lambda t: t.share or 0.0)
        said.append(f"{most.role} takes {whole_percent(most.share)} of the operators' time")
    return sentence("; ".join(said)) if said else ""
