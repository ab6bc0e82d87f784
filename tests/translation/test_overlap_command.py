"""``harness overlap`` on runs of a tiny classifier."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from harness.api import evaluate
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

pytestmark = pytest.mark.usefixtures("translation_plugin")
FIELDS = ("premise", "hypothesis")


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def texts(run: Run, language: str) -> dict[str, Any]:
    cell = next(cell for cell in run.cells if cell.language == language)
    return {record.id: record for record in run.records(cell)}


def diagonal(run: Run, language: str, path: Path) -> Path:
    """Write links of every word with the one at the same place."""
    lines = []
    english, other = texts(run, "en"), texts(run, language)
    for identifier, record in english.items():
        for name in FIELDS:
            source = record.fields["inputs"][name].split()
            target = other[identifier].fields["inputs"][name].split()
            links = " ".join(f"{n}-{n}" for n in range(min(len(source), len(target))))
            lines.append(f"{' '.join(source)} ||| {' '.join(target)} ||| {links}")
    path.write_text("\n".join(dict.fromkeys(lines)), encoding="utf-8")
    return path


def plain_word_scores(network: Any, tokenizer: Any, inputs: dict[str, str]) -> list[list[float]]:
    """Scores of the words between spaces, from whole attention tensors and the tokens of single words."""
    given = tokenizer(inputs["premise"], inputs["hypothesis"], return_tensors="pt")
    given.pop("token_type_ids", None)
    with torch.inference_mode():
        layers = network(**given, output_attentions=True).attentions
    row = torch.stack([layer[0, :, 0] for layer in layers]).amax(dim=(0, 1)).tolist()
    found, place = [], 1
    for name in FIELDS:
        own = []
        for word in inputs[name].split():
            size = len(tokenizer(word, add_special_tokens=False)["input_ids"])
            own.append(sum(row[place : place + size]))
            place += size
        found.append(own)
        place += 1
    return found


def plain_overlap(run: Run, folder: Path, language: str) -> list[float]:
    """The authors' rule over diagonal links, in a loop, for items that the model gets right in English."""
    load: Any = AutoModelForSequenceClassification
    make: Any = AutoTokenizer
    network = load.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = make.from_pretrained(folder)
    english, other = texts(run, "en"), texts(run, language)
    found = []
    for identifier, record in english.items():
        if record.prediction["label"] != record.reference:
            continue
        source = plain_word_scores(network, tokenizer, record.fields["inputs"])
        target = plain_word_scores(network, tokenizer, other[identifier].fields["inputs"])
        total = 0.0
        for one, two in zip(source, target, strict=True):
            important = [n for n, score in enumerate(one) if score >= np.mean(one)]
            hits = [n for n in important if n < len(two) and two[n] >= np.mean(two)]
            total += len(hits) / len(important)
        found.append(total)
    return found


