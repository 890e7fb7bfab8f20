"""Versions of installed packages, without importing them."""

from importlib.metadata import PackageNotFoundError, version


def package_version(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
