"""Whichwall: which wall does this workload stand at: bytes, arithmetic or launches?"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whichwall.schemas.run import open_run as open  # noqa: A004

__all__ = ["__version__", "open"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import `open` on first use, so that importing whichwall stays free of polars."""
    if name == "open":
        from whichwall.schemas.run import open_run

        return open_run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
