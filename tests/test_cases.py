"""Handed fault cases: each file has one known fault, and `cases.json` its exact right answer."""

from pathlib import Path

import pytest

from tests.differences import ABSENT, Check
from tests.fault_cases import case_checks

CHECKS = case_checks()


@pytest.mark.skipif(not CHECKS, reason=f"no fault cases: {ABSENT}")
@pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])
def test_a_fault_case_gives_all_that_it_states(check: Check, tmp_path: Path) -> None:
    assert check.differences(tmp_path) == []
