"""What the visits of a server say of its points, and what to confess of how it was measured."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence

from whichwall.collect import nvml
from whichwall.collect.endpoint.address import Address
from whichwall.collect.endpoint.dialect import (
    IGNORE_EOS,
    MIN_TOKENS,
    RUNNING_COUNT,
    STREAM_OPTIONS,
)
from whichwall.collect.endpoint.plan import ServedPoint
from whichwall.collect.endpoint.rows import Row
from whichwall.collect.endpoint.server import TEXT
from whichwall.collect.host import cpu_name, usable_cores
from whichwall.collect.journal import Visit
from whichwall.schemas.completions import DONE as ANSWERED
from whichwall.schemas.completions import Completions
from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.manifest import Environment, ServerFacts
from whichwall.schemas.passes import CLEAN
from whichwall.schemas.points import DONE, INTERRUPTED, REFUSED

# One event loop reads every token; taken for more of the time than this, it reads many late.
BUSY_CLIENT = 0.7
# What is not known where a server would not take a field.
LACKING = {
    (IGNORE_EOS, MIN_TOKENS): "its answers may be shorter than asked for",
    (RUNNING_COUNT,): "it may not say how many tokens a chunk holds",
    (STREAM_OPTIONS,): "it may not count tokens",
}


def point_row(point: ServedPoint, visits: Sequence[Visit], planned: int, gone: str | None) -> Row:
    """Return a point's row: one that failed in any visit, or lacks one, is not done.

    Args:
        point: as planned.
        visits: all that were made, of every point, in their order.
        planned: visits that each point was to have.
        gone: why the server no longer answers, if it does not.
    """
    if point.refused is not None:
        return point.row(REFUSED, point.refused)
    mine = [one for one in visits if one.point == point.number]
    failed = next((one for one in mine if one.outcome != DONE), None)
    if gone is not None and (failed is visits[-1] if failed else len(mine) < planned):
        return point.row(INTERRUPTED, f"the server no longer answers: {gone}")
    if failed is not None:
        return point.row(failed.outcome, failed.reason)
    return point.row(DONE, None)


def environment_of(address: Address) -> Environment:
    """Return the client's Python and, where the server is on it too, the machine."""
    driver = nvml.driver() if address.is_here else None
    return Environment(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}" if address.is_here else None,
        cpu=cpu_name() if address.is_here else None,
        cpu_cores=usable_cores() if address.is_here else None,
        cuda_driver=driver.cuda if driver else None,
        driver=driver.version if driver else None,
    )


def find_failed(completions: Sequence[Row]) -> list[Diagnostic]:
    """Return a warning that counts requests by how they failed."""
    clean = [row for row in completions if row[Completions.stage] == CLEAN]
    failed = [row for row in clean if row[Completions.outcome] != ANSWERED]
    if not failed:
        return []
    kinds = Counter(str(row[Completions.outcome]).replace("_", " ") for row in failed)
    said = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    text = (
        f"{len(failed)} of {len(clean)} requests were not answered ({said}): no time and no rate "
        "holds them"
    )
    return [Diagnostic("requests_failed", "warning", len(failed), text)]


def find_gone(gone: str | None) -> list[Diagnostic]:
    """Return an error if the server went away before the end."""
    if gone is None:
        return []
    text = f"the server stopped answering before everything was measured: {gone}"
    return [Diagnostic("server_gone", "error", None, text)]


def find_manner(facts: ServerFacts) -> list[Diagnostic]:
    """Return notes of what the server would not take."""
    found = []
    if refused := facts.fields_refused:
        lacks = [what for fields, what in LACKING.items() if {*fields} & {*refused}]
        text = f"the server refuses {', '.join(refused)} and was asked without: {'; '.join(lacks)}"
        found.append(Diagnostic("fields_refused", "info", len(refused), text))
    if facts.prompts == TEXT:
        text = (
            "the server takes no token ids: prompts are random words, as many as its own count "
            "makes the tokens asked for"
        )
        found.append(Diagnostic("prompt_is_text", "info", None, text))
    return found


def find_busy(busy: Mapping[int, float], names: Mapping[int, str]) -> list[Diagnostic]:
    """Return a warning that names the points at which the client itself was at its limit."""
    over = [names[point] for point, share in sorted(busy.items()) if share > BUSY_CLIENT]
    if not over:
        return []
    text = (
        f"this client took over {BUSY_CLIENT:.0%} of a core at {', '.join(over)}: times there may "
        "be its own, not the server's"
    )
    return [Diagnostic("client_busy", "warning", len(over), text)]
