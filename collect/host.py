"""Facts about the host without torch: its processor, and the cores that may be used."""

import os
import platform
from pathlib import Path

CPU_FACTS = Path("/proc/cpuinfo")


def cpu_name() -> str | None:
    """Return the processor's own name for itself."""
    try:
        lines = CPU_FACTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or None


def usable_cores() -> int | None:
    """Return the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
