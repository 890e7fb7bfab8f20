"""Say in words what each cause of a gap means; one place for tables, legends and reports."""

from whichwall.schemas.gaps import CAUSES, DEVICE, GRAPH, LAUNCH, PROFILER, SYNC, UNKNOWN

LEGEND: dict[str, str] = {
    PROFILER: "profiler at work",
    UNKNOWN: "no launch on record",
    GRAPH: "between nodes of a graph",
    SYNC: "host waited for the GPU",
    LAUNCH: "launched too late",
    DEVICE: "queued in time",
}

# Completes "96 % of the GPU's idle time …".
FINDING: dict[str, str] = {
    PROFILER: "is the profiler at work",
    UNKNOWN: "ends in an activity whose launch is not on record",
    GRAPH: "lies between the nodes of a graph replay",
    SYNC: "passes while the host waits for the GPU",
    LAUNCH: "is waiting for a launch that came too late",
    DEVICE: "ends in an activity that was queued in time",
}

MEANING: dict[str, str] = {
    PROFILER: "The profiler's own work covers at least half of the gap; without it there is none.",
    UNKNOWN: "The launch of the next activity is not on record, so the cause cannot be told.",
    GRAPH: "Both neighbours are nodes of one graph replay: the GPU's own step from node to node.",
    SYNC: "A synchronising call on the launching thread covers at least half of the gap.",
    LAUNCH: (
        "The call that launched the next activity had not ended when the GPU ran dry: "
        "the host was late."
    ),
    DEVICE: (
        "The next activity was queued in time and started late all the same: the GPU's own "
        "scheduling, a dependency or another stream."
    ),
}


def legend_expression() -> str:
    """Return the Vega expression that turns a cause into its words in a legend."""
    words = ", ".join(f"'{cause}': '{LEGEND[cause]}'" for cause in CAUSES)
    return f"({{{words}}})[datum.label] || datum.label"
