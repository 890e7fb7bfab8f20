"""What charts draw: small reduced tables, made for one picture and never part of a run.

Times are relative and in the unit of their axis: JavaScript rounds epoch nanoseconds.
"""

from whichwall.schemas.table import BOOL, FLOAT64, INT32, INT64, TEXT, Column, Table


class LaneIntervals(Table):
    """A row per interval on a lane, before it is reduced to what a picture shows."""

    NAME = "lane_intervals"

    lane = Column(TEXT, "Lane it is drawn on.", required=True)
    key = Column(TEXT, "What colours it: a role, a cause, or the lane itself.", required=True)
    start_ns = Column(INT64, "Start, Unix epoch.", "ns", required=True)
    end_ns = Column(INT64, "End, Unix epoch.", "ns", required=True)
    name = Column(TEXT, "Name as recorded.", required=True)
    layer = Column(INT32, "Layer index from 0; null outside layers.")
    launch_end_ns = Column(INT64, "End of its launch call, Unix epoch; null if unknown.", "ns")


class Spans(Table):
    """A row per mark on a lane of a timeline: an activity, a call, an operator or a gap."""

    NAME = "spans"

    lane = Column(TEXT, "Lane it is drawn on.", required=True)
    key = Column(TEXT, "What colours it: a role, a cause, or the lane itself.", required=True)
    from_us = Column(FLOAT64, "Start, since the step's start.", "us", required=True)
    to_us = Column(FLOAT64, "End, since the step's start.", "us", required=True)
    dur_us = Column(FLOAT64, "Time covered, less than the span where it was merged.", "us")
    count = Column(INT64, "How many were merged into it.", required=True)
    name = Column(TEXT, "Name of the first of them, as recorded.", required=True)


class BusyBins(Table):
    """A row per lane, bin of time and role: the share of the bin that it covers, stacked."""

    NAME = "busy_bins"

    lane = Column(TEXT, "Lane it is drawn on.", required=True)
    bin = Column(INT64, "Number of the bin.", required=True)
    key = Column(TEXT, "What colours it: a role, or the lane itself.", required=True)
    from_us = Column(FLOAT64, "Start of the bin, since the step's start.", "us", required=True)
    to_us = Column(FLOAT64, "End of the bin, since the step's start.", "us", required=True)
    low = Column(FLOAT64, "Lower end of its part of the bin, 0 to 1.", required=True)
    high = Column(FLOAT64, "Upper end of its part of the bin, 0 to 1.", required=True)
    covered_ns = Column(INT64, "Time covered inside the bin.", "ns", required=True)


class Flows(Table):
    """A row per activity drawn in full: from the end of its launch call to its start."""

    NAME = "flows"

    lane = Column(TEXT, "Lane of the activity.", required=True)
    from_us = Column(FLOAT64, "End of the launch call, since the step's start.", "us")
    to_us = Column(FLOAT64, "Start of the activity, since the step's start.", "us")


class GapLengths(Table):
    """A row per length of gap and cause: its part of all idle time, stacked."""

    NAME = "gap_lengths"

    bin = Column(INT64, "Number of the bin.", required=True)
    cause = Column(TEXT, "profiler, unknown, graph, sync, launch or device.", required=True)
    from_us = Column(FLOAT64, "Shortest gap of the bin; never 0.", "us", required=True)
    to_us = Column(FLOAT64, "Longest gap of the bin.", "us", required=True)
    total_ns = Column(INT64, "Idle time of these gaps.", "ns", required=True)
    count = Column(INT64, "How many gaps.", required=True)
    low = Column(FLOAT64, "Lower end of its part, percent of all idle time.", "%", required=True)
    high = Column(FLOAT64, "Upper end of its part, percent of all idle time.", "%", required=True)


class RoleTimes(Table):
    """A row per role that did anything."""

    NAME = "role_times"

    role = Column(TEXT, "Part of the model.", required=True)
    time_us = Column(FLOAT64, "Time per step, or in all where there are no steps.", "us")
    share = Column(FLOAT64, "Of all roles together, 0 to 1.", required=True)
    kernels = Column(FLOAT64, "Activities per step.", required=True)
    label = Column(TEXT, "Time and share in words.", required=True)


class LayerTimes(Table):
    """A row per layer and role that did anything there."""

    NAME = "layer_times"

    layer = Column(INT32, "Layer index from 0.", required=True)
    role = Column(TEXT, "Part of the model.", required=True)
    time_us = Column(FLOAT64, "Busy time per step, or in all where there are no steps.", "us")
    kernels = Column(FLOAT64, "Activities per step.", required=True)


class PhaseShares(Table):
    """A row per phase and role that did anything in either phase."""

    NAME = "phase_shares"

    phase = Column(TEXT, "decode or prefill.", required=True)
    role = Column(TEXT, "Part of the model.", required=True)
    share = Column(FLOAT64, "Of the phase's roles together, 0 to 1.", required=True)
    time_us = Column(FLOAT64, "Time per step of the phase.", "us", required=True)
    label = Column(TEXT, "Share and time in words.", required=True)


class StepShares(Table):
    """A row per part of the clean step, in order."""

    NAME = "step_shares"

    wall = Column(TEXT, "launches, kernels, bytes or arithmetic.", required=True)
    share = Column(FLOAT64, "Part of the clean step as computed.", required=True)
    from_ms = Column(FLOAT64, "Start on the bar.", "ms", required=True)
    to_ms = Column(FLOAT64, "End on the bar.", "ms", required=True)
    middle_ms = Column(FLOAT64, "Middle of its part of the bar.", "ms", required=True)
    label = Column(TEXT, "What it is.", required=True)
    amount = Column(TEXT, "Time and share in words.", required=True)


