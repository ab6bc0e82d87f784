"""Faults of translators, their files and items are errors, and never become a number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., tuple[int, str, str]]
Log = Callable[[], Counter[str]]
SAMPLE = ("--tasks", "xnli:sw", "--data", "sample", "--limit", "3", "--variants", "tt")


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def line(text: str, translation: str, source: str = "sw", target: str = "en") -> dict[str, str]:
    return {"source": source, "target": target, "text": text, "translation": translation}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([line("a", "b"), line("a", "c")], (":2: 'a'", "sw->en", "'b'")),
        ([line("a", "b", target="xx")], (":1: ", "'target'", "'xx'")),
        ([{"source": "sw", "target": "en", "text": "a"}], (":1: ", "'translation'")),
        ([line("a", "b")], ("sw->en", "6 of 6")),
    ],
    ids=["doubled", "unknown code", "no translation", "missing texts"],
)
def test_a_file_of_translations(
    cli: Cli, tmp_path: Path, rows: list[dict[str, Any]], expected: tuple[str, ...]
) -> None:
    path = write_rows(tmp_path / "t.jsonl", *rows)
    status, _, err = cli("translate", *SAMPLE, "--translator", f"file:{path}")
    assert status == 1
    assert all(part in err for part in expected)


@pytest.mark.parametrize(
    ("routes", "expected"),
    [("{'en->sw': reverse, 'en->xx': revers}", ("'xx'", "'revers'")), ("{'en->sw': reverse}", ("sw->en",))],
)
def test_a_routing_table_and_unknown_translators(
    cli: Cli, tmp_path: Path, routes: str, expected: tuple[str, ...]
) -> None:
    path = tmp_path / "routes.yaml"
    path.write_text(f"routes: {routes}\n", encoding="utf-8")
    status, _, err = cli("translate", *SAMPLE, "--translator", f"route:{path}")
    assert status == 2
    assert all(part in err for part in expected)
    status, _, err = cli("translate", *SAMPLE, "--translator", "revers")
    assert status == 2
    assert "'revers'" in err and "'reverse'" in err


def test_a_plan_skips_a_pair_that_a_light_translator_does_not_have(cli: Cli, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", line("a", "b"))
    given = (*SAMPLE[:-1], "zs,tt,te", "--translator", f"g=file:{path}", "--model", "baseline:char-ngram")
    status, out, _ = cli("plan", *given, "--details")
    assert status == 0
    assert "2 cells" in out
    (skipped,) = (text for text in out.splitlines() if "xnli sw" in text and "file:" in text)
    assert all(part in skipped for part in ("'g'", str(path), "'en'", "'sw'"))


def test_a_pair_that_another_one_does_not_have_is_an_error_before_it_translates(
    cli: Cli, log: Log, tmp_path: Path
) -> None:
    given = ("--tasks", "xnli:sw+zh", "--data", "sample", "--variants", "tt", "--translator", "m=mortal")
    for command in (("translate",), ("eval", "--model", "baseline:char-ngram", "--output", tmp_path / "run")):
        status, _, err = cli(*command, *given)
        assert status == 2
        assert all(part in err for part in ("'m'", "mortal", "zh", "en"))
    with pytest.raises(FileNotFoundError):
        log()


def test_truncated_translations_are_counted_and_strict_stops(cli: Cli, log: Log, tmp_path: Path) -> None:
    given = ("translate", *SAMPLE, "--translator", "mortal:short", "--json", tmp_path / "rows.json")
    assert cli(*given)[0] == 0
    assert cli(*given, "--dry-run", "--strict")[0] == 0
    status, out, _ = cli(*given, "--strict")
    assert status == 1
    assert "6 truncated" in out
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert [row["table"] for row in rows] == ["splits", "guards"]
    assert rows[1]["faults"]["truncated"] == rows[1]["segments"] == 6


def table(folder: Path, rows: str = "one\ttwo\none\tthree\n", **changes: Any) -> Path:
    (folder / "a.tsv").write_text("moja\tmbili\nmoja\ttatu\n", encoding="utf-8")
    (folder / "b.tsv").write_text(rows, encoding="utf-8")
    pair = {"source": "sw", "target": "en", "text": "a.tsv", "translation": "b.tsv", "columns": [0, 1]}
    content = json.dumps({"id": "somebody", "pairs": [{**pair, **changes}]})
    (folder / "translations.yaml").write_text(content, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rows": "one\ttwo\n"}, "1 rows"),
        ({"rows": "one\ttwo\none\tthree\nfour\tfive\n"}, "3 rows"),
        ({"source": "xx"}, "'xx'"),
        ({"translation": "c.tsv"}, "'c.tsv'"),
        ({"translation": "../b.tsv"}, "'../b.tsv'"),
        ({"columns": []}, "'columns'"),
        ({"columns": [0, 5]}, "a.tsv:1: expected a column 5"),
    ],
)
def test_files_that_are_aligned_by_row(
    cli: Cli, tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    status, _, err = cli("translate", *SAMPLE, "--translator", f"file:{table(tmp_path, **changes)}")
    assert status in {1, 2}
    assert expected in " ".join(err.split())


def xcopa(folder: Path, code: str, *idx: int) -> None:
    path = folder / "xcopa" / ("copa-en/test-en.jsonl" if code == "en" else f"data/{code}/test.{code}.jsonl")
    texts = {"choice1": "c", "choice2": "d", "question": "cause", "label": 0, "changed": False}
    write_rows(path, *({**texts, "premise": f"{code} {number}", "idx": number} for number in idx))


def translate(cli: Cli, data: Path, task: str, variant: str) -> tuple[int, str]:
    selection = ("--tasks", task, "--data", data, "--variants", variant, "--translator", "identity")
    status, _, err = cli("translate", *selection)
    return status, err


@pytest.mark.parametrize(
    ("english", "italian", "expected"),
    [
        ((0, 1, 1), (0, 1), "test-en.jsonl:3: the id '1'"),
        ((0, 1), (0, 1, 1), "test.it.jsonl:3: the id '1'"),
        ((0, 1), (0, 1, 2), "1 of the 3 items"),
    ],
)
def test_items_that_are_not_those_of_the_language(
    cli: Cli, tmp_path: Path, english: tuple[int, ...], italian: tuple[int, ...], expected: str
) -> None:
    xcopa(tmp_path, "en", *english)
    xcopa(tmp_path, "it", *italian)
    status, err = translate(cli, tmp_path, "xcopa:it", "te")
    assert status == 1
    assert expected in err


def test_more_items_than_the_source_has(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "xnli").mkdir()
    for code, count in (("en", 2), ("sw", 3)):
        text = "a premise\ta hypothesis\tneutral\n" * count
        (tmp_path / "xnli" / f"test-{code}.tsv").write_text(text, encoding="utf-8")
    status, err = translate(cli, tmp_path, "xnli:sw", "bt")
    assert status == 1
    assert "2 items" in err and "3" in err
