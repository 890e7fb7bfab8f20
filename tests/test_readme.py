"""Documents are checked: the map against the tree, commands against the program, paths."""

import re

from tests.conftest import ROOT
from whichwall.cli import main

MAPPED = ("analyze", "benchmarks", "collect", "schemas")

# A line of the map: - `collect/smi.py` nvidia-smi's CSV, sample by sample
LINE = re.compile(r"^\s*[-*] `([\w/]+\.py)`:? +(\S.*)$", re.MULTILINE)


def test_the_map_has_one_line_for_every_module() -> None:
    tree = {
        str(path.relative_to(ROOT))
        for top in MAPPED
        for path in (ROOT / top).rglob("*.py")
        if path.name != "__init__.py"
    }
    named = [path for path, _ in LINE.findall((ROOT / "README.md").read_text())]

    assert sorted(named) == sorted({"cli.py", *tree})


def test_the_readme_shows_every_command() -> None:
    text = (ROOT / "README.md").read_text()

    assert [name for name in main.commands if f"whichwall {name}" not in text] == []


def test_the_readme_runs_no_command_that_does_not_exist() -> None:
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M)
    said = {
        match[1]
        for block in blocks
        for match in re.finditer(r"^(?:\$ )?(?:whichwall|cli) ([a-z]+)", block, re.M)
    }

    assert said <= set(main.commands)


def test_every_link_to_a_file_leads_to_it() -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text())

    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_file_that_contributing_names_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    # Capitals stand for a name of one's own: `schemas/NOUN.py`.
    named = re.findall(r"[`=]((?:[a-z_]+/)+(?:[a-z_.]+|README\.md)?)`", text)

    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_make_target_in_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    said = set(re.findall(r"(?:`|^)make ([a-z]+)", (ROOT / "README.md").read_text(), re.M))

    assert said <= targets
