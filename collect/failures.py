"""Say in one line what a machine could not do: memory, disk, kernels."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whichwall.collect.options import CollectOptions
from whichwall.schemas.errors import CollectError

# torch has no type of its own for a failed allocation on the CPU.
_CPU_OUT_OF_MEMORY = ("not enough memory", "can't allocate memory")
_NO_KERNEL = ("No available kernel", "No viable backend")


@contextmanager
def explained(options: CollectOptions, what: str, out: Path) -> Iterator[None]:
    """Turn what torch and the disk raise into one line that says what to do.

    Raises:
        CollectError: in place of a RuntimeError, MemoryError or OSError from inside the block.
    """
    import torch

    from whichwall.collect.device import first_line

    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise out_of_memory(options, what) from error
    except RuntimeError as error:
        text = str(error)
        if any(sign in text for sign in _CPU_OUT_OF_MEMORY):
            raise out_of_memory(options, what) from error
        if any(sign in text for sign in _NO_KERNEL):
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


def out_of_memory(options: CollectOptions, what: str) -> CollectError:
    """Return the error of a run that does not fit, with what to lower."""
    asked = f"--batch-size {options.batch_size}"
    if options.prompt_tokens:
        asked += f", --prompt-tokens {options.prompt_tokens}"
    return CollectError(
        f"{what}: out of memory; lower {asked}, or give a smaller --model or a narrower --dtype"
    )
