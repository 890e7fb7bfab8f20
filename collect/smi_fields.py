"""Names of nvidia-smi's query fields: aliases, units, kinds, columns, and known layouts.

Drivers rename fields and print the canonical name in the header whatever was asked for, so
every name is made canonical before it is compared with anything.
"""

import re
from typing import Literal

from whichwall.schemas.samples import Samples

Kind = Literal["stamp", "integer", "number", "mask", "text", "any"]

TIMESTAMP, UUID, INDEX = "timestamp", "uuid", "index"
PSTATE, NAME, MIG = "pstate", "name", "mig.mode.current"
SM_CLOCK, MEMORY_CLOCK = "clocks.current.sm", "clocks.current.memory"
GRAPHICS_CLOCK, MAX_SM_CLOCK = "clocks.current.graphics", "clocks.max.sm"
POWER, POWER_AVERAGE = "power.draw", "power.draw.average"
POWER_INSTANT, POWER_LIMIT = "power.draw.instant", "enforced.power.limit"
TEMPERATURE, MEMORY_TEMPERATURE = "temperature.gpu", "temperature.memory"
HEADROOM = "temperature.gpu.tlimit"
UTILIZATION, MEMORY_UTILIZATION = "utilization.gpu", "utilization.memory"
MEMORY_USED = "memory.used"
REASONS = "clocks_event_reasons.active"

# Other spellings that the driver accepts in a query, from its own help text.
ALIASES = {
    "gpu_uuid": UUID,
    "gpu_name": NAME,
    "gpu_bus_id": "pci.bus_id",
    "clocks.sm": SM_CLOCK,
    "clocks.mem": MEMORY_CLOCK,
    "clocks.gr": GRAPHICS_CLOCK,
    "clocks.max.mem": "clocks.max.memory",
    "clocks.max.gr": "clocks.max.graphics",
    "gpu.power.draw.average": POWER_AVERAGE,
    "gpu.power.draw.instant": POWER_INSTANT,
    "gpu.power.requested_limit": "power.limit",
    "gpu.power.current_limit": POWER_LIMIT,
}
# Renamed as a family by driver 535: clocks_throttle_reasons.active, .hw_slowdown …
OLD_REASONS, NEW_REASONS = "clocks_throttle_reasons.", "clocks_event_reasons."

# Where a field goes in the samples table.
COLUMNS = {
    TIMESTAMP: Samples.time_ns,
    UUID: Samples.gpu_uuid,
    INDEX: Samples.gpu_index,
    PSTATE: Samples.pstate,
    SM_CLOCK: Samples.sm_clock_mhz,
    MEMORY_CLOCK: Samples.memory_clock_mhz,
    GRAPHICS_CLOCK: Samples.graphics_clock_mhz,
    POWER: Samples.power_w,
    POWER_INSTANT: Samples.power_instant_w,
    POWER_AVERAGE: Samples.power_average_w,
    POWER_LIMIT: Samples.power_limit_w,
    TEMPERATURE: Samples.temperature_c,
    MEMORY_TEMPERATURE: Samples.memory_temperature_c,
    HEADROOM: Samples.temperature_headroom_c,
    UTILIZATION: Samples.utilization_percent,
    MEMORY_UTILIZATION: Samples.memory_utilization_percent,
    MEMORY_USED: Samples.memory_used_mib,
    REASONS: Samples.throttle_reasons,
}

UNITS = {
    **dict.fromkeys((SM_CLOCK, MEMORY_CLOCK, GRAPHICS_CLOCK, MAX_SM_CLOCK), "MHz"),
    **dict.fromkeys((POWER, POWER_AVERAGE, POWER_INSTANT, POWER_LIMIT), "W"),
    **dict.fromkeys((UTILIZATION, MEMORY_UTILIZATION), "%"),
    MEMORY_USED: "MiB",
}

_KINDS: dict[str, Kind] = {
    TIMESTAMP: "stamp",
    INDEX: "integer",
    **dict.fromkeys((UUID, NAME, PSTATE, MIG), "text"),
    REASONS: "mask",
    "clocks_event_reasons.supported": "mask",
    **dict.fromkeys((TEMPERATURE, MEMORY_TEMPERATURE, HEADROOM), "number"),
    **dict.fromkeys(UNITS, "number"),
}

