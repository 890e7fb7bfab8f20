from pathlib import Path

from tests.killing import kills, left_over

# A few moments of a small import; `make kills` has many of a large one.
KILLS, MEGABYTES, SEED = 6, 3, 7


def test_an_import_killed_at_any_moment_leaves_no_run_or_a_whole_one(tmp_path: Path) -> None:
    done = list(kills(tmp_path, KILLS, MEGABYTES, SEED))

    assert [one for one in done if not one.is_right] == []
    assert any(one.killed for one in done)
    assert left_over(tmp_path) == []
