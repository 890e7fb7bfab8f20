"""The command line: each command parses, calls one function and prints.

Heavy imports stand inside the commands, so that --help is quick. Every failure is one line on
stderr: exit 2 for wrong use or unusable input, 1 where a check said no.
"""

import errno
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from whichwall import __version__
from whichwall.collect.signals import terminable
from whichwall.schemas.errors import UsageError, WhichwallError

DONE, REFUSED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENAMETOOLONG)
PATH = click.Path(path_type=Path)
BATCH, TOKENS = click.IntRange(1, 2**20), click.IntRange(0, 2**30)


class Program(click.Group):
    """Run the command; turn each known failure into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an interrupt ends it without the empty line that click would add."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise click.Abort from error

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run as click does, with our own way to fail."""
        extra["standalone_mode"] = False
        try:
            _check_words(sys.argv[1:] if args is None else args)
            with terminable():
                code = super().main(args, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(0)
        except click.ClickException as error:
            _fail(_usage_line(error))
        except WhichwallError as error:
            _fail(str(error))
        except (click.Abort, KeyboardInterrupt) as error:
            # A sweep says how to go on; whatever else is interrupted leaves nothing.
            said = _one_line(error.__cause__ or error)
            _fail(said or "interrupted; nothing was left behind", INTERRUPTED)
        except OSError as error:
            if error.errno == errno.EPIPE:
                sys.exit(UNUSABLE)
            what = _one_line(error.strerror or str(error))
            advice = "; give a writable --out" if error.errno in UNWRITABLE else ""
            _fail(f"{_one_line(error.filename or 'output')}: {what}{advice}")
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int = UNUSABLE) -> NoReturn:
    click.echo(f"whichwall: {message}", err=True)
    sys.exit(code)


