"""Wrong use and bad input: exit code 2, one line that names the file, and no traceback."""

import gzip
import json
import shutil
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from whichwall.cli import main
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.manifest import VERSION, Manifest

TRACE = {
    "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    "traceEvents": [
        {
            "ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5.0, "dur": 2.0,
            "args": {"device": 0, "stream": 7, "correlation": 1},
        }
    ],
}  # fmt: skip


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def refused(result: Result) -> str:
    """Check the form of a refusal and return its line."""
    assert result.exit_code == 2, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return lines[0]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE))
    return path


@pytest.fixture
def imported(trace: Path, tmp_path: Path) -> Path:
    out = tmp_path / "run"
    assert run("import", trace, "--out", out).exit_code == 0
    return out


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["--nonsense"],
        ["import"],
        ["import", "--nonsense"],
        ["analyze"],
        ["validate"],
        ["analyze", "x", "--clean-step-ms", "-1"],
        ["analyze", "x", "--clean-step-ms", "soon"],
        ["collect", "surplus"],
        ["collect", "--batch-size", "many"],
        ["doctor", "surplus"],
    ],
)
def test_wrong_use_is_one_line_that_points_to_help(words: list[str]) -> None:
    assert "--help" in refused(run(*words))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--mode", "poetry"], "--mode poetry"),
        (["--engine", "steam"], "--engine steam"),
        (["--device", "abacus"], "--device abacus"),
        (["--attention", "none"], "--attention none"),
        (["--dtype", "int3"], "--dtype int3"),
        (["--prompt-tokens", "0"], "--prompt-tokens 0"),
        (["--new-tokens", "1"], "--new-tokens 1"),
        (["--batch-size", "0"], "--batch-size 0"),
        (["--sample-interval-ms", "0"], "--sample-interval-ms 0"),
        (["--repeat", "0"], "--repeat 0"),
    ],
)
def test_collect_names_the_option_that_cannot_be(words: list[str], named: str) -> None:
    assert named in refused(run("collect", *words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "openai"], "give the server's --url"),
        (["--engine", "openai", "--url", "localhost:8000"], "expected http://HOST:PORT"),
        (["--url", "http://localhost:8000"], "--url: --engine eager has no use for it"),
        (["--mode", "prefix"], "keeps no prefix of an earlier request"),
    ],
)
def test_collect_of_a_server_names_what_is_missing_or_too_much(words: list[str], said: str) -> None:
    assert said in refused(run("collect", *words))


def test_collect_of_a_server_that_is_not_there_is_one_line_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        line = refused(run("collect", "--engine", "openai", "--url", url, "--out", tmp_path / "r"))

    assert f"{url}: no server answers" in line
    assert list(tmp_path.iterdir()) == []


