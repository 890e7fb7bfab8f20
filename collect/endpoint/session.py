"""One run of a server: meet it, visit its points in turn, have it traced, and write what came.

A server that goes away ends the run early and whole, with what was measured until then. A sweep is
kept in a journal as other sweeps are.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from whichwall import __version__
from whichwall.collect import journal as journals
from whichwall.collect.endpoint.address import Address, address_of
from whichwall.collect.endpoint.client import Client
from whichwall.collect.endpoint.dialect import KEY
from whichwall.collect.endpoint.local_gpu import LocalGpu, find_gpu
from whichwall.collect.endpoint.plan import (
    ServedPoint,
    VisitPlan,
    called,
    command_line,
    plan_points,
    visit_plan,
)
from whichwall.collect.endpoint.results import (
    environment_of,
    find_busy,
    find_failed,
    find_gone,
    find_manner,
    point_row,
)
from whichwall.collect.endpoint.rows import RowLog, numbers_after
from whichwall.collect.endpoint.server import Met, is_gone, meet
from whichwall.collect.endpoint.server_trace import ServerTrace, import_traces, take_trace
from whichwall.collect.endpoint.visits import Visitor, has_failed, in_turn
from whichwall.collect.journal import Bench, Header, Journal, Visit
from whichwall.collect.options import SWEEPS, CollectOptions, default_out
from whichwall.collect.progress import Reporter, reporting
from whichwall.collect.sampler import Sampler
from whichwall.collect.sampler import Samples as Sampled
from whichwall.collect.smi_health import missing
from whichwall.collect.writing import Measured, Origin, write_tables
from whichwall.schemas.errors import UsageError
from whichwall.schemas.experiments import PREFIX
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.points import DONE

# A server that is started anew is back within some seconds, or takes minutes to load its model.
GONE_TRIES, GONE_WAIT_S = 3, 1.0


@dataclass
class _Session:
    """A server being measured."""

    options: CollectOptions
    address: Address
    key: str | None
    met: Met
    points: list[ServedPoint]
    local: LocalGpu
    created_ns: int
    journal: Journal | None = None  # of a sweep that can be gone on with
    visits: list[Visit] = field(default_factory=list)
    resumed: int | None = None
    gone: str | None = None  # why the server no longer answers
    busy: dict[int, float] = field(default_factory=dict)
    trace: ServerTrace | None = None
    traced: RowLog | None = None

    @property
    def plan(self) -> VisitPlan:
        return visit_plan(self.options)

    def client(self) -> Client:
        return Client(self.address, self.key, self.options.timeout_s)

    def called(self, point: ServedPoint) -> str:
        return called(self.options.mode, point)

    def note(self, visits: list[Visit]) -> None:
        """Keep visits, on disk first where there is a journal."""
        for visit in visits:
            if self.journal is not None:
                self.journal.add(visit)
            self.visits.append(visit)


def run(options: CollectOptions, writer: RunWriter | None) -> Path:
    """Measure a server and write its run; `writer` is None where nothing says where to.

    Raises:
        UsageError: no usable address or key, several models, a destination that exists.
        CollectError: no server, or one that cannot be measured.
        KeyboardInterrupt: with what to do to go on, once a visit is in the journal.
    """
    created_ns = time.time_ns()
    address, key = address_of(options.url or ""), _key()
    _check_trace_folder(options)
    with reporting() as reporter:
        reporter.stage(f"asking {address.shown}")
        met = asyncio.run(_meet(Client(address, key, options.timeout_s), options, created_ns))
        points = plan_points(options, met.served.longest)
        local = find_gpu(address)
        session = _Session(options, address, key, met, points, local, created_ns)
        writer = writer or RunWriter(_default_out(session), overwrite=options.overwrite)
        with _kept(session, writer.out):
            path = _collect(session, writer, reporter)
        if session.journal is not None:
            session.journal.remove()
        return path


def _key() -> str | None:
    """Return the server's key from the environment; it goes nowhere but into requests."""
    key = os.environ.get(KEY, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{KEY}: holds letters that no request can carry; set it anew")
    return key or None


def _check_trace_folder(options: CollectOptions) -> None:
    folder = options.trace_folder
    if folder is not None and not folder.is_dir():
        raise UsageError(f"--trace-folder {folder}: is no folder; give the one that the server has")


async def _meet(client: Client, options: CollectOptions, created_ns: int) -> Met:
    """Meet the server, and fit texts to the lengths that will be asked for, where ids do not go."""
    async with client:
        met = await meet(client, options.model, created_ns)
        if met.prompter.ids is None:
            points = plan_points(options, met.served.longest)
            lengths = {p.prompt_tokens for p in points} | {p.prefix_tokens for p in points}
            for tokens in sorted(lengths - {0}):
                await met.prompter.fit(tokens, met.dialect(client).count)
        return met


def _default_out(session: _Session) -> Path:
    utc = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    host = urlsplit(session.address.shown).netloc
    return default_out(session.options.mode, session.met.served.name, host, utc)


def _kept(session: _Session, out: Path) -> AbstractContextManager[None]:
    """Begin a sweep's journal or take it up; where it would hold a secret, there is none."""
    options = session.options
    if options.mode not in SWEEPS or session.address.secrets:
        return nullcontext()
    return _journal(session, out)


@contextmanager
def _journal(session: _Session, out: Path) -> Iterator[None]:
    options, met = session.options, session.met
    header = Header(
        options=journals.kept(options),
        created_ns=session.created_ns,
        bench=Bench(
            whichwall=__version__,
            torch=None,
            transformers=None,
            device=session.address.shown,
            gpu_uuid=None if session.local.gpu is None else session.local.gpu.uuid,
            model=None,
            served_model=met.served.name,
        ),
        points=[point.row(DONE, None) for point in session.points],
    )
    with journals.alone(out):
        if options.resume is None:
            session.journal = journals.begin(out, header)
        else:
            session.journal = journals.resume(options.resume)
            journals.refuse_another(session.journal, header)
            session.created_ns = session.journal.header.created_ns
            session.visits = list(session.journal.visits)
            session.resumed = len(session.visits)
        with journals.resumable(session.journal):
            yield


def _collect(session: _Session, writer: RunWriter, reporter: Reporter) -> Path:
    """Visit under the sampler, have a trace taken, and write the run."""
    local, options = session.local, session.options
    uuid = None if local.gpu is None else local.gpu.uuid
    with Sampler(uuid, options.sample_interval_ms) as sampler:
        if uuid is not None:
            reporter.stage("starting nvidia-smi")
            sampler.start()
        asyncio.run(_visit_all(session, sampler, reporter))
        if uuid is not None:
            sampled = sampler.finish()
        else:
            sampled = Sampled([], None, [missing(local.why_none or "", "info")])
    earlier = [row for one in session.visits[: session.resumed or 0] for row in one.samples]
    with writer:
        reporter.stage("writing the run")
        return _write(session, writer, replace(sampled, rows=earlier + sampled.rows))


async def _visit_all(session: _Session, sampler: Sampler, reporter: Reporter) -> None:
    """Make every visit that is missing, unless the server goes away; then have a trace taken."""
    numbers = numbers_after([row for one in session.visits for row in one.completions])
    async with session.client() as client:
        dialect = session.met.dialect(client)
        visitor = Visitor(dialect, session.plan, numbers, session.busy)
        wanted = _wanted(session)
        noted = 0
        for count, (point, number) in enumerate(wanted):
            if session.gone or journals.is_made(session.visits, point.number, number):
                continue
            words = f"visit {count + 1} of {len(wanted)}: {session.called(point)}"
            reporter.part(words, count, len(wanted))
            if session.options.mode == PREFIX:
                found = await visitor.visit_prefix(session.points, number)
            else:
                found = [await visitor.visit(point, number)]
            samples = sampler.rows()
            found[0] = msgspec.structs.replace(found[0], samples=samples[noted:])
            noted = len(samples)
            session.note(found)
            if any(has_failed(one) for one in found):
                session.gone = await is_gone(client, GONE_TRIES, GONE_WAIT_S)
        folder = session.options.trace_folder
        if folder is not None and session.gone is None:
            reporter.stage("having the server trace itself")
            session.traced = RowLog(numbers)
            session.trace = await take_trace(
                client, dialect, session.points[0], folder, session.traced
            )


def _wanted(session: _Session) -> list[tuple[ServedPoint, int]]:
    """Return the visits to make; one of a shared prefix is of all points at once."""
    in_order = list(in_turn(session.points, session.plan.visits))
    if session.options.mode != PREFIX:
        return in_order
    return [(point, number) for point, number in in_order if point.number == 0]


def _write(session: _Session, writer: RunWriter, sampled: Sampled) -> Path:
    """Write the tables, import what the server traced, and finish the folder."""
    options, met, address, visits = session.options, session.met, session.address, session.visits
    traced, trace = session.traced or RowLog({}), session.trace
    facts = met.facts(address)
    imported = import_traces(trace.files if trace else [], writer, session.points[0].number)
    completions = [row for one in visits for row in one.completions] + traced.completions
    measured = Measured(
        points=[
            point_row(point, visits, session.plan.visits, session.gone) for point in session.points
        ],
        environment=environment_of(address),
        gpu=session.local.gpu,
        completions=completions,
        tokens=[row for one in visits for row in one.tokens] + traced.tokens,
        samples=sampled,
        diagnostics=[
            *find_failed(completions),
            *find_gone(session.gone),
            *find_manner(facts),
            *find_busy(session.busy, {p.number: session.called(p) for p in session.points}),
            *journals.find_resumed(session.resumed, len(visits)),
            *imported.diagnostics,
        ],
    )
    origin = Origin(
        mode=options.mode,
        command=command_line(options, address.shown, met.served.name, met.served.longest),
        created_ns=session.created_ns,
        on_gpu=False,  # what this process did used none
    )
    manifest = write_tables(writer, origin, measured)
    return writer.finish(
        msgspec.structs.replace(
            manifest,
            server=msgspec.structs.replace(facts, profiled=trace.says if trace else None),
            ranks=imported.ranks,
        )
    )
