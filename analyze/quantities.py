"""Write quantities for people: three significant digits, always with the unit.

Conversion happens here and nowhere before; what is not known is said, never shown as 0.
"""

import math

NOT_KNOWN = "not known"

_TIME_UNITS = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"))
_BYTE_UNITS = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"))
_FLOP_UNITS = ((1.0, "FLOP"), (1e3, "kFLOP"), (1e6, "MFLOP"), (1e9, "GFLOP"), (1e12, "TFLOP"))
_SIGNIFICANT = 3


def significant(value: float | None) -> str:
    """Write a number with three significant digits, whole ones in full, thousands separated."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    if value == 0:
        return "0"
    # 9.996 becomes 10.0: how many digits stand behind the point is asked of the rounded number.
    exponent = int(f"{value:.{_SIGNIFICANT - 1}e}".partition("e")[2])
    return f"{value:,.{max(0, _SIGNIFICANT - 1 - exponent)}f}"


def _scaled(value: float | None, units: tuple[tuple[float, str], ...]) -> str:
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    scale, unit = units[0]
    for larger, name in units[1:]:
        if float(f"{abs(value):.2e}") >= larger:
            scale, unit = larger, name
    return f"{significant(value / scale)} {unit}"


def duration(ns: float | None) -> str:
    """Write nanoseconds in the unit that suits them: `416 ns`, `21.1 µs`, `16.1 ms`."""
    return _scaled(ns, _TIME_UNITS)


def signed_duration(ns: float | None) -> str:
    """Write nanoseconds that may be below 0: `−41.7 µs`."""
    return f"−{duration(-ns)}" if ns is not None and ns < 0 else duration(ns)


def amount_of_bytes(count: float | None) -> str:
    """Write bytes with decimal prefixes: `988 MB`."""
    return _scaled(count, _BYTE_UNITS)


def amount_of_flops(count: float | None) -> str:
    """Write floating-point operations: `988 MFLOP`."""
    return _scaled(count, _FLOP_UNITS)


def percent(share: float | None) -> str:
    """Write a share of 0 to 1 as percent: one decimal, `< 0.1 %` for what is not nothing."""
    if share is None or not math.isfinite(share):
        return NOT_KNOWN
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:  # would round to all of it
        return "> 99.9 %"
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    return f"{100 * share:.1f} %"


def signed_percent(share: float | None) -> str:
    """Write a difference as percent with its sign: `+3.1 %`, `−5.5 %`."""
    if share is None or not math.isfinite(share):
        return NOT_KNOWN
    return f"{100 * share:+.1f} %".replace("-", "−")


def whole_percent(share: float | None) -> str:
    """Write a share as percent for a sentence: `94 %`, with a decimal only below one."""
    if share is None or not math.isfinite(share):
        return NOT_KNOWN
    if 0.995 <= share < 1:
        return "> 99 %"
    if abs(share) >= 0.01 or share == 0:
        return f"{100 * share:.0f} %"
    return percent(share)


def count(value: float | None) -> str:
    """Write how many, thousands separated; halves of a median stay visible."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def with_unit(value: float | None, unit: str) -> str:
    """Write a measured value with its unit: `4,190 GB/s`."""
    text = significant(value)
    return text if text == NOT_KNOWN else f"{text} {unit}"


def several(number: int | None, noun: str, plural: str | None = None) -> str:
    """Write a number of things: `1 step`, `8 steps`."""
    many = plural or f"{noun}s"
    if number is None:
        return f"a number of {many} that is {NOT_KNOWN}"
    return f"{number:,} {noun if number == 1 else many}"


def times(ratio: float | None) -> str:
    """Write a ratio: `4.1 ×`."""
    if ratio is None or not math.isfinite(ratio):
        return NOT_KNOWN
    return f"{significant(ratio)} ×"
