import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import whichwall
from tests.conftest import ROOT

TOP = ("analyze", "collect", "schemas")


def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def declared() -> list[Requirement]:
    """Return what the package and its extras ask for."""
    listed = project()["project"]
    extras = listed["optional-dependencies"].values()
    return [
        Requirement(line) for line in [*listed["dependencies"], *(x for e in extras for x in e)]
    ]


def pins() -> dict[str, Version]:
    """Return the versions of constraints.txt by package."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    split = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in split}


def test_each_folder_is_listed_as_a_package() -> None:
    folders = {
        "whichwall." + ".".join(init.parent.relative_to(ROOT).parts)
        for top in TOP
        for init in (ROOT / top).rglob("__init__.py")
    }

    assert {"whichwall", *folders} == set(project()["tool"]["setuptools"]["packages"])


def test_no_folder_of_modules_lacks_an_init() -> None:
    folders = {path.parent for top in TOP for path in (ROOT / top).rglob("*.py")}

    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_type_checkers_see_the_installed_shape() -> None:
    entries = (ROOT / ".types" / "whichwall").iterdir()
    links = {link.name: link.resolve() for link in entries if link.name != "__pycache__"}

    assert links == {name: ROOT / name for name in (*TOP, "__init__.py", "cli.py", "py.typed")}


def test_the_library_is_one_package_under_one_name() -> None:
    assert not {"collect", "analyze", "schemas", "cli"} & set(sys.modules)


def test_the_version_heads_the_changelog() -> None:
    heads = re.findall(r"^## \[?([\w.]+)", (ROOT / "CHANGELOG.md").read_text(), re.M)

    assert heads[0] in {whichwall.__version__, "Unreleased"}
    assert whichwall.__version__ in heads


def test_the_program_runs_from_a_checkout() -> None:
    run = subprocess.run(
        [sys.executable, "cli.py", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert run.stdout.startswith("Usage: ")


def test_every_declared_package_is_pinned_within_its_bound() -> None:
    pinned = pins()
    wanted = {canonicalize_name(r.name): r.specifier for r in declared()}

    assert [name for name in wanted if name not in pinned] == []
    assert [name for name, bound in wanted.items() if pinned[name] not in bound] == []


def test_pins_name_no_build_of_one_machine() -> None:
    assert [name for name, version in pins().items() if version.local] == []


def test_what_the_declared_packages_bring_along_is_pinned_too() -> None:
    waiting, seen = [(r.name, frozenset(r.extras)) for r in declared()], set()
    while waiting:
        name, extras = waiting.pop()
        if (canonicalize_name(name), extras) in seen:
            continue
        seen.add((canonicalize_name(name), extras))
        waiting += _brought_by(name, extras)

    assert {name for name, _ in seen} - set(pins()) == set()


def _brought_by(name: str, extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    found = [Requirement(line) for line in lines]
    return [
        (r.name, frozenset(r.extras))
        for r in found
        if not r.marker or any(r.marker.evaluate({"extra": e}) for e in (extras or {""}))
        # torch pins the CUDA packages of its own build, and only that build has them.
        if not (name == "torch" and "==" in str(r.specifier))
    ]