# What the sampler asks for: every column of the samples table, in the order of a known layout.
QUERY = (
    TIMESTAMP, INDEX, UUID, PSTATE, SM_CLOCK, MEMORY_CLOCK, GRAPHICS_CLOCK, POWER, POWER_AVERAGE,
    POWER_INSTANT, POWER_LIMIT, TEMPERATURE, MEMORY_TEMPERATURE, HEADROOM, UTILIZATION,
    MEMORY_UTILIZATION, MEMORY_USED, REASONS,
)  # fmt: skip

_SHORT = (
    TIMESTAMP, INDEX, UUID, PSTATE, SM_CLOCK, MEMORY_CLOCK, POWER_INSTANT, TEMPERATURE,
    UTILIZATION, MEMORY_USED, REASONS,
)  # fmt: skip

# Layouts recognised in a file without a header. Where several fit a file, they must agree.
LAYOUTS: tuple[tuple[str, ...], ...] = (
    QUERY,
    (
        TIMESTAMP, INDEX, UUID, PSTATE, SM_CLOCK, MEMORY_CLOCK, GRAPHICS_CLOCK, MAX_SM_CLOCK,
        POWER, POWER_AVERAGE, POWER_INSTANT, POWER_LIMIT, TEMPERATURE, MEMORY_TEMPERATURE,
        UTILIZATION, MEMORY_UTILIZATION, MEMORY_USED, REASONS,
    ),
    _SHORT,
    (*_SHORT, "clocks.applications.graphics"),
    (*_SHORT, MEMORY_TEMPERATURE),
    (*_SHORT, MIG),
    (*_SHORT[:3], NAME, *_SHORT[3:]),
)  # fmt: skip

_INTEGER = r"\d+"
_WATTS = r"\d+\.\d\d"
_PERCENT = r"\d|[1-9]\d|100"
_MASK = r"0x[0-9a-fA-F]+"
# What a field prints without units, so narrow that columns in another order do not pass.
SHAPES = {
    INDEX: r"\d{1,3}",
    UUID: r"(?:GPU|MIG)-[0-9A-Za-z/-]+",
    PSTATE: r"P\d{1,2}",
    NAME: r"[A-Za-z].*",
    MIG: r"Enabled|Disabled",
    **dict.fromkeys((SM_CLOCK, MEMORY_CLOCK, GRAPHICS_CLOCK, MAX_SM_CLOCK), _INTEGER),
    "clocks.applications.graphics": _INTEGER,
    **dict.fromkeys((POWER, POWER_AVERAGE, POWER_INSTANT, POWER_LIMIT), _WATTS),
    **dict.fromkeys((TEMPERATURE, MEMORY_TEMPERATURE), r"\d|[1-9]\d|1[0-4]\d"),
    HEADROOM: r"-?\d{1,3}",
    **dict.fromkeys((UTILIZATION, MEMORY_UTILIZATION), _PERCENT),
    MEMORY_USED: _INTEGER,
    REASONS: _MASK,
}

_HELP_LINE = re.compile(r'^"[^"]+"(?: or "[^"]+")*\s*$', re.MULTILINE)


def canonical(name: str) -> str:
    """Return the driver's present name of a field, from any accepted spelling or a header."""
    bare = name.split("[", 1)[0].strip()
    if bare.startswith(OLD_REASONS):
        bare = NEW_REASONS + bare.removeprefix(OLD_REASONS)
    return ALIASES.get(bare, bare)


def kind_of(field: str) -> Kind:
    """Return what a canonical field holds; `any` for fields that this table does not know."""
    return _KINDS.get(field, "any")


def supported_fields(help_text: str) -> dict[str, str]:
    """Return the fields that `nvidia-smi --help-query-gpu` lists: canonical → a name to ask for.

    The name to ask for is the driver's own first spelling, since an old driver refuses new names.
    """
    found: dict[str, str] = {}
    for match in _HELP_LINE.finditer(help_text):
        names = re.findall(r'"([^"]+)"', match.group(0))
        found.setdefault(canonical(names[0]), names[0])
    return found
