"""Cases as JSON lines: written as JSON, read back, all faults with their lines."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import DataError, MissingDataError
from harness_checklist.generation.case import Case, CaseExample
from harness_checklist.generation.case_file import case_lines, read_cases, write_cases
from harness_checklist.suites.profile import Profile

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@st.composite
def any_cases(draw: st.DrawFn) -> list[Case]:
    return [
        Case(
            id=f"t-{number}",
            test=draw(texts),
            language="de",
            capability=draw(texts),
            fills=draw(st.dictionaries(texts, texts, max_size=3)),
            examples=tuple(
                CaseExample(
                    id=f"t-{number}/{i}", context=draw(texts), question=draw(texts), answer=draw(texts)
                )
                for i in range(1, draw(st.integers(1, 4)))
            ),
        )
        for number in range(draw(st.integers(0, 4)))
    ]


@given(cases=any_cases(), profile=st.none() | st.just(Profile(articles=("l'",), strip="»")))
def test_cases_that_are_written_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, cases: list[Case], profile: Profile | None
) -> None:
    path = tmp_path_factory.mktemp("cases") / "de.jsonl"
    write_cases(cases, path, profile)
    assert read_cases(path) == cases


@given(any_cases())
def test_lines_are_those_of_the_json_module(cases: list[Case]) -> None:
    profile = Profile(articles=("ein",))
    lines = case_lines(cases, profile).split("\n")[:-1]
    keys = ("id", "test", "language", "capability", "type", "fills", "examples")
    expected = [
        json.dumps(
            {**{key: asdict(case)[key] for key in keys}, "normalise": asdict(profile)}, ensure_ascii=False
        )
        for case in cases
    ]
    assert lines == expected


GOOD = {
    "id": "t-1",
    "test": "t",
    "language": "de",
    "examples": [{"id": "t-1/1", "context": "c", "question": "q", "answer": "a"}],
}


def faults(tmp_path: Path, *lines: object) -> list[str]:
    path = tmp_path / "cases.jsonl"
    reported = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(reported), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_cases(path)
    head, *found = caught.value.message.split("\n  ")
    assert head == f"{path} has {len(found)} fault{'s' if len(found) > 1 else ''}:"
    return found


def test_all_faults_of_a_file_are_reported_with_their_lines(tmp_path: Path) -> None:
    bad_example = {"id": 1, "context": "c", "question": "q", "answr": "a"}
    assert faults(
        tmp_path,
        GOOD,
        "",
        '{"id": "t-2",',
        [],
        {**GOOD, "id": "t-3", "examples": [bad_example, "x"], "more": 1},
        {"id": "t-4", "test": 5, "fills": {"a": 1}, "normalise": {}},
        GOOD,
    ) == [
        "line 3: column 14: no JSON: Expecting property name enclosed in double quotes",
        "line 4: expected a case: an object with id, test, language and examples",
        "line 5: unknown key 'more'",
        "line 5: example 1: the key 'answer' is missing",
        "line 5: example 1: unknown key 'answr'",
        "line 5: example 1: id: expected a text",
        "line 5: example 2: expected an object with id, context, question, answer",
        "line 6: the key 'language' is missing",
        "line 6: the key 'examples' is missing",
        "line 6: test: expected a text",
        "line 6: fills: expected an object of texts",
        "line 6: normalise: expected an object with articles, casefold, match, strip",
        "line 7: the id 't-1' is given twice (first on line 1)",
        "line 7: the id 't-1/1' is given twice (first on line 1)",
    ]


def test_many_faults_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("x\n" * 30, encoding="utf-8")
    with pytest.raises(DataError, match=r"has 30 faults:(.|\n)*line 20(.|\n)*\.\.\. and 10 more$"):
        read_cases(path)


def test_files_of_other_formats_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="There is no file"):
        read_cases(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="is a folder"):
        read_cases(tmp_path)
    (tmp_path / "latin1.jsonl").write_bytes(b"\xe9")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_cases(tmp_path / "latin1.jsonl")
