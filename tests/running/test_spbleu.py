"""spBLEU with a small sentencepiece model in the place of FLORES-200's, and what is reported without one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.metrics.metric import MetricContext
from harness.metrics.written import missing_spbleu, spbleu, spbleu_signature
from harness.planning.plan import Plan
from harness.storage.run_folder import Run

sacrebleu = pytest.importorskip("sacrebleu")
sentencepiece = pytest.importorskip("sentencepiece")

SENTENCES = ["the cat sat on the mat", "twelve dogs near the river bank", "in the year 1998"]
ANSWERS = ["the cat sat on a mat", "twelve dogs near a river", ""]
GERMAN = MetricContext(language="de")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A sentencepiece model of three sentences."""
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "text").write_text("\n".join(SENTENCES * 20), encoding="utf-8")
    trainer: Any = sentencepiece.SentencePieceTrainer
    trainer.train(input=str(folder / "text"), model_prefix=str(folder / "own"), vocab_size=30, minloglevel=2)
    return (folder / "own.model").read_bytes()


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the tokenizer, where it is missing; a download fails the test."""
    from sacrebleu import utils
    from sacrebleu.tokenizers import tokenizer_spm

    for module in (utils, tokenizer_spm):
        monkeypatch.setattr(module, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(tokenizer_spm, "download_file", lambda *given: pytest.fail(f"downloads {given}"))
    (tmp_path / "models").mkdir()
    return tmp_path / "models" / "flores200sacrebleuspm"


def test_the_score_is_bleu_of_the_pieces(model: bytes, file: Path) -> None:
    file.write_bytes(model)
    assert missing_spbleu() is None
    processor: Any = sentencepiece.SentencePieceProcessor(model_file=str(file))
    answers, gold = (
        [" ".join(processor.encode(text, out_type=str)) for text in texts] for texts in (ANSWERS, SENTENCES)
    )
    expected = sacrebleu.metrics.BLEU(tokenize="none", force=True).corpus_score(answers, [gold])
    assert 10 < expected.score < 90
    result = spbleu(ANSWERS, [[text] for text in SENTENCES], GERMAN)
    assert result.value == pytest.approx(expected.score / 100)
    assert "tok:flores200" in spbleu_signature(GERMAN)


@pytest.mark.parametrize("part", [0, 0.5, 1])
def test_a_damaged_tokenizer_is_a_reason_until_it_is_replaced(model: bytes, file: Path, part: float) -> None:
    file.write_bytes(model[: int(len(model) * part)])
    assert (missing_spbleu() is None) == (part == 1)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is missing at" in (missing_spbleu() or "")
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "sentencepiece" else real(name)
    )
    assert "multilingual-harness[metrics]" in (missing_spbleu() or "")


@pytest.mark.thorough
@pytest.mark.usefixtures("calls")
def test_a_run_has_spbleu_only_where_it_can_be_computed(
    model: bytes, file: Path, make_plan: Callable[..., Plan], run: Callable[..., Run]
) -> None:
    metrics = []
    for _ in range(2):
        notes = [note for note in make_plan("ntrex_mt:de", model="asks:writes").notes if "spbleu" in note]
        [cell] = run("ntrex_mt:de", "asks:writes", options={"says": "die Katze"}).cells
        assert cell.status == "ok", cell.reason
        assert "chrf_plus" in cell.metrics
        metrics.append((len(notes), "spbleu" in cell.metrics))
        file.write_bytes(model)
    assert metrics == [(1, False), (0, True)]
