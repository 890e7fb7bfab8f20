"""Several ranks, one run: each writes its part, and rank 0 puts them together.

They meet in a hidden folder beside the run, named after the launch, so nothing needs
torch.distributed. Rank 0 calls with a new word, and each rank hands its part in under that word:
what an earlier launch that was killed has left there answers to another one, and is removed.
"""

import hashlib
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from whichwall.schemas.diagnostics import Diagnostic
from whichwall.schemas.errors import CollectError, UsageError
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.manifest import Gpu, Manifest, ProfilerFacts, read_manifest

# Ranks of one loop end within seconds of each other, unless one does more at its end: evaluate,
# save a checkpoint.
WAIT_S = 300.0
POLL_S = 0.05
CALL = "call"


@dataclass(frozen=True)
class Launch:
    """Which of how many processes this is; `id` is the same in all of one launch."""

    rank: int = 0
    world: int = 1
    local_rank: int | None = None
    id: str = ""

    @property
    def is_alone(self) -> bool:
        """Tell whether there are no other ranks."""
        return self.world == 1

    def meeting(self, anchor: Path) -> Path:
        """Return the folder in which the ranks of a run at `anchor` meet."""
        return anchor.parent / f".{anchor.name}.{self.id}.ranks"


def find_launch(variables: Mapping[str, str]) -> Launch:
    """Read what torchrun and its like set: RANK, WORLD_SIZE and where the ranks meet.

    Raises:
        UsageError: they contradict each other.
    """
    where = [
        variables.get(name, "")
        for name in (
            "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"
        )
    ]  # fmt: skip
    rank, world = _number(variables, "RANK"), _number(variables, "WORLD_SIZE")
    if rank is None or world is None or world == 1 or not any(where):
        return Launch()
    if rank >= world:
        raise UsageError(f"RANK={rank} with WORLD_SIZE={world}: ranks count from 0; mend the two")
    name = hashlib.sha256("\n".join(where).encode()).hexdigest()[:8]
    return Launch(rank, world, _number(variables, "LOCAL_RANK"), name)


def _number(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "").strip()
    if text and not text.isdecimal():
        raise UsageError(f"{name}={text}: not a number; set it as torchrun does, or unset it")
    return int(text) if text else None


def finish_together(
    writer: RunWriter, manifest: Manifest, launch: Launch, meeting: Path, wait_s: float
) -> Path | None:
    """Finish this rank's part; on rank 0 the whole run, whose folder it returns.

    Raises:
        CollectError: rank 0 did not take this rank's part in time.
    """
    if launch.rank:
        hand_in(writer.finish(manifest), meeting, launch.rank, wait_s)
        return None
    with gathered(meeting, launch.world, wait_s) as parts:
        manifests = {rank: read_manifest(part) for rank, part in sorted(parts.items())}
        for rank, one in manifests.items():
            writer.adopt(parts[rank], one)
        missing = [rank for rank in range(1, launch.world) if rank not in parts]
        return writer.finish(merged([manifest, *manifests.values()], missing, wait_s))


@contextmanager
def gathered(meeting: Path, world: int, wait_s: float) -> Iterator[dict[int, Path]]:
    """Wait for the parts of all other ranks, by rank; the block has those that came in time."""
    word = uuid.uuid4().hex[:8]
    try:
        meeting.mkdir(parents=True, exist_ok=True)
        unsaid = meeting / word
        unsaid.write_text(word)
        unsaid.replace(meeting / CALL)
        awaited = {rank: _place(meeting, rank, word) for rank in range(1, world)}
        deadline = time.monotonic() + wait_s
        while not all(part.is_dir() for part in awaited.values()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        yield {rank: part for rank, part in awaited.items() if part.is_dir()}
    finally:
        shutil.rmtree(meeting, ignore_errors=True)


def hand_in(part: Path, meeting: Path, rank: int, wait_s: float) -> None:
    """Give a finished part to rank 0; return when it has been taken.

    Raises:
        CollectError: nobody took it in time; it is removed.
    """
    deadline = time.monotonic() + wait_s
    given = part
    try:
        while time.monotonic() < deadline:
            if not given.is_dir():
                return
            word = _called(meeting)
            if word and given != (place := _place(meeting, rank, word)):
                with suppress(FileNotFoundError):  # rank 0 has gone in this very moment
                    given = given.rename(place)
            time.sleep(POLL_S)
    finally:
        shutil.rmtree(given, ignore_errors=True)
    raise CollectError(
        f"rank {rank}: rank 0 did not take its part of the run within {wait_s:g} s, so it is "
        "lost; see what became of rank 0"
    )


def _place(meeting: Path, rank: int, word: str) -> Path:
    return meeting / f"rank{rank}.{word}"


def _called(meeting: Path) -> str | None:
    """Return the word that rank 0 calls with; None while it does not."""
    try:
        return (meeting / CALL).read_text()
    except FileNotFoundError:
        return None


def merged(manifests: list[Manifest], missing: list[int], wait_s: float) -> Manifest:
    """Return the manifest of the whole run from those of its parts, rank 0's first.

    The sampler's facts and the energy counter are those of rank 0 and its GPU.
    """
    gpus: list[Gpu] = []
    said: list[Diagnostic] = []
    for one in manifests:
        gpus += [gpu for gpu in one.gpus if gpu not in gpus]
        said += [_by_rank(one.ranks[0].rank, diagnostic) for diagnostic in one.diagnostics]
    if missing:
        names = ", ".join(map(str, missing))
        text = f"rank {names} wrote no part within {wait_s:g} s after rank 0 had ended"
        said.append(Diagnostic("missing_rank", "error", len(missing), text))
    return msgspec.structs.replace(
        manifests[0],
        ranks=[facts for one in manifests for facts in one.ranks],
        gpus=gpus,
        profiler=_all_profiled([one.profiler for one in manifests]),
        diagnostics=said,
    )


def _by_rank(rank: int, said: Diagnostic) -> Diagnostic:
    return msgspec.structs.replace(said, message=f"rank {rank}: {said.message}")


def _all_profiled(found: list[ProfilerFacts | None]) -> ProfilerFacts | None:
    """Return how the traces were taken, with the kernels of all of them."""
    known = [facts for facts in found if facts is not None]
    if not known:
        return None
    return msgspec.structs.replace(
        known[0],
        kernels=_sum([facts.kernels for facts in known]),
        launches_without_kernel=_sum([facts.launches_without_kernel for facts in known]),
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