def _check_words(words: Sequence[str]) -> None:
    """Refuse text that no report could name: bytes of a file name that are not UTF-8."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"{word!a}: is not UTF-8; give the file or folder a name that is"
            ) from None


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _usage_line(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    where = f"; see {context.command_path} --help" if context is not None else ""
    return " ".join(error.format_message().split()).rstrip(".") + where


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version=__version__)
def main() -> None:
    """Find which wall a language model on a GPU stands at: bytes, arithmetic or launches."""


@main.command()
@click.option(
    "--mode",
    default="decode",
    show_default=True,
    help="One point: decode, prefill, request. Sweeps: context, prompt, output, batch, ladder "
    "(of engines), attention. The device: ceilings, clocks, tax. A server or vllm: prefix.",
)
@click.option(
    "--model",
    help="Preset, hub id or folder; of a server, its name for the model.  [default: qwen2.5-0.5b, "
    "on CPU tiny; of a server, the only one]",
)
@click.option(
    "--weights",
    default="dummy",
    show_default=True,
    help="dummy (random, no download), hub, or a folder with real weights.",
)
@click.option(
    "--engine",
    default="eager",
    show_default=True,
    help="eager, static-cache, cuda-graph, compile or compile-reduce-overhead; vllm: its engine in "
    "this process; openai: a running server, at --url.",
)
@click.option(
    "--attention",
    default="auto",
    show_default=True,
    help="auto, eager, sdpa, math, efficient, flash or cudnn.",
)
@click.option(
    "--dtype", default="auto", show_default=True, help="auto, bfloat16, float16 or float32."
)
@click.option("--prompt-tokens", type=int, help="Tokens of the prompt.  [default: 1024, on CPU 64]")
@click.option(
    "--new-tokens", type=int, default=32, show_default=True, help="Tokens generated in a request."
)
@click.option(
    "--batch-size",
    type=int,
    default=1,
    show_default=True,
    help="Sequences run together; of a server, requests in flight.",
)
@click.option("--device", default="auto", show_default=True, help="auto, cuda or cpu.")
@click.option(
    "--sample-interval-ms",
    type=int,
    default=100,
    show_default=True,
    help="Time between two samples of nvidia-smi.",
)
@click.option("--values", help="What a sweep varies, as in 1,2,4.  [default: by mode and device]")
@click.option(
    "--work",
    default="decode",
    show_default=True,
    help="What heats the card in clocks: decode, or matmul without a model.",
)
@click.option(
    "--repeat",
    type=int,
    default=1,
    show_default=True,
    help="Fresh processes of decode and prefill. At least: processes of tax, requests of each "
    "loop, visits of each point of a sweep or a server.",
)
@click.option("--quick", is_flag=True, help="Shorter stages; what then cannot be known is null.")
@click.option(
    "--check-roles",
    is_flag=True,
    help="Record a pass by which analyze can say how right roles are.",
)
@click.option(
    "--url", help="Server with the OpenAI completions API; OPENAI_API_KEY is its key, if any."
)
@click.option(
    "--timeout-s", type=float, default=300, show_default=True, help="Of one request to it."
)
@click.option(
    "--trace-folder", type=PATH, help="Where it puts its traces: one is asked for and imported."
)
@click.option("--out", type=PATH, help="Folder of the run.  [default: traces/, named by content]")
@click.option("--overwrite", is_flag=True, help="Replace an earlier run at --out.")
@click.option("--resume", type=PATH, help="Go on with an interrupted sweep; takes its --out alone.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- python SCRIPT …]")
@click.pass_context
def collect(context: click.Context, /, command: tuple[str, ...], **asked: Any) -> None:
    """Record a run on this machine.

    Timings, a trace, clocks and power, and the limits of the device. After --, of a script with
    whichwall.collect.record in it.
    """
    if command:
        _collect_script(context, command, asked["out"], overwrite=asked["overwrite"])
        return
    from whichwall.collect.collect import collect as collect_run
    from whichwall.collect.options import CollectOptions

    click.echo(collect_run(CollectOptions(**asked)))


def _collect_script(
    context: click.Context, command: tuple[str, ...], out: Path | None, *, overwrite: bool
) -> None:
    """Run a script that records itself; it says itself what and how, so only --out is ours."""
    from whichwall.collect.script import run_script

    ours = {"command", "out", "overwrite"}
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in ours and source is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{option}: does not go with a script, which says such things in record(…); leave "
                f"it out, or leave the script out; see {context.command_path} --help"
            )
    runs = run_script(command, out, overwrite=overwrite)
    if out is not None and out not in runs:
        click.echo(f"whichwall: --out {out} was not used: the script names a folder", err=True)
    click.echo("\n".join(map(str, runs)))


@main.command("import")
@click.argument("files", nargs=-1, required=True, type=PATH)
@click.option("--out", type=PATH, help="Folder of the run.  [default: traces/FILE]")
@click.option("--model", type=PATH, help="The model's config.json, for floors and roles.")
@click.option("--samples", type=PATH, help="nvidia-smi's CSV, stamps in UTC.")
@click.option(
    "--sample-fields", help="Its columns as queried, comma-separated, if it has no header."
)
@click.option("--overwrite", is_flag=True, help="Replace an earlier run at --out.")
def import_(
    files: tuple[Path, ...],
    out: Path | None,
    model: Path | None,
    samples: Path | None,
    sample_fields: str | None,
    overwrite: bool,
) -> None:
    """Make a run of profiler traces.

    Kineto JSON, plain or gz, one FILE a rank.
    """
    from whichwall.collect.importer import default_out, import_run

    run = import_run(
        files,
        out or default_out(files[0]),
        model=model,
        samples=samples,
        sample_fields=[f.strip() for f in sample_fields.split(",")] if sample_fields else None,
        overwrite=overwrite,
    )
    click.echo(run)


@main.command()
@click.argument("runs", nargs=-1, required=True, type=PATH)
@click.option("--out", type=PATH, help="Folder of the report.  [default: RUN/report]")
@click.option(
    "--clean-step-ms",
    type=click.FloatRange(min=0, min_open=True),
    help="Time of a decode step without a profiler, for a trace that has none.",
)
@click.option(
    "--clean-run",
    type=PATH,
    help="Run of the same load that timed this step without a profiler.",
)
@click.option(
    "--reference",
    type=PATH,
    help="Run of the same model, eager or with the capture: tells roles in graph replays.",
)
@click.option("--json", "as_json", is_flag=True, help="Print summary.json, one line a run.")
def analyze(
    runs: tuple[Path, ...],
    out: Path | None,
    clean_step_ms: float | None,
    clean_run: Path | None,
    reference: Path | None,
    as_json: bool,
) -> None:
    """Say which wall each RUN stands at.

    Writes summary.json, roles.parquet, report.md, report.html and charts.
    """
    from whichwall.analyze.analysis import analyze_to_folder
    from whichwall.analyze.report.answer import answer
    from whichwall.analyze.report.role_check import checked

    if out is not None and len(runs) > 1:
        raise UsageError("--out takes one run; leave it out to write each report into its run")
    for run in runs:
        inputs, report = analyze_to_folder(
            run, out, clean_step_ms=clean_step_ms, clean_run=clean_run, reference=reference
        )
        if as_json:
            _print_json(inputs.summary.encode(), one_line=len(runs) > 1)
        else:
            said = [answer(inputs), *checked(inputs), report / "report.md", report / "report.html"]
            click.echo("\n".join(map(str, said)))


@main.command()
@click.argument("a", type=PATH)
@click.argument("b", type=PATH)
@click.option("--out", type=PATH, help="Folder for compare.md, compare.html and charts.")
@click.option(
    "--fail-above",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="Exit 1 if B's step is slower than A's by more, beyond doubt.",
)
@click.option("--json", "as_json", is_flag=True, help="Print compare.json.")
def compare(a: Path, b: Path, out: Path | None, fail_above: float | None, as_json: bool) -> int:
    """Compare run B with run A.

    Steps with their noise, GPU work and gaps, roles, clocks, energy, limits and what was run; any
    two runs, point by point.
    """
    from whichwall.analyze.comparison import compare_runs, write_comparison
    from whichwall.analyze.report.comparison import brief
    from whichwall.analyze.report.terminal import terminal

    found = compare_runs(a, b, fail_above=fail_above)
    written = None if out is None else write_comparison(found, out)
    if as_json:
        _print_json(found.encode(), one_line=False)
        if found.check:
            click.echo(f"whichwall: {found.check.says}", err=True)
    else:
        click.echo(terminal(brief(found)))
        if written is not None:
            click.echo(f"\n{written / 'compare.md'}\n{written / 'compare.html'}")
    return REFUSED if found.check and found.check.above else DONE


@main.command()
@click.argument("runs", nargs=-1, required=True, type=PATH)
def validate(runs: tuple[Path, ...]) -> int:
    """Say whether each RUN is whole.

    Checksums, tables, ranges and links. One line for a run that is; else a line per finding, and
    exit code 1.
    """
    from whichwall.analyze.validate import validate as check

    whole = True
    for run in runs:
        found = check(run)
        whole = whole and found.is_whole
        click.echo("\n".join(found.lines()))
    return DONE if whole else REFUSED


@main.command()
@click.option("--model", help="Preset, or a config.json.")
@click.option("--gpu", help="Card by its datasheet; list prints all.")
@click.option("--ceilings", type=PATH, help="Run that measured the card.")
@click.option("--bandwidth-gbs", type=float, help="Memory bandwidth of a card, with --tflops.")
@click.option("--tflops", type=float, help="Its rate of matrix products.")
@click.option("--memory-gb", type=float, help="Its memory, where that is not known or not all.")
@click.option("--link-gbs", type=float, help="What a rank sends to the others.")
@click.option("--batch", type=BATCH, default=1, show_default=True, help="Sequences at once.")
@click.option("--context", type=TOKENS, help="Tokens cached of each.  [default: 1024]")
@click.option(
    "--phase",
    type=click.Choice(["prefill", "decode", "both"]),
    default="both",
    show_default=True,
    help="Which passes.",
)
@click.option("--prompt-tokens", type=TOKENS, help="Tokens of a prefill.  [default: --context]")
@click.option(
    "--dtype", help="Of weights: bf16, fp16, fp32, fp8, int8, int4, fp4.  [default: by model]"
)
@click.option("--kv-dtype", help="Of the cache.  [default: 16 bits, or as --dtype]")
@click.option(
    "--tensor-parallel",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Ranks that share the model.",
)
@click.option(
    "--latent",
    type=click.Choice(["expanded", "absorbed"]),
    help="Form of latent attention, if the model has it.  [default: expanded]",
)
@click.option(
    "--logits",
    type=click.Choice(["last", "all"]),
    default="last",
    show_default=True,
    help="Of which tokens of a prompt.",
)
@click.option(
    "--chart", type=PATH, help="File for tokens/s of each against all: .svg, .png or .html."
)
@click.option("--contexts", help="Its curves, as in 1024,8192.  [default: 1024,8192,32768]")
@click.option("--measured", type=PATH, help="Run whose decode steps are drawn on it.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it for machines.")
def predict(*, as_json: bool, **asked: Any) -> None:
    """Say on paper how fast a model can be on a card, and what binds.

    From shapes and two numbers, without a GPU: the floor of each operation and of the step, the
    batch at which bytes stop binding, the memory, and how many conversations fit.
    """
    from whichwall.analyze.predict_limits import sheets
    from whichwall.analyze.predict_setting import Options
    from whichwall.analyze.prediction import prediction
    from whichwall.analyze.report.prediction import render

    if asked["gpu"] == "list":
        click.echo("\n".join(sheets()))
        return
    found = prediction(Options(**asked))
    if as_json:
        _print_json(found.encode(), one_line=False)
    else:
        click.echo(render(found, terminal=sys.stdout.isatty()))


@main.command()
def doctor() -> None:
    """Say what this machine can collect, and why not the rest."""
    from whichwall.collect.doctor import examine, render

    for line in render(examine()):
        click.echo(line)


def _print_json(text: bytes, *, one_line: bool) -> None:
    import msgspec

    click.echo(msgspec.json.format(text, indent=-1 if one_line else 2))


if __name__ == "__main__":
    main()
