import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from tests.conftest import ROOT
from whichwall.cli import main


def commands(group: click.Group, name: str = "whichwall") -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group, with its whole name."""
    for word, command in group.commands.items():
        yield f"{name} {word}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {word}")


COMMANDS = dict(commands(main))


def test_help_imports_none_of_the_heavy_packages() -> None:
    code = (
        "import sys\n"
        "from whichwall.cli import main\n"
        "sys.argv = ['whichwall', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    pass\n"
        "print({'polars', 'pyarrow', 'altair', 'torch', 'transformers', 'numpy'} & {*sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / ".types")},
    )

    assert run.stdout.startswith("Usage: whichwall")
    assert run.stdout.endswith("\nset()\n")


def test_help_lists_every_command() -> None:
    assert {"analyze", "collect", "doctor", "import", "validate"} <= set(main.commands)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does(name: str) -> None:
    command = COMMANDS[name]

    assert command.help
    assert command.get_short_help_str(limit=200).endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    options = [p for p in COMMANDS[name].params if isinstance(p, click.Option)]

    assert [o.name for o in options if not (o.help or o.hidden)] == []
