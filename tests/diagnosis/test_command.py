from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.diagnosis.conftest import MakeRun, question, sentence

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folders(make_run: MakeRun) -> list[Path]:
    """Two runs of 120 questions in two languages; the second one is better at short questions."""

    def cells(short: float) -> dict[tuple[str, str], list[object]]:
        return {
            ("xquad", code): [question(str(n), n, short if n <= 60 else 1.0) for n in range(1, 121)]
            for code in ("en", "hi")
        }

    return [make_run(name, cells(short)).path for name, short in (("a[b]", 0.0), ("b", 1.0))]


def test_one_run_as_text(cli: Cli, folders: list[Path]) -> None:
    status, out, err = cli("diagnose", folders[0], "--attributes", "qLen")
    assert (status, err) == (0, "")
    assert "xquad (frozen, head)\n  a[b]\n  all of en hi\n" in out
    assert "mean(F1, EM)" in out
    assert " qLen       worst  XS [1, 30] " in out
    assert "--languages shows languages by themselves." in out
    assert max(map(len, out.splitlines())) <= 100
    _, out, _ = cli("diagnose", folders[0], "--attributes", "qLen", "--languages", "hi")
    assert "\n  hi\n" in out


def test_two_runs_as_text_and_rows(cli: Cli, folders: list[Path], tmp_path: Path) -> None:
    rows_file = tmp_path / "rows.json"
    status, out, _ = cli("diagnose", *folders, "--attributes", "qLen,language", "--json", rows_file)
    assert status == 0
    assert "-100.0*" in out
    rows = json.loads(rows_file.read_text(encoding="utf-8"))
    assert {row["kind"] for row in rows} == {"pairwise"}
    [row] = [row for row in rows if row["language"] == "en" and row["bucket"] == "XS"]
    columns = (
        "kind task language protocol method view systems attribute level bucket low high low_closed n metric "
        "values difference ci p q significant wins losses ties examples"
    )
    assert list(row) == columns.split()
    assert row["systems"] == ["a[b]", "b"]
    assert row["difference"] == row["values"][0] - row["values"][1] < 0
    _, printed, _ = cli("diagnose", *folders, "--attributes", "qLen,language", "--format", "json")
    assert json.loads(printed) == rows


def test_data_alone_is_written_to_a_file(cli: Cli, folders: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "bias.txt"
    assert cli("diagnose", folders[0], "--data-only", "--output", path) == (0, "", "")
    text = path.read_text(encoding="utf-8")
    assert "qLen" in text
    assert "what 120" in text


@pytest.mark.parametrize(("count", "buckets"), [(1, "XS 0.0* / XL 100.0*"), (2, "XS -100.0* / XL +0.0")])
def test_tables_and_a_figure_of_buckets_are_files(
    cli: Cli, folders: list[Path], tmp_path: Path, count: int, buckets: str
) -> None:
    """The grid of XTREME-R's Table 6 and the edges of its Table 25; the format is that of the suffix."""
    asked = (*folders[:count], "--attributes", "qLen,qType")
    written = {}
    for name in ("t.md", "t.tex", "t.csv", "t.json", "t.svg"):
        assert cli("diagnose", *asked, "--output", tmp_path / name)[0] == 0
        written[name] = (tmp_path / name).read_text(encoding="utf-8")
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in written["t.md"].splitlines()]
    assert ["en", buckets.replace("*", r"\*")] in rows
    assert ["hi", "qLen", r"[1, 30\]", r"(30, 60\]", r"(60, 90\]", r"(90, 120\]"] in [
        [text.replace(r"\[", "[") for text in row] for row in rows
    ]
    assert written["t.tex"].count(r"\begin{tabular}") == 2
    assert len(written["t.csv"].splitlines()) == 1 + len(json.loads(written["t.json"]))
    assert written["t.svg"].count("qLen") >= 1
    assert cli("diagnose", *asked, "--format", "pdf")[0] == 2


def test_a_diagnosis_of_data_has_tables_and_no_figure(cli: Cli, folders: list[Path], tmp_path: Path) -> None:
    asked = (folders[0], "--data-only", "--attributes", "qLen")
    assert cli("diagnose", *asked, "--output", tmp_path / "t.tex")[0] == 0
    assert "60.5" in (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert cli("diagnose", *asked, "--output", tmp_path / "t.svg")[0] == 2
    pair = (folders[0], "--language", "hi", "--against", "en")
    assert cli("diagnose", *pair, "--format", "latex")[0] == 2


def test_training_text_gives_unknown_words(cli: Cli, folders: list[Path], tmp_path: Path) -> None:
    training = tmp_path / "train.txt"
    training.write_text("What is here\n", encoding="utf-8")
    rows_file = tmp_path / "rows.json"
    given = ("--attributes", "oov", "--training-text", training, "--json", rows_file)
    assert cli("diagnose", folders[0], "--data-only", *given)[0] == 0
    rows = json.loads(rows_file.read_text(encoding="utf-8"))
    # Of n + 4 words, 'the' and 'answer' are unknown.
    assert rows[0]["mean"] == pytest.approx(sum(2 / (n + 4) for n in range(1, 121)) / 120)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("--edges papr", "'papr'"),
        ("--format html", "'html'"),
        ("--attributes aLne", "'aLen'"),
        ("--tasks xqad", "'xquad'"),
        ("--training-text nowhere.txt", "'nowhere.txt'"),
        ("--output no/such/file", "'no/such/file'"),
        ("b --data-only", "2 were given"),
    ],
)
def test_wrong_usage_is_one_sentence(cli: Cli, folders: list[Path], arguments: str, named: str) -> None:
    given = [str(folders[1]) if word == "b" else word for word in arguments.split()]
    status, _, err = cli("diagnose", folders[0], *given)
    assert status in (1, 2)
    assert named in err
    assert err.count("\n") == 1


def test_tasks_without_common_systems_are_reported(cli: Cli, make_run: MakeRun) -> None:
    tagged = {("wikiann", "en"): [sentence("1", "a b", "O O", "B-PER O")]}
    asked = {("xquad", "en"): [question("1", 1, 1.0)]}
    status, _, err = cli("diagnose", make_run("a", tagged).path, make_run("b", asked).path)
    assert status == 2
    assert "did not finish it" in err
