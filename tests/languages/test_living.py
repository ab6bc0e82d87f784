"""All living languages of ISO 639-3 are known, and a language that is not can be described."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, strategies as st

import harness
from harness.cli.main import run_command
from harness.errors import UnknownNameError, UsageError
from harness.languages.table import _LivingLanguages, known_languages

TABLE = known_languages()
LIVING = _LivingLanguages()


@pytest.mark.parametrize(
    ("code", "name", "script", "family"),
    [
        ("ovd", "Elfdalian", "Latn", "Indo-European"),
        ("gag", "Gagauz", "Latn", "Turkic"),
        ("csb", "Kashubian", "Latn", "Indo-European"),
        ("rue", "Rusyn", "Cyrl", "Indo-European"),
        ("frp", "Arpitan", "Latn", "Indo-European"),
        ("swc", "Congo Swahili", "Latn", "Niger-Congo"),
    ],
)
def test_languages_that_have_no_data_are_known(code: str, name: str, script: str, family: str) -> None:
    language = TABLE.get(code)
    assert (language.name, language.script, language.family) == (name, script, family)
    assert {TABLE.code_of(text) for text in (code, code.upper(), name, name.lower(), f"{code}_{script}")} == {
        code
    }
    assert code not in TABLE.listed
    assert code not in [listed.code for listed in TABLE]


@given(st.sampled_from(sorted(LIVING)))
def test_a_living_language_is_no_second_name_of_a_listed_one(code: str) -> None:
    language = LIVING[code]
    assert language.code == code
    assert language.name
    assert (len(language.script), language.script.title()) in {(0, ""), (4, language.script)}
    assert TABLE.listed.meant_by(code) is None
    assert language.iso639_3 not in TABLE.listed


def test_macrolanguages_are_recorded() -> None:
    assert TABLE.get("swc").macrolanguage == "sw"
    assert len(LIVING) > 6_000


@pytest.mark.parametrize("code", ["qzz", "q", "Quzz", "zz-Latn"])
def test_an_unknown_language_can_be_described(code: str) -> None:
    with pytest.raises(UnknownNameError, match="--language-name NAME --script Latn"):
        TABLE.get(code)


def _new(tmp_path: Path, *options: str) -> int:
    table = tmp_path / "reviews.csv"
    table.write_text("text,label\na b,x\nc d,y\ne f,x\ng h,y\n", encoding="utf-8")
    return run_command(
        ["new", "task", "mood", "--from", str(table), "--out", str(tmp_path / "mood.yaml"), *options]
    )


@pytest.mark.parametrize(
    ("options", "entry"),
    [
        (["--language", "rue"], {"rue": {}}),
        (["--language", "Kashubian"], {"csb": {"codes": {"called": "Kashubian"}}}),
        (
            ["--language", "gag", "--script", "Cyrl"],
            {"gag": {"name": "Gagauz", "script": "Cyrl", "family": "Turkic"}},
        ),
        (
            ["--language", "qzz", "--language-name", "Quzz", "--script", "Latn", "--family", "Isolate"],
            {"qzz": {"name": "Quzz", "script": "Latn", "family": "Isolate"}},
        ),
    ],
)
def test_a_task_in_any_language(tmp_path: Path, options: list[str], entry: dict[str, object]) -> None:
    assert _new(tmp_path, *options, "--test-share", "0.5") == 0
    spec = next(yaml.safe_load_all((tmp_path / "mood.yaml").read_text(encoding="utf-8")))
    assert spec["languages"] == entry
    run = harness.evaluate(
        "mood", "baseline:random", data=str(tmp_path), tasks_from=str(tmp_path), output=tmp_path / "run"
    )
    assert [cell.status for cell in run.cells] == ["ok"]
    assert (
        run_command(["report", str(tmp_path / "run"), "-f", "html", "--out", str(tmp_path / "page.html")])
        == 0
    )


@pytest.mark.parametrize(
    "options",
    [
        ["--language", "qzz"],
        ["--language", "qzz", "--language-name", "Quzz"],
        ["--language", "qzz", "--language-name", "Quzz", "--script", "latin", "--family", "Isolate"],
        ["--language", "sw", "--language-name", "Swahili", "--script", "Latn", "--family", "Niger-Congo"],
    ],
)
def test_a_description_that_is_not_whole_or_not_needed(
    tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _new(tmp_path, *options) == 2
    assert "--language-name" in capsys.readouterr().err or "latin" in options
    assert not (tmp_path / "mood.yaml").exists()


def test_all_unknown_names_of_a_column_are_named_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text("text,label,lang\na,x,Klingon\nb,y,Swahli\nc,x,de\n", encoding="utf-8")
    given_ = ["new", "task", "mood", "--from", str(table), "--language-column", "lang"]
    assert run_command([*given_, "--out", str(tmp_path / "mood.yaml")]) == 2
    message = capsys.readouterr().err
    assert "'Klingon'" in message
    assert "'Swahli': did you mean 'Swahili'?" in message


def test_the_fragment_of_a_new_language_needs_no_description(tmp_path: Path) -> None:
    assert run_command(["new", "language", "rue", "--task", "xnli", "--out", str(tmp_path / "p")]) == 0
    [fragment] = [
        path for path in (tmp_path / "p").rglob("*.yaml") if "rue" in path.read_text(encoding="utf-8")
    ]
    assert "family" not in fragment.read_text(encoding="utf-8")
    with pytest.raises(UsageError):
        harness.evaluate("@rue", "baseline:random", data="sample")
