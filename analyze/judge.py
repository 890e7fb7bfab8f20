"""Pick what the verdict of a run rests on: its first phase's steps, or the whole recording."""

import msgspec

from whichwall.analyze.diagnose import Findings, no_activity
from whichwall.analyze.groups import FROM_COMPLETIONS, FROM_OPTION
from whichwall.analyze.marks import is_engine
from whichwall.analyze.roles.inferred import MODEL_TYPE
from whichwall.analyze.step_groups import Judged
from whichwall.analyze.trace import Trace
from whichwall.analyze.walls import Evidence, verdict
from whichwall.schemas.activities import Activities
from whichwall.schemas.summary import Device, SampleWindow, StepGroup, Verdict

ASSUMED = "the model's type is not known: its dimensions are read as those of a Llama"
WHOLE_RECORDING = "no steps are marked in the trace: the whole recording is taken as one"
NO_CONTEXT = "the context is not known: the floor leaves the cache out"
INFERRED = "the floor rests on dimensions inferred from the trace's shapes: give --model to be sure"
NO_TRACE = "no trace was recorded, and without one the GPU's working time is not known"
BY_A_CLIENT = (
    "the clean step is the time per token that a client sees: it holds what the server does around "
    "a step, and the way to the client"
)
NO_STEPS = "the trace marks no steps, so what one works on is not known"
NO_STEP_TO_TIME = "the clean step given is not used: no steps were found that it could be one of"


def judge(
    trace: Trace,
    found: list[Device],
    judged: list[Judged],
    findings: Findings,
    sampling: SampleWindow | None,
    node_idle_ns: float | None,
    option_ns: int | None,
    static: Judged | None = None,
) -> Verdict:
    """Return the verdict of the run, with what it was judged by where that is not plain."""
    evidence = Evidence(
        node_idle_ns=node_idle_ns,
        engine=is_engine(trace.marks, trace.activities[Activities.name]),
    )
    notes: list[str] = []
    if not found and not findings.ranks:
        evidence = msgspec.structs.replace(evidence, no_trace=NO_TRACE)
    elif not found:
        evidence = msgspec.structs.replace(evidence, no_gpu=_why_none(trace, judged, findings))
    elif not judged:
        notes.append(WHOLE_RECORDING)
        if option_ns is not None:
            notes.append(NO_STEP_TO_TIME)
        evidence = msgspec.structs.replace(
            evidence,
            window_ns=found[0].window_ns,
            busy_ns=found[0].busy_ns,
            working_ns=found[0].busy_without_communication_ns,
            kernels=float(found[0].kernels),
            no_floor=NO_STEPS,
        )
    else:
        group, grounds = judged[0].group, judged[0].grounds
        if grounds.floor is not None and not grounds.context_known:
            notes.append(NO_CONTEXT)
        if grounds.floor is not None and trace.model is not None and trace.model.assumed:
            notes.append(INFERRED if trace.model.model_type == MODEL_TYPE else ASSUMED)
        evidence = msgspec.structs.replace(
            evidence,
            step_ns=group.clean_step_ns_median,
            window_ns=group.window_ns_median,
            busy_ns=group.busy_ns_median,
            working_ns=group.busy_without_communication_ns_median,
            kernels=group.kernels_median,
            floor=grounds.floor,
            no_floor=grounds.missing,
            graph_busy_ns=static.group.busy_ns_median if static else None,
            graph_kernels=static.group.kernels_median if static else None,
        )
        notes += _on_option(group, option_ns)
    said = verdict(evidence, sampling)
    return msgspec.structs.replace(said, annotations=[*said.annotations, *notes])


def _on_option(group: StepGroup, option_ns: int | None) -> list[str]:
    """Say where a clean step given from outside was not used, and what a client's holds."""
    if group.clean_from == FROM_COMPLETIONS:
        return [BY_A_CLIENT]
    if option_ns is None or group.clean_from == FROM_OPTION:
        return []
    return [f"the clean step given is of a decode step, and is not used for {group.phase}"]


def _why_none(trace: Trace, judged: list[Judged], findings: Findings) -> str:
    """Tell a run that used no GPU from a trace that holds none of its work."""
    on_cpu = bool(judged) and not trace.complete.launches
    return "this run used the CPU" if on_cpu else no_activity(findings)
