"""The suffix of a file is its format, and a file that cannot be written is an error before the work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness import Run, UsageError
from harness.cli.main import run_command
from harness.cli.output import check_output_file, choose_format
from harness.storage.run_folder import run_folders
from tests.conftest import Cli

FORMATS = {"console": ".txt", "html": ".html", "latex": ".tex", "json": ".json"}


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("stem", ["run", "r.run", "r..a.b", ".run"])
def test_a_suffix_names_its_format(stem: str, name: str, upper: bool) -> None:
    suffix = FORMATS[name].upper() if upper else FORMATS[name]
    path = Path(stem + suffix)
    assert choose_format(None, path, FORMATS) == name
    for other in FORMATS:
        if other == name:
            assert choose_format(other, path, FORMATS) == other
        else:
            with pytest.raises(UsageError, match="suffix"):
                choose_format(other, path, FORMATS)
            assert choose_format(other, path, FORMATS, folders=[other]) == other


@given(suffix=st.text("abcdefgh", min_size=1).map(lambda text: f".{text}"))
def test_an_output_that_no_format_fits_is_an_error(suffix: str) -> None:
    with pytest.raises(UsageError, match="suffix"):
        choose_format(None, Path(f"report{suffix}"), FORMATS)
    with pytest.raises(UsageError, match="suffix"):
        check_output_file(Path(f"report{suffix}"), ".html")
    assert choose_format("html", Path(f"report{suffix}"), FORMATS) == "html"


def test_no_suffix_is_the_first_format(tmp_path: Path) -> None:
    assert {choose_format(None, path, FORMATS) for path in (None, Path("report"), Path("/dev/stdout"))} == {
        "console"
    }
    check_output_file(tmp_path / "report", ".html")


@pytest.mark.parametrize(
    ("command", "file", "start"),
    [
        (("report",), "x.html", "<!doctype html>"),
        (("report",), "x.tex", "%"),
        (("report",), "x.CSV", "model,task,"),
        (("report", "--equity"), "x.json", "["),
        (("diagnose", "--tasks", "udpos"), "x.json", "["),
        (("diagnose", "--tasks", "udpos"), "x.txt", "SAMPLE DATA"),
        (("export", "--to", "csv"), "x.csv", ""),
    ],
)
def test_commands_write_what_the_suffix_says(
    command: tuple[str, ...], file: str, start: str, cli: Cli, sample_run: Run
) -> None:
    name, *options = command
    status, _, error = cli(name, str(sample_run.path), *options, "--output", file)
    assert (status, error) == (0, "")
    assert Path(file).read_text(encoding="utf-8").startswith(start)


@pytest.mark.parametrize(
    "options",
    [
        ("report", "--output", "x.foo"),
        ("report", "--format", "csv", "--output", "x.html"),
        ("report", "--json", "x.html"),
        ("compare", "--output", "x.foo"),
        ("diagnose", "--output", "x.html"),
        ("export", "--to", "csv", "--output", "x.html"),
        ("board", "--output", "x.txt"),
        ("board", "--csv", "x.json"),
        ("score", "--json", "x.csv"),
    ],
)
def test_a_wrong_suffix_writes_nothing(options: tuple[str, ...], cli: Cli, sample_run: Run) -> None:
    name, *rest = options
    status, _, error = cli(name, str(sample_run.path), *rest)
    assert status == 2
    assert "suffix" in error
    assert not list(Path().iterdir())


def test_a_language_lists_its_tasks(cli: Cli) -> None:
    assert cli("tasks", "list", "@sw", "--json", "a.json")[0] == 0
    assert cli("tasks", "list", "--language", "sw", "--json", "b.json")[0] == 0
    rows = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert rows == json.loads(Path("b.json").read_text(encoding="utf-8"))
    assert all("sw" in row["languages"] + row["on_request"] for row in rows)
    status, _, error = cli("tasks", "list", "@sw", "--language", "sw")
    assert (status, "@sw" in error) == (2, True)


def test_a_folder_of_runs_is_its_runs(tmp_path: Path) -> None:
    for name in ("runs/b", "runs/a", "runs/a/baselines/majority", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").touch()
    (tmp_path / "runs/empty").mkdir()
    runs = tmp_path / "runs"
    assert run_folders([runs, runs / "a", tmp_path / "other"]) == [runs / "a", runs / "b", tmp_path / "other"]
    assert run_folders([runs / "empty"]) == [runs / "empty"]


@pytest.mark.parametrize(
    "command",
    [
        "report RUN --format html --output FILE.html",
        "report RUN --json FILE.json",
        "export RUN --to csv --output FILE.csv",
        "board RUN --output FILE.html",
        "languages --json FILE.json",
        "checklist lint --json FILE.json",
        "tasks schema --output FILE.json",
    ],
)
def test_a_folder_that_does_not_exist(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing"
    status = run_command(command.replace("FILE", f"{missing}/file").split())
    assert status == 2
    assert f"mkdir -p {missing}" in capsys.readouterr().err
    assert not missing.exists()
