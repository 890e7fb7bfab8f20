import shutil
import stat
from pathlib import Path

import pytest

from whichwall.collect.doctor import Finding, examine, render


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """Examine this machine once for all tests that only look."""
    return examine(tmp_path_factory.mktemp("traces"))


def test_every_finding_that_is_wrong_says_what_to_do(findings: list[Finding]) -> None:
    names = [finding.name for finding in findings]
    assert names[:3] == ["python", "torch", "transformers"]
    assert {"nvidia-smi", "energy", "profiler", "disk", "analyze"} <= set(names)
    assert [f for f in findings if f.ok is False and not f.remedy] == []


def test_the_profiler_is_tried_in_a_process_of_its_own(findings: list[Finding]) -> None:
    found = {finding.name: finding for finding in findings}["profiler"]

    assert found.ok is True
    assert found.what.startswith("a trial trace holds")


def test_a_driver_that_does_not_answer_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sh = shutil.which("sh")
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!{sh}\necho "NVIDIA-SMI has failed because it couldn\'t communicate"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))

    found = {finding.name: finding for finding in examine(tmp_path)}["nvidia-smi"]

    assert found.ok is False
    assert found.what.startswith("NVIDIA-SMI has failed")


def test_lines_carry_a_mark_a_name_and_the_remedy() -> None:
    findings = [
        Finding("python", ok=True, what="3.11"),
        Finding("disk", ok=False, what="0.1 GB free", remedy="free some"),
        Finding("gpu", ok=None, what="none"),
    ]

    assert render(findings) == [
        "ok  python  3.11",
        "no  disk    0.1 GB free",
        "            free some",
        "-   gpu     none",
    ]