def test_collect_refuses_an_existing_out_before_it_builds_a_model(imported: Path) -> None:
    assert "--overwrite" in refused(run("collect", "--out", imported, "--model", "unknown"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\x00\x01\x02", "no traceEvents"),
        (b"hello", "no traceEvents"),
        (b'{"model_type": "qwen2"}', "no traceEvents"),
        (gzip.compress(b"hello"), "no traceEvents"),
        (gzip.compress(b"")[:4], "no traceEvents"),
    ],
)
def test_import_names_a_file_that_is_no_trace(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    line = refused(run("import", path, "--out", tmp_path / "run"))
    assert "odd.json" in line
    assert said in line
    assert not (tmp_path / "run").exists()


def test_import_names_a_missing_file(tmp_path: Path) -> None:
    assert "gone.json" in refused(run("import", tmp_path / "gone.json", "--out", tmp_path / "r"))


def test_import_names_a_folder_given_as_a_trace(tmp_path: Path) -> None:
    assert str(tmp_path) in refused(run("import", tmp_path, "--out", tmp_path / "run"))


def test_import_refuses_an_existing_out_and_names_overwrite(trace: Path, imported: Path) -> None:
    assert "--overwrite" in refused(run("import", trace, "--out", imported))
    assert run("import", trace, "--out", imported, "--overwrite").exit_code == 0


def test_import_never_overwrites_what_is_no_run(trace: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years")
    assert "not a run" in refused(run("import", trace, "--out", precious, "--overwrite"))
    assert (precious / "thesis.txt").read_text() == "years"


def test_import_refuses_two_files_of_one_rank(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.json" for name in "ab"]
    for file in files:
        file.write_text(json.dumps({"distributedInfo": {"rank": 3}, **TRACE}))
    assert "rank 3" in refused(run("import", *files, "--out", tmp_path / "run"))


@pytest.mark.parametrize("option", ["--model", "--samples"])
def test_import_names_a_missing_companion_file(option: str, trace: Path, tmp_path: Path) -> None:
    gone = tmp_path / "companion"
    assert "companion" in refused(run("import", trace, option, gone, "--out", tmp_path / "run"))


@pytest.mark.parametrize("option", ["--model", "--samples"])
def test_import_names_an_unusable_companion_file(option: str, trace: Path, tmp_path: Path) -> None:
    odd = tmp_path / "companion"
    odd.write_text("not what it should be")
    assert "companion" in refused(run("import", trace, option, odd, "--out", tmp_path / "run"))


def test_analyze_names_a_missing_run(tmp_path: Path) -> None:
    assert "no such folder" in refused(run("analyze", tmp_path / "gone"))


def test_analyze_names_a_folder_without_a_manifest(tmp_path: Path) -> None:
    assert "run.json" in refused(run("analyze", tmp_path))


def test_analyze_of_a_trace_file_says_what_it_expected(trace: Path) -> None:
    assert "run folder" in refused(run("analyze", trace))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema_version": "one"}', "\0"])
def test_analyze_names_a_broken_manifest(text: str, imported: Path) -> None:
    (imported / "run.json").write_text(text)
    assert "run.json" in refused(run("analyze", imported))


def test_analyze_refuses_a_newer_run_and_names_both_versions(imported: Path) -> None:
    manifest = json.loads((imported / "run.json").read_text())
    manifest["schema_version"] = VERSION + 1
    (imported / "run.json").write_text(json.dumps(manifest))
    line = refused(run("analyze", imported))
    assert str(VERSION + 1) in line
    assert f"up to {VERSION}" in line


def test_analyze_names_a_damaged_table(imported: Path) -> None:
    (imported / "kernels.parquet").write_bytes(b"PAR1 no longer")
    assert "kernels.parquet" in refused(run("analyze", imported))


def test_analyze_names_a_table_under_a_wrong_name(imported: Path) -> None:
    shutil.copy(imported / "ops.parquet", imported / "kernels.parquet")
    assert "expected 'kernels'" in refused(run("analyze", imported))


def test_analyze_takes_one_out_for_one_run(imported: Path, tmp_path: Path) -> None:
    assert "--out" in refused(run("analyze", imported, imported, "--out", tmp_path / "report"))


def test_analyze_never_overwrites_what_is_no_report(imported: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years")
    assert "no report" in refused(run("analyze", imported, "--out", precious))
    assert (precious / "thesis.txt").exists()


def test_analyze_says_when_the_report_cannot_be_written(imported: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "cannot write" in refused(run("analyze", imported, "--out", tmp_path / "file" / "r"))


def test_a_run_without_gpu_activity_is_an_answer(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "empty") as writer:
        writer.finish(
            Manifest(
                schema_version=VERSION, id="", name="", created_ns=0, tool_version="0",
                command="import", mode="import",
            )
        )  # fmt: skip
    result = run("analyze", tmp_path / "empty", "--json")
    assert result.exit_code == 0
    assert "no_gpu_activity" in [d["code"] for d in json.loads(result.stdout)["diagnostics"]]


def test_json_of_several_runs_is_one_line_each(imported: Path, tmp_path: Path) -> None:
    shutil.copytree(imported, tmp_path / "other")
    lines = run("analyze", imported, tmp_path / "other", "--json").stdout.splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["run", "run"]
