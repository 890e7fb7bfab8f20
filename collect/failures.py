"""Say in one line what a machine could not do: memory, disk, kernels."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whichwall.collect.options import CollectOptions
from whichwall.schemas.errors import CollectError

# torch has no type of its own for a failed allocation on the CPU.
_CPU_OUT_OF_MEMORY = ("not enough memory", "can't allocate memory")
_NO_KERNEL = ("No available kernel", "No viable backend", "cuDNN Frontend error")
# Whose errors mean that a pass cannot be compiled here.
_COMPILERS = ("torch._dynamo", "torch._inductor", "triton")


@contextmanager
def explained(options: CollectOptions, what: str, out: Path) -> Iterator[None]:
    """Turn what torch and the disk raise into one line that says what to do.

    Raises:
        CollectError: in place of a RuntimeError, MemoryError or OSError from inside the block.
    """
    from whichwall.collect.device import first_line

    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise out_of_memory(options, what) from error
        if _lacks_kernel(error):
            raise CollectError(
                f"{what}: --attention {options.attention} has no kernel for this model, type and "
                "device; give another, or auto"
            ) from error
        raise CollectError(f"{what}: torch failed ({first_line(error)})") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise CollectError(
                f"{out}: no space left on its disk; free some, or give --out elsewhere"
            ) from error
        raise CollectError(f"{out}: cannot be written ({error.strerror or error})") from error


def point_failures() -> tuple[type[Exception], ...]:
    """Return what a point of a sweep may raise and the other points go on."""
    known = (RuntimeError, MemoryError, CollectError, ImportError)
    # Triton's own errors are of no type above, and it comes with torch only where there is a GPU.
    compiler = sys.modules.get("triton.errors")
    return known if compiler is None else (*known, compiler.TritonError)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error, or one that it came from, is a failed allocation."""
    import torch

    return any(
        isinstance(one, (torch.OutOfMemoryError, MemoryError))
        or (isinstance(one, RuntimeError) and any(sign in str(one) for sign in _CPU_OUT_OF_MEMORY))
        for one in _causes(error)
    )


def why_refused(error: BaseException, engine: str, attention: str) -> str:
    """Return in one sentence why a point cannot be run here."""
    from whichwall.collect.device import first_line

    if _lacks_kernel(error):
        return f"attention {attention} has no kernel for this model, type and device"
    if isinstance(error, CollectError):
        return str(error)
    if any(type(one).__module__.startswith(_COMPILERS) for one in _causes(error)):
        return f"engine {engine} cannot compile here ({first_line(error)})"
    return f"torch failed ({first_line(error)})"


def _lacks_kernel(error: BaseException) -> bool:
    return any(sign in str(error) for sign in _NO_KERNEL)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that it came from; compilers wrap what stopped them."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def out_of_memory(options: CollectOptions, what: str) -> CollectError:
    """Return the error of a run that does not fit, with what to lower."""
    asked = f"--batch-size {options.batch_size}"
    if options.prompt_tokens:
        asked += f", --prompt-tokens {options.prompt_tokens}"
    return CollectError(
        f"{what}: out of memory; lower {asked}, or give a smaller --model or a narrower --dtype"
    )
