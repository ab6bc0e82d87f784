"""Cases as JSON lines: written as JSON, read back, all faults with their lines."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.errors import DataError, MissingDataError
from harness_checklist.generation.case import Case, CaseExample, case_lines, read_cases
from harness_checklist.suites.suite import Profile

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@st.composite
def any_cases(draw: st.DrawFn) -> list[Case]:
    return [
        Case(
            id=f"t-{number}",
            test=draw(texts),
            language="de",
            capability=draw(texts),
            normalise=draw(st.sampled_from([Profile(), Profile(articles=("l'",), strip="»")])),
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


@given(cases=any_cases())
def test_cases_that_are_written_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, cases: list[Case]
) -> None:
    path = tmp_path_factory.mktemp("cases") / "de.jsonl"
    path.write_text(case_lines(cases), encoding="utf-8")
    assert read_cases(path) == cases


@given(any_cases())
def test_lines_are_those_of_the_json_module(cases: list[Case]) -> None:
    lines = case_lines(cases).split("\n")[:-1]
    keys = ("id", "test", "language", "capability", "type", "fills", "examples")
    expected = [
        json.dumps(
            {**{key: asdict(case)[key] for key in keys}, "normalise": case.normalise.model_dump(mode="json")},
            ensure_ascii=False,
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
    reported = faults(
        tmp_path,
        GOOD,
        "",
        '{"id": "t-2",',
        [],
        {**GOOD, "id": "t-3", "examples": [bad_example, "x"], "more": 1},
        {"id": "t-4", "test": 5, "fills": {"a": 1}, "normalise": {"strips": ""}},
        GOOD,
    )
    expected = [
        "line 3: Invalid JSON",
        "line 4: ",
        "line 5: unknown key 'more'",
        "line 5: the key 'examples.0.answer' is missing",
        "line 5: unknown key 'examples.0.answr'",
        "line 5: examples.0.id: ",
        "line 5: examples.1: ",
        "line 6: the key 'language' is missing",
        "line 6: the key 'examples' is missing",
        "line 6: test: ",
        "line 6: fills.a: ",
        "line 6: unknown key 'normalise.strips'",
        "line 7: the id 't-1' is given twice (first on line 1)",
        "line 7: the id 't-1/1' is given twice (first on line 1)",
    ]
    assert len(reported) == len(expected)
    assert all(any(one.startswith(start) for one in reported) for start in expected), reported


def test_many_faults_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("x\n" * 130, encoding="utf-8")
    with pytest.raises(DataError, match=r"(.|\n)*line 100: (.|\n)*and 30 more faults$"):
        read_cases(path)


def test_files_of_other_formats_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="There is no file"):
        read_cases(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="cannot be read"):
        read_cases(tmp_path)
    (tmp_path / "latin1.jsonl").write_bytes(b"\xe9")
    with pytest.raises(DataError, match="is not UTF-8"):
        read_cases(tmp_path / "latin1.jsonl")
