from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errata_seeds import main
from harness.errors import SpecError, UsageError
from harness_errata.document import read_errata
from tests.builders import released_data
from tests.errata.conftest import WriteErrata

ENTRY = {"id": "1", "language": "de", "field": "item", "digest": "0123456789abcdef"}
LABEL = {**ENTRY, "field": "label", "was": "0", "is": "1"}
FIRST_LINE = 8


def problems(folder: Path) -> list[tuple[int | None, str]]:
    with pytest.raises(SpecError) as caught:
        read_errata(folder)
    return [(problem.line, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("second", "word"),
    [
        ({**LABEL, "id": "2", "language": "qzq"}, "qzq"),
        ({**LABEL, "is": "1"}, "repeats"),
        ({**LABEL, "is": "2"}, "contradicts"),
        (ENTRY, ""),
        ({**LABEL, "id": "2", "is": "0"}, "same"),
        ({**LABEL, "id": "2", "is": ["1"]}, "'is'"),
        ({**LABEL, "id": "2", "was": None}, "'was'"),
        ({**LABEL, "id": "2", "digest": "xyz"}, "xyz"),
        ({**LABEL, "id": "2", "votes": "many"}, "many"),
        ({**LABEL, "id": "2", "typo": "x"}, "typo"),
        ({**ENTRY, "id": "2", "is": "x"}, "'is'"),
    ],
)
def test_a_faulty_entry_is_named_by_its_line(
    write_folder: WriteErrata, second: dict[str, Any], word: str
) -> None:
    found = problems(write_folder(LABEL, second))
    # An item that is taken out makes its correction, which is before it, the fault.
    assert [line for line, _ in found] == [FIRST_LINE if second is ENTRY else FIRST_LINE + 1]
    assert word in found[0][1]


def test_what_no_entry_and_no_file_says_is_a_fault(write_folder: WriteErrata) -> None:
    assert [line for line, _ in problems(write_folder(LABEL, reason="", who=""))] == [FIRST_LINE - 2] * 2


def test_a_task_and_revision_have_one_file(write_folder: WriteErrata) -> None:
    write_folder(LABEL)
    found = problems(write_folder({**LABEL, "id": "2"}, name="again"))
    assert len(found) == 1 and "again.yaml" in found[0][1]


def test_a_folder_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_errata(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError):
        read_errata(tmp_path / "empty")


def test_the_digest_is_of_what_files_say(write_folder: WriteErrata) -> None:
    folder = write_folder(LABEL)
    before = read_errata(folder).digest
    file = folder / "pawsx.yaml"
    file.write_text(f"# a comment\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    assert read_errata(folder).digest == before
    write_folder({**LABEL, "is": "2"})
    assert read_errata(folder).digest != before


def test_the_shipped_errata_are_valid() -> None:
    shipped = read_errata(Path("shipped"))
    counts = {file.document.errata: len(file.document.entries) for file in shipped.files}
    assert counts == {
        "colorless_green_agreement": 1,
        "pawsx": 87,
        "sib200": 1,
        "turblimp": 10,
        "xnli": 16,
    }


@pytest.mark.thorough
def test_the_shipped_errata_are_facts_of_the_published_data(
    cli: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    published_data = released_data()
    main(["--data", str(published_data), "--output", str(tmp_path / "made")])
    assert read_errata(tmp_path / "made").digest == read_errata(Path("shipped")).digest
    status, _, err = cli("errata", "check", "shipped", "--data", published_data, "--json", "rows.json")
    assert status == 0, err
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert {row["task"]: (row["verified"], row["left out already"]) for row in rows} == {
        "colorless_green_agreement": (1, 0),
        "pawsx": (87, 0),
        "sib200": (1, 0),
        "turblimp": (0, 10),
        "xnli": (16, 0),
    }
