"""Languages, tasks and data are named in one way everywhere, and all unknown names of a list are reported at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.cli.main import _repeated, run_command
from harness.errors import UnknownNameError, UsageError
from harness.languages.table import known_languages
from harness.planning.plan import Plan
from harness.planning.planner import resolve_model
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import open_session, prepare
from harness.specs.selection import language_codes, plain_codes, select, split_names

LISTED = list(known_languages().listed)


def _plan(tasks: str, languages: tuple[str, ...] | str | None = None) -> Plan:
    given = {"tasks": tasks, "languages": languages, "model": "baseline:majority", "data": "sample"}
    return prepare(RunConfig.read(given)).plan


@pytest.mark.parametrize("name", ["sw", "swa", "swh", "Swahili", "swahili", "SW", "swh_Latn", "sw-KE"])
def test_a_language_has_one_code_under_all_its_names(name: str) -> None:
    catalog = open_session().catalog
    assert language_codes([name]) == ["sw"]
    assert plain_codes(catalog, [name])[0] == {name: "sw"}
    assert [cell.language.code for cell in _plan(f"xnli:{name}").cells] == ["sw"]
    assert [cell.language.code for cell in _plan("xnli", (name,)).cells] == ["sw"]


@given(st.sampled_from(LISTED), st.sampled_from(["code", "name", "iso639_3"]))
def test_every_listed_language_is_named_by_code_name_and_iso_code(language: object, field: str) -> None:
    code, name = getattr(language, "code"), getattr(language, field)  # noqa: B009
    if field == "code" or "-" not in code:
        expected = {own.code for own in LISTED if name in (own.code, own.name, own.iso639_3)}
        assert language_codes([name])[0] in expected


@given(
    st.lists(st.sampled_from(["sw", "de", "zh-Hant", "Egyptian Arabic", "Swahili"]), min_size=1, unique=True)
)
def test_commas_spaces_and_repetition_separate_alike(names: list[str]) -> None:
    assert split_names(names) == names
    assert split_names([",".join(names)]) == names
    assert split_names([" ".join(names)]) == names
    assert split_names([" , ".join(names) + ","]) == names


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("-l sw hi --model m", "-l sw -l hi --model m"),
        ("--tasks=xnli xquad -l sw,hi de", "--tasks=xnli --tasks xquad -l sw,hi -l de"),
        ("--data a b --limit 3", "--data a --data b --limit 3"),
        ("--limit 3 stray", "--limit 3 stray"),
    ],
)
def test_further_values_of_a_list_have_its_option(typed: str, read: str) -> None:
    assert _repeated(typed.split()) == read.split()


def test_all_unknown_names_are_reported_at_once() -> None:
    catalog = open_session().catalog
    with pytest.raises(UsageError) as caught:
        _plan("xnli", ("qqx", "Klingonese", "sw", "qqy"))
    assert all(repr(name) in caught.value.message for name in ("qqx", "Klingonese", "qqy"))
    with pytest.raises(UsageError) as caught:
        select(catalog, ["xnlii", "xnli", "xquda"])
    assert "'xnlii'" in caught.value.message
    assert "'xquda' (did you mean 'xquad'?)" in caught.value.message
    with pytest.raises(UnknownNameError, match="xnlii"):
        select(catalog, ["xnlii"])


def test_a_language_in_the_place_of_a_task_has_a_hint() -> None:
    with pytest.raises(UnknownNameError) as caught:
        select(open_session().catalog, ["xnli:sw", "hi"])
    assert "@hi" in str(caught.value.hint)


def test_languages_of_a_task_and_of_the_run_intersect() -> None:
    plan = _plan("xnli:sw+de,xquad:hi", "de,hi")
    assert {(cell.spec.task, cell.language.code) for cell in plan.cells} == {("xnli", "de"), ("xquad", "hi")}
    assert [note for note in plan.notes if note.startswith("xnli: sw ")]
    assert not plan.skipped
    assert [note for note in _plan("xnli:sw", "German").notes if note.startswith("xnli: sw ")]


def test_data_folders_are_divided_and_near_names_are_given(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c,d")]
    for folder in folders:
        folder.mkdir()
    assert data_options([f"{folders[0]},{folders[1]}"]).folders == tuple(folders[:2])
    assert data_options([folders[2]]).folders == (folders[2],)
    for typed in ("smaple", "Sample", "sampel"):
        with pytest.raises(UsageError, match="exist") as caught:
            data_options([typed])
        assert "'sample'" in str(caught.value.hint)
    with pytest.raises(UsageError, match="excludes"):
        data_options([f"sample,{folders[0]}"])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("list", "tasks list"),
        ("run", "eval"),
        ("evaluate", "eval"),
        ("download", "fetch"),
        ("version", "--version"),
    ],
)
def test_a_command_of_other_tools_has_a_hint(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([typed]) == 2
    assert f"'harness {meant}'" in capsys.readouterr().err


@pytest.mark.parametrize("adapter", ["huggingface", "HuggingFace", "transformers", "hub"])
def test_a_model_of_the_hub_has_one_adapter(adapter: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        resolve_model(open_session().registry.adapters, f"{adapter}:org/foo", {})
    assert caught.value.near == ["hf:org/foo"]
