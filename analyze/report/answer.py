"""Say the verdict in two sentences, and what it rests on."""

from whichwall.analyze.quantities import (
    NOT_KNOWN,
    count,
    duration,
    percent,
    times,
    whole_percent,
    with_unit,
)
from whichwall.analyze.report.document import Answer, Strong, Text
from whichwall.analyze.report.inputs import ReportInputs
from whichwall.analyze.report.subject import Subject
from whichwall.analyze.step_shares import ARITHMETIC, BYTES, KERNELS, LAUNCHES, known_shares
from whichwall.schemas.summary import Floor, Shares, StepGroup, Summary

MIXED = "mixed"
# A verdict needs one part of the clean step to be at least this much of it (the definition).
HALF = "at least half"

_WHY: dict[str, str] = {
    LAUNCHES: "the GPU is idle for {share} of {step}, waiting to be told what to do next",
    KERNELS: "{share} of {step} goes to kernels that run longer than their bytes and FLOPs need",
    BYTES: "{share} of {step} is the least time in which the bytes it needs can be read",
    ARITHMETIC: "{share} of {step} is the least time in which its arithmetic can be done",
}


def answer(inputs: ReportInputs, subject: Subject) -> Answer:
    """Return the verdict, why, and the figures behind it."""
    verdict = inputs.summary.verdict
    sentences = [_first(inputs, subject), _second(inputs.summary, subject)]
    if verdict.wall is not None and verdict.reason:
        sentences.insert(1, _sentence(verdict.reason))
    notes: list[Text] = []
    if verdict.annotations:
        notes.append(("During the clean stage: ", "; ".join(verdict.annotations), "."))
    return Answer(
        wall=verdict.wall,
        sentences=tuple(s for s in sentences if s),
        figures=tuple(_figures(inputs.summary, subject)),
        notes=tuple(notes),
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


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _sentence(text: str) -> str:
    return _ended(text[:1].upper() + text[1:])


def _clean_step(subject: Subject, group: StepGroup) -> str:
    return f"a clean {subject.step} of {duration(group.clean_step_ns_median)}"


def _first(inputs: ReportInputs, subject: Subject) -> Text:
    verdict = inputs.summary.verdict
    group = subject.group
    if verdict.wall is None:
        reason = verdict.reason or "the run does not hold what a verdict needs"
        return (Strong("No verdict"), f": {_ended(reason)}")
    shares = verdict.shares
    if verdict.wall == MIXED:
        return (f"{who(inputs)} stands at ", Strong("no single wall"), _mixed(subject, shares))
    stands = (f"{who(inputs)} stands at the ", Strong(verdict.wall), " wall")
    share = known_shares(shares).get(verdict.wall) if shares else None
    if share is None or group is None or group.clean_step_ns_median is None:
        return (*stands, ".")
    why = _WHY[verdict.wall].format(
        share=whole_percent(share), step=_clean_step(subject, group)
    )
    return (*stands, f": {why}.")


def _mixed(subject: Subject, shares: Shares | None) -> str:
    if shares is None or subject.group is None:
        return "."
    said = [f"{wall} {whole_percent(share)}" for wall, share in known_shares(shares).items()]
    return (
        f": no part of {_clean_step(subject, subject.group)} is {HALF} of it "
        f"({', '.join(said)})."
    )


def _second(summary: Summary, subject: Subject) -> Text:
    """Say how far the GPU's work is from its floor, and what is left without this wall."""
    group = subject.group
    said: list[str] = []
    if group and group.busy_ns_median is not None:
        busy = f"the GPU works {duration(group.busy_ns_median)} per step"
        floor = _floor(summary)
        if floor and floor.floor_ns:
            ratio = times(group.busy_ns_median / floor.floor_ns)
            busy += f", {ratio} its floor of {duration(floor.floor_ns)}"
        said.append(busy)
    predicted = summary.verdict.predicted_step_ms
    if predicted is not None:
        said.append(f"without this wall a step is predicted to take {duration(predicted * 1e6)}")
    return _sentence("; ".join(said)) if said else ""


def _floor(summary: Summary) -> Floor | None:
    floor = summary.floors
    return None if floor is None or floor.cached_weights else floor


def _figures(summary: Summary, subject: Subject) -> list[tuple[str, str]]:
    group = subject.group
    if group is None:
        return _recording_figures(subject)
    clean = duration(group.clean_step_ns_median)
    figures = [(f"clean {subject.step}", clean)]
    if group.window_ns_median is not None:
        figures.append((f"traced {subject.step}", duration(group.window_ns_median)))
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
        figures.append(("tokens per second", with_unit(group.tokens_per_s, "/s")))
    return figures


def _recording_figures(subject: Subject) -> list[tuple[str, str]]:
    device = subject.device
    if device is None:
        return [("GPU activity", "none")]
    return [
        ("recording", duration(device.window_ns)),
        ("GPU busy", duration(device.busy_ns)),
        ("busy, of the recording", percent(device.busy_fraction)),
        ("kernels", count(device.kernels)),
        ("steps", NOT_KNOWN),
    ]