class Readings(Table):
    """A row per sample, or per bin of time where there are many."""

    NAME = "readings"

    time_s = Column(FLOAT64, "Since the first sample or pass.", "s", required=True)
    segment = Column(INT64, "Number of the unbroken stretch of samples.", required=True)
    sm_clock_mhz = Column(FLOAT64, "Clock of the multiprocessors.", "MHz")
    power_w = Column(FLOAT64, "Power: instant if there is any, else the 1 s average.", "W")
    power_limit_w = Column(FLOAT64, "The limit in force.", "W")
    temperature_c = Column(FLOAT64, "GPU temperature.", "°C")
    slowed = Column(BOOL, "The driver gave a reason for a lower clock, other than idleness.")


class StageBands(Table):
    """A row per stretch of passes of one stage."""

    NAME = "stage_bands"

    stage = Column(TEXT, "warmup, clean, profiled or after.", required=True)
    from_s = Column(FLOAT64, "Start, since the first sample or pass.", "s", required=True)
    to_s = Column(FLOAT64, "End.", "s", required=True)


class Lines(Table):
    """A row per point of a line, measured or a floor."""

    NAME = "lines"

    x = Column(FLOAT64, "What was varied.", required=True)
    y = Column(FLOAT64, "What was measured, in the unit of the axis.", required=True)
    low = Column(FLOAT64, "Lower end of the band around it; null: no band.")
    high = Column(FLOAT64, "Upper end.")
    series = Column(TEXT, "Name of the line.", required=True)
    floor = Column(BOOL, "A line that nothing can go below, not a measured one.", required=True)


class Bars(Table):
    """A row per bar; one without a value is said in words."""

    NAME = "bars"

    name = Column(TEXT, "What the bar stands for.", required=True)
    group = Column(TEXT, "What bars of one colour have in common.", required=True)
    value = Column(FLOAT64, "Its length, in the unit of the axis; null: nothing was measured.")
    low = Column(FLOAT64, "Lower end of its spread.")
    high = Column(FLOAT64, "Upper end of its spread.")
    floor = Column(FLOAT64, "What it cannot go below, marked across it.")
    label = Column(TEXT, "Value in words, or why there is none.", required=True)


class RequestStages(Table):
    """A row per stage of a request, one after the other on the bar of its loop."""

    NAME = "request_stages"

    loop = Column(TEXT, "What made the tokens.", required=True)
    stage = Column(TEXT, "tokenize, prefill, step, model or detokenize.", required=True)
    from_ms = Column(FLOAT64, "Start, since the request's.", "ms", required=True)
    to_ms = Column(FLOAT64, "End.", "ms", required=True)
    number = Column(INT64, "Number of the step, from 1; null otherwise.")


class WaitShares(Table):
    """A row per point of a curve: how many waits of one kind were no longer than a time."""

    NAME = "wait_shares"

    kind = Column(TEXT, "TTFT or ITL.", required=True)
    wait_ms = Column(FLOAT64, "The time.", "ms", required=True)
    share = Column(FLOAT64, "Of the waits of the kind, 0 to 1.", required=True)


class Interactivity(Table):
    """A row per batch of a curve: what each user gets, and what all get together."""

    NAME = "interactivity"

    context_tokens = Column(INT64, "Tokens cached of each sequence.", "tokens", required=True)
    engine = Column(TEXT, "What ran the model; null: nothing ran, it is the roofline.")
    batch = Column(INT64, "Sequences at once.", "sequences", required=True)
    tokens_per_s_each = Column(FLOAT64, "Generated for each.", "tokens/s", required=True)
    tokens_per_s = Column(FLOAT64, "Generated for all.", "tokens/s", required=True)


class Waterfall(Table):
    """A row per part of a step, in order, each beginning where the one before it ends."""

    NAME = "waterfall"

    name = Column(TEXT, "What the part is, in words.", required=True)
    key = Column(TEXT, "What colours it: floor, a role, a cause, host, remainder, step.",
                 required=True)  # fmt: skip
    from_ms = Column(FLOAT64, "Where it begins.", "ms", required=True)
    to_ms = Column(FLOAT64, "Where it ends; left of its beginning where it is below 0.", "ms",
                   required=True)  # fmt: skip
    label = Column(TEXT, "Time in words.", required=True)


class Roofline(Table):
    """A row per point under the roof: a role at work, or the whole clean step."""

    NAME = "roofline"

    name = Column(TEXT, "Role, or what the step is called.", required=True)
    step = Column(BOOL, "The whole step, not a role.", required=True)
    intensity = Column(FLOAT64, "Arithmetic over bytes.", "FLOP/byte", required=True)
    tflops = Column(FLOAT64, "Arithmetic over time.", "TFLOP/s", required=True)
    of_roof = Column(FLOAT64, "Of what the roof allows there.", required=True)


class Binding(Table):
    """A row per batch and context: what binds the floor of a decode step there."""

    NAME = "binding"

    batch = Column(INT64, "Sequences.", "sequences", required=True)
    context_tokens = Column(INT64, "Tokens in the cache of each.", "tokens", required=True)
    floor_ms = Column(FLOAT64, "Floor of a step.", "ms", required=True)
    arithmetic_share = Column(
        FLOAT64, "Part of the floor in operations that arithmetic binds, 0 to 1.", required=True
    )
    fits = Column(BOOL, "Weights and cache fit in the memory of the card; null: not known.")
    measured = Column(TEXT, "Wall of the step measured there; null: none was.")
    label = Column(TEXT, "Floor in words, and the wall if one was measured.", required=True)
