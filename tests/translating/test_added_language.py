"""Translated variants of a language that a fragment adds, also of one that is not in the language table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.api import evaluate
from harness.languages.table import known_languages
from harness.running.session import Session, open_session
from harness.storage.run_folder import Run

InstallPlugin = Callable[..., Path]
FRAGMENT = """\
extends: xnli
languages:
  qpf:
    name: Palatine German
    script: Latn
    family: Indo-European
    flores: pfl_Latn
    provenance: post-edited
    test: {sample: "xnli/{language}.jsonl"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, swahili: str) -> Path:
    """The fragment, with the Swahili sample in place of Palatine German."""
    folder = tmp_path_factory.mktemp("qpf")
    (folder / "sample/xnli").mkdir(parents=True)
    (folder / "sample/xnli/qpf.jsonl").write_text(swahili, encoding="utf-8")
    (folder / "qpf.yaml").write_text(FRAGMENT, encoding="utf-8")
    rows = [json.loads(line) for line in swahili.splitlines()]
    texts = dict.fromkeys(row[name] for row in rows for name in ("premise", "hypothesis"))
    known = [
        {"source": "qpf", "target": "en", "text": text, "translation": f"English {number}"}
        for number, text in enumerate(texts)
    ]
    (folder / "known.jsonl").write_text("".join(json.dumps(row) + "\n" for row in known), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def swahili() -> str:
    sample = open_session().catalog.entry("task", "xnli").folder.joinpath("sample/xnli/sw.jsonl")
    return sample.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        return evaluate(
            "xnli:en+qpf",
            "baseline:majority",
            data="sample",
            variants=("zs", "tt", "te", "bt"),
            translators=("i=identity", f"f=file:{folder / 'known.jsonl'}"),
            tasks_from=(folder / "qpf.yaml",),
            limit=5,
            output=folder / "run",
        )


def test_all_variants_of_an_unknown_code_are_made(run: Run) -> None:
    cells = {
        tuple(cell.view.values()): cell
        for cell in run.cells
        if cell.language == "qpf" and cell.status == "ok"
    }
    assert sorted(cells) == [(), ("f", "tt"), ("i", "bt"), ("i", "te"), ("i", "tt")]
    ids = {view: [record.id for record in run.records(cell)] for view, cell in cells.items()}
    assert len(set(map(tuple, ids.values()))) == 1
    assert len(ids[()]) == 5
    made = {view: cell.provenance for view, cell in cells.items()}
    assert made.pop(()) == "post-edited"
    assert set(made.values()) == {"machine-translated"}
    texts = [record.fields["inputs"]["premise"] for record in run.records(cells["f", "tt"])]
    assert all(text.startswith("English ") for text in texts)


def test_a_plan_skips_a_pair_that_a_file_does_not_have(run: Run) -> None:
    reasons = {
        (cell.view["variant"], cell.reason)
        for cell in run.cells
        if cell.status == "skipped" and cell.view.get("translator") == "f" and cell.language == "qpf"
    }
    assert {variant for variant, _ in reasons} == {"te", "bt"}
    assert all("does not translate 'en' into 'qpf'" in reason for _, reason in reasons)


def test_translators_know_the_codes_that_a_fragment_gives(folder: Path) -> None:
    session: Session = open_session([folder / "qpf.yaml"])
    context = session.registry
    language = context.languages.get("qpf")
    assert (language.flores, language.name, language.segmentation) == ("pfl_Latn", "Palatine German", "space")
    assert "qpf" not in known_languages()
    assert "qpf" not in open_session().registry.languages
    # The codes of the table are not changed by a fragment.
    assert context.languages.get("sw") is known_languages().get("sw")


def test_a_second_description_does_not_replace_the_first(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(
        FRAGMENT.replace("xnli\n", "pawsx\n").replace("Palatine German", "Palatinate"), encoding="utf-8"
    )
    session = open_session([folder / "qpf.yaml", other])
    assert session.registry.languages.get("qpf").name == "Palatine German"
    assert session.catalog.task("pawsx").languages.get("qpf").name == "Palatinate"