def test_overlap_is_that_of_a_plain_loop(
    cli: Any, frozen_run: Run, classifier_folder: Path, tmp_path: Path
) -> None:
    links = diagonal(frozen_run, "sw", tmp_path / "sw.links")
    report = tmp_path / "overlap.json"
    status, out, err = cli(
        "overlap", frozen_run.path, "--aligner", f"file:{links}", "--languages", "sw", "--json", report
    )
    assert status == 0, err
    (row,) = rows(report)
    expected = plain_overlap(frozen_run, classifier_folder, "sw")
    assert expected
    assert any(expected)
    assert row["n"] == row["correct"] == len(expected)
    assert row["overlap_sum"]["value"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert row["overlap_mean"]["value"] == pytest.approx(np.mean(expected) / 2, abs=1e-6)
    assert row["overlap_sum"]["ci_method"] == "cluster bootstrap"
    assert row["overlap_sum"]["ci"][0] < np.mean(expected) < row["overlap_sum"]["ci"][1]
    assert (row["language"], row["variant"], row["fit"]) == ("sw", "zs", "none")
    assert row["aligner"]["aligner"] == "file"
    assert "human" in out
    assert f"{row['overlap_sum']['value']:.3f}" in out


def test_our_own_aligner_and_unspaced_text(
    cli: Any, frozen_run: Run, classifier_folder: Path, tmp_path: Path
) -> None:
    report = tmp_path / "overlap.json"
    aligner = f"own:hf:{classifier_folder}"
    given = ("overlap", frozen_run.path, "--aligner", aligner, "--min-probability", 0.01)
    status, _, err = cli(*given, "--link", "any", "--json", report)
    assert status == 0, err
    found = {row["language"]: row for row in rows(report)}
    assert set(found) == {"sw", "zh"}
    assert found["zh"]["linked"] > 0
    assert found["sw"]["settings"]["rule"]["link"] == "any"
    status, _, err = cli(*given, "--words", "space", "--languages", "zh")
    assert status == 1
    assert "--words auto" in err


def test_texts_that_are_too_long_are_counted(
    cli: Any, frozen_run: Run, classifier_folder: Path, tmp_path: Path
) -> None:
    report = tmp_path / "overlap.json"
    aligner = f"own:hf:{classifier_folder}"
    status, out, err = cli(
        *("overlap", frozen_run.path, "--aligner", aligner, "--languages", "sw", "--json", report),
        *("-o", "max_length=44"),
    )
    assert status == 0, err
    (row,) = rows(report)
    assert 0 < row["truncated"] <= row["correct"]
    assert row["n"] + row["truncated"] + row["undefined"] + row["missing"] == row["correct"]
    assert "too long" in out


def test_machine_translations_are_compared_with_the_human_one(
    cli: Any, frozen_run: Run, classifier_folder: Path, tmp_path: Path
) -> None:
    """Cells of a variant have rows of their own; here the machine skipped one item and copied the rest."""
    folder = tmp_path / "variants"
    shutil.copytree(frozen_run.path, folder)
    results = json.loads((folder / "results.json").read_text())
    human = next(cell for cell in results["cells"] if cell["language"] == "sw")
    machine = {**human, "view": {"variant": "te", "translator": "pivot"}, "digest": "0123456789ab"}
    results["cells"].append(machine)
    (folder / "results.json").write_text(json.dumps(results))
    right = next(r for r in texts(frozen_run, "en").values() if r.prediction["label"] == r.reference)
    kept = [record for record in texts(frozen_run, "sw").values() if record.id != right.id]
    files = Run.at(folder)
    files.write_records(files.records_of(CellResult.model_validate(machine)), kept)
    report = tmp_path / "overlap.json"
    aligner = f"own:hf:{classifier_folder}"
    given = ("overlap", folder, "--aligner", aligner, "--languages", "sw", "--min-probability", 0.01)
    status, out, err = cli(*given, "--json", report)
    assert status == 0, err
    both = {(row["variant"], row["translator"]): row for row in rows(report)}
    assert set(both) == {("zs", None), ("te", "pivot")}
    zs, te = both["zs", None], both["te", "pivot"]
    assert (zs["missing"], te["missing"], te["n"]) == (0, 1, zs["n"] - 1)
    assert "machine (te, pivot)" in out
    assert "1 not translated" in out


def test_links_of_other_words_are_rejected(cli: Any, frozen_run: Run, tmp_path: Path) -> None:
    links = diagonal(frozen_run, "sw", tmp_path / "sw.links")
    links.write_text(links.read_text().replace(" market ", " mar ket "))
    status, _, err = cli("overlap", frozen_run.path, "--aligner", f"file:{links}", "--languages", "sw")
    assert status == 1
    assert "'mar'" in err and "'market'" in err


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("--aligner owl:x", ("'owl'", "'own'")),
        ("--aligner own:hf:x --languages xx", ("'xx'",)),
        ("--aligner own:hf:x --tasks xnly", ("'xnly'", "'xnli'")),
        ("--aligner own:hf:x --link last", ("--link", "'last'", "'first'", "'any'")),
    ],
)
def test_unknown_names_are_errors(cli: Any, frozen_run: Run, arguments: str, names: tuple[str, ...]) -> None:
    status, _, err = cli("overlap", frozen_run.path, *arguments.split())
    assert status == 2
    assert all(name in err for name in names)


def test_the_fit_is_taken_from_the_cache(
    cli: Any, classifier_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    monkeypatch.setenv("HARNESS_CACHE", str(mine))
    run = evaluate(
        "xnli",
        f"hf:{classifier_folder}",
        languages=("en", "sw"),
        data="sample",
        protocols=("zero_shot_transfer",),
        recipe="quick",
        train_limit=16,
        output=tmp_path / "fitted",
    )
    aligner = f"own:hf:{classifier_folder}"
    arguments = ("overlap", run.path, "--aligner", aligner, "--languages", "sw")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "empty"))
    status, _, err = cli(*arguments)
    assert status == 2
    assert str(tmp_path / "empty") in err and "harness eval" in err
    shutil.move(mine, tmp_path / "cache2")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache2"))
    status, out, err = cli(*arguments)
    assert status == 0, err
    assert "human" in out


def test_a_run_needs_english(cli: Any, classifier_folder: Path, tmp_path: Path) -> None:
    model, output = f"hf:{classifier_folder}", tmp_path / "sw"
    run = evaluate("xnli:sw", model, data="sample", protocols=("frozen",), output=output)
    status, _, err = cli("overlap", run.path, "--aligner", f"own:hf:{classifier_folder}")
    assert status == 2
    assert "--languages en,sw,ur" in err
