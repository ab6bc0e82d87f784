"""Corrections of published items: documents, and how they are applied."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errata_seeds import main
from harness.api import evaluate
from harness.errors import DataError, SpecError, UsageError
from harness.registry.registry import Registry
from harness.storage.run_folder import Run
from harness_errata.correction import correct_runs, score_rows
from harness_errata.document import read_errata
from harness_errata.fitting import fit_run
from tests.builders import released_data
from tests.errata.conftest import WriteErrata

Cli = Callable[..., tuple[int, str, str]]
EntryOf = Callable[..., dict[str, Any]]


def right(run: Run, language: str) -> dict[str, bool | None]:
    (cell,) = (cell for cell in run.cells if cell.language == language)
    return {record.id: record.correct for record in run.records(cell)}


def test_both_scores_are_of_the_same_answers(
    majority: Run, entry_of: EntryOf, write_folder: WriteErrata, registry: Registry, tmp_path: Path
) -> None:
    before = {file: file.read_bytes() for file in majority.path.rglob("*") if file.is_file()}
    taken, relabelled = entry_of(0), entry_of(1, field="label")
    errata = read_errata(write_folder(taken, relabelled))
    runs = correct_runs([majority.path], errata, registry, tmp_path / "corrected")
    assert {file: file.read_bytes() for file in majority.path.rglob("*") if file.is_file()} == before
    expected = right(majority, "de")
    published = sum(map(bool, expected.values())) / len(expected)
    del expected[taken["id"]]
    expected[relabelled["id"]] = not expected[relabelled["id"]]
    assert right(Run(tmp_path / "corrected"), "de") == expected
    rows = {row["language"]: row for row in score_rows(runs, errata, registry)}
    assert set(rows) == {"de", "mean"}
    german = rows["de"]
    assert german["published"]["value"] == pytest.approx(published)
    assert german["corrected"]["value"] == pytest.approx(sum(map(bool, expected.values())) / len(expected))
    assert (german["items"], german["removed"], german["changed"]) == (
        [len(expected) + 1, len(expected)],
        1,
        1,
    )
    assert rows["mean"]["change"] == pytest.approx(german["change"] / 2)
    cells = {cell.language: cell for cell in Run(tmp_path / "corrected").cells}
    assert cells["de"].view["gold"] == cells["es"].view["gold"] == f"errata-{errata.digest[:8]}"
    assert cells["de"].n == len(expected) and cells["de"].size == len(expected)
    assert german["errata"] == errata.digest


def test_ranks_change_where_corrected_labels_decide(
    majority: Run, write_folder: WriteErrata, registry: Registry, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"languages": ("de", "es"), "data": "sample", "recipe": "quick"}
    ngrams = evaluate(["pawsx"], "baseline:char-ngram", output=tmp_path / "ngrams", **settings)
    systems = {run.path: sum(map(bool, right(run, "de").values())) for run in (majority, ngrams)}
    assert len(set(systems.values())) == 2
    worse = Run(min(systems, key=lambda path: systems[path]))
    (cell,) = (cell for cell in worse.cells if cell.language == "de")
    entries = [
        {
            "id": record.id,
            "language": "de",
            "field": "label",
            "digest": record.inputs_digest,
            "was": record.reference,
            "is": record.answer,
        }
        for record in worse.records(cell)
        if not record.correct
    ]
    errata = read_errata(write_folder(*entries))
    rows = score_rows(correct_runs(list(systems), errata, registry, None), errata, registry)
    ranks = {row["system"]: row["rank"] for row in rows if row["language"] == "de"}
    assert sorted(ranks.values()) == [[1.0, 2.0], [2.0, 1.0]]
    (won,) = (row for row in rows if row["language"] == "de" and row["rank"] == [2.0, 1.0])
    assert won["corrected"]["value"] == 1.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"digest": "0" * 16},
        {"field": "label", "was": "1", "is": "0"},
        {"field": "label", "was": "0", "is": "1"},
    ],
)
def test_errata_of_other_items_are_an_error(
    majority: Run, entry_of: EntryOf, write_folder: WriteErrata, wrong: dict[str, Any]
) -> None:
    number = 0
    if "was" in wrong:
        golds = [entry_of(number, field="label")["was"] for number in range(4)]
        number = next(index for index, gold in enumerate(golds) if gold != wrong["was"])
    with pytest.raises(DataError):
        fit_run(read_errata(write_folder(entry_of(number, **wrong))), majority)


def test_errata_of_no_task_or_no_item_of_the_run_are_wrong_usage(
    majority: Run, entry_of: EntryOf, write_folder: WriteErrata, registry: Registry
) -> None:
    with pytest.raises(UsageError):
        fit_run(read_errata(write_folder(entry_of(0), errata="xnli")), majority)
    absent = read_errata(write_folder(entry_of(0, id="nowhere")))
    with pytest.raises(UsageError):
        correct_runs([majority.path], absent, registry, None)


def test_a_correction_of_a_text_is_counted_and_not_applied(
    majority: Run, entry_of: EntryOf, write_folder: WriteErrata
) -> None:
    text = entry_of(0, field="sentence1", **{"is": "Ein anderer Satz."})
    (fitted,), _ = fit_run(read_errata(write_folder(text, entry_of(1))), majority)
    assert [entry.id for entry in fitted.texts] == [text["id"]]
    assert [entry.id for entry in fitted.applied] == [entry_of(1)["id"]]


def test_the_file_whose_digests_fit_is_taken(
    majority: Run, entry_of: EntryOf, write_folder: WriteErrata
) -> None:
    write_folder(entry_of(0, digest="f" * 16), name="older", revision="older")
    (fitted,), left = fit_run(read_errata(write_folder(entry_of(0))), majority)
    assert fitted.file.document.revision == "the sample"
    assert not left


def test_the_flag_of_score_and_the_command_say_the_same(
    majority: Run, entry_of: EntryOf, write_folder: WriteErrata, cli: Cli
) -> None:
    folder = write_folder(entry_of(0))
    status, _, err = cli("score", majority.path, "--errata", folder, "--output", "new", "--json", "a.json")
    assert status == 0, err
    assert cli("errata", "score", majority.path, "--errata", folder, "--json", "b.json")[0] == 0
    rows = [json.loads(Path(name).read_text(encoding="utf-8")) for name in ("a.json", "b.json")]
    assert rows[0] == rows[1] and rows[0]
    assert {cell.view["gold"] for cell in Run("new").cells} == {f"errata-{rows[0][0]['errata'][:8]}"}
    assert cli("score", majority.path, "--errata", folder, "--metrics", "macro_f1")[0] == 2
    assert cli("score", majority.path, "--errata", folder, "--output", "new")[0] == 2


def test_eval_scores_twice_and_reads_the_errata_first(
    entry_of: EntryOf, write_folder: WriteErrata, cli: Cli
) -> None:
    eval_ = (
        "eval --tasks pawsx:de --model baseline:majority --data sample --recipe quick --output run".split()
    )
    status, _, _ = cli(*eval_, "--errata", "nowhere")
    assert status == 2 and not Path("run").exists()
    status, out, err = cli(*eval_, "--errata", write_folder(entry_of(0)))
    assert status == 0, err
    assert "corrected" in out
    assert all("gold" not in cell.view for cell in Run("run").cells)


def test_check_verifies_ids_and_digests_on_a_run_and_on_data(
    majority: Run, entry_of: EntryOf, write_folder: WriteErrata, cli: Cli
) -> None:
    folder = write_folder(entry_of(0), entry_of(1, field="label"))
    for source in (("--run", majority.path), ("--data", "sample")):
        assert cli("errata", "check", folder, *source, "--json", "rows.json")[0] == 0
        (row,) = json.loads(Path("rows.json").read_text(encoding="utf-8"))
        assert row["verified"] == 2
    write_folder(entry_of(0), entry_of(1, field="label", id="nowhere"))
    status, _, err = cli("errata", "check", folder, "--data", "sample")
    assert status == 2 and "line 9" in err
    write_folder(entry_of(0), entry_of(1, digest="f" * 16))
    status, _, err = cli("errata", "check", folder, "--data", "sample")
    assert status == 2 and "line 9" in err


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
