"""Masked language models fill their masks as transformers alone does, and say so without being loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer

from harness.api import evaluate
from harness.errors import AdapterError, CapabilityError
from harness.models.capabilities import Capability, FillsMasks
from harness.models.requests import MaskRequest
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import prepare
from harness_hf.description import describe
from harness_hf.encoder.masked_lm import MaskFiller
from harness_hf.options import EncoderOptions

from .conftest import Open

FAMILIES = ("bert", "xlm-roberta", "roberta")
REQUESTS = (
    MaskRequest(before="The cat ", form="sat", after=" on the warm mat."),
    MaskRequest(before="The cat ", form="sleeping", after=" on the warm mat."),
    MaskRequest(before="", form="Der", after=" Hund schläft neben der Tür"),
    MaskRequest(before="Кошка сидит на тёплом ", form="коврике"),
    MaskRequest(before="यह एक छोटा वाक्य है और बिल्ली ", form="बैठी", after=" है।"),
)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plain(folder: Path, request: MaskRequest) -> list[float]:
    """Return the log-probabilities of one form's pieces through transformers alone, one sequence at a time.

    The pieces of the form are those that the text has more than its beginning.
    """
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForMaskedLM.from_pretrained(folder).eval()
    whole = tokenizer(request.before + request.form + request.after)["input_ids"]
    first = len(tokenizer(request.before.rstrip(), add_special_tokens=False)["input_ids"]) + 1
    last = len(tokenizer(request.before + request.form, add_special_tokens=False)["input_ids"]) + 1
    masked = [*whole[:first], *[tokenizer.mask_token_id] * (last - first), *whole[last:]]
    with torch.no_grad():
        logits = network(input_ids=torch.tensor([masked])).logits[0]
    logprobs = torch.log_softmax(logits, dim=-1)
    return [float(logprobs[index, whole[index]]) for index in range(first, last)]


def test_pieces_have_the_log_probabilities_of_transformers(
    masked_folders: dict[str, Path], open_folder: Open, family: str
) -> None:
    folder = masked_folders[family]
    model = open_folder(folder)
    answers = model.fill_masks(REQUESTS)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    lengths = set()
    for request, answer in zip(REQUESTS, answers, strict=True):
        expected = plain(folder, request)
        unknown = tokenizer.unk_token_id in tokenizer(request.form)["input_ids"]
        assert answer.token_logprobs == pytest.approx([] if unknown else expected, abs=1e-4)
        assert answer.byte_length == len(request.form.encode())
        assert (answer.truncated, answer.straddles) == (False, False)
        lengths.add(len(answer.token_logprobs))
    assert max(lengths) > 1, "no form has several pieces"
    model.close()


def test_what_follows_changes_the_answer(masked_folders: dict[str, Path], open_folder: Open) -> None:
    model = open_folder(masked_folders["bert"])
    whole, prefix = model.fill_masks([REQUESTS[0], MaskRequest(before="The cat ", form="sat")])
    assert abs(whole.total - prefix.total) > 1e-3
    model.close()


def test_forms_of_as_many_pieces_share_a_run(
    masked_folders: dict[str, Path], open_folder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_folder(masked_folders["bert"])
    rows: list[int] = []
    forward = model._session.backbone.forward

    def counted(**inputs: Any) -> Any:
        rows.append(len(inputs["input_ids"]))
        return forward(**inputs)

    monkeypatch.setattr(model._session.backbone, "forward", counted)
    words = ("a", "b", "d", "e")  # a vocabulary has its letters, whatever words it has
    answers = model.fill_masks([MaskRequest(before="The red ", form=word, after=" .") for word in words])
    assert {len(answer.token_logprobs) for answer in answers} == {1}
    assert sum(rows) == 1
    assert len({answer.total for answer in answers}) == len(words)
    model.close()


def test_a_form_outside_of_the_vocabulary_has_no_number(
    masked_folders: dict[str, Path], open_folder: Open
) -> None:
    model = open_folder(masked_folders["bert"])
    answers = model.fill_masks(
        [MaskRequest(before="a ", form="𐌰𐌱𐌲"), MaskRequest(before="a ", form="\u200b")]
    )
    assert [answer.token_logprobs for answer in answers] == [(), ()]
    model.close()


def test_a_mask_in_the_text_itself_is_no_gap(masked_folders: dict[str, Path], open_folder: Open) -> None:
    model = open_folder(masked_folders["bert"])
    request = MaskRequest(before="The [MASK] cat ", form="sat", after=" [MASK] mat")
    [answer] = model.fill_masks([request])
    assert answer.token_logprobs == pytest.approx(plain(masked_folders["bert"], request), abs=1e-4)
    model.close()


def test_long_texts_lose_both_ends(masked_folders: dict[str, Path], open_folder: Open) -> None:
    model = open_folder(masked_folders["bert"])
    request = MaskRequest(before="one two " * 99, form="red", after=" good bad" * 99)
    [cut] = model.fill_masks([request])
    assert cut.truncated
    tokenizer: Any = AutoTokenizer.from_pretrained(masked_folders["bert"])

    def pieces(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    first, form = len(pieces(request.before)), pieces(request.form)
    left = first - (62 - len(form)) // 2
    window = pieces(request.before + request.form + request.after)[left : left + 62]
    masked = range(first - left, first - left + len(form))
    window = [tokenizer.mask_token_id if index in masked else piece for index, piece in enumerate(window)]
    network = AutoModelForMaskedLM.from_pretrained(masked_folders["bert"]).eval()
    with torch.no_grad():
        logits = network(input_ids=torch.tensor([[2, *window, 3]])).logits[0]
    logprobs = torch.log_softmax(logits, dim=-1)
    expected = [float(logprobs[index + 1, piece]) for index, piece in zip(masked, form, strict=True)]
    assert cut.token_logprobs == pytest.approx(expected, abs=1e-4)
    with pytest.raises(
        AdapterError, match=r"The form 'one two one two.* has \d+ pieces; the model '.*' takes 62"
    ):
        model.fill_masks([MaskRequest(before="", form="one two " * 40 + "one")])
    model.close()


def test_only_checkpoints_with_the_head_offer_it(
    folders: dict[str, Path], masked_folders: dict[str, Path], with_head: Callable[..., Path], family: str
) -> None:
    def found(folder: Path) -> Any:
        return describe(str(folder), EncoderOptions())

    assert Capability.FILLS_MASKS in found(masked_folders[family]).offers
    bare = found(folders[family])
    assert Capability.FILLS_MASKS not in bare.offers
    assert bare.note == "its checkpoint has no head of a masked language model, so it fills no masks"
    fitted = found(with_head(AutoModelForSequenceClassification, ("no", "yes")))
    assert Capability.FILLS_MASKS not in fitted.offers
    assert fitted.note == ""


@pytest.mark.parametrize(("method", "used"), [(None, "fill"), ("fill_prefix", "fill_prefix")])
def test_the_task_runs_as_it_stands(
    masked_folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str | None,
    used: str,
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    run = evaluate(
        "colorless_green_agreement:en",
        f"hf:{masked_folders['bert']}",
        data="sample",
        method=method,
        output=tmp_path / "run",
    )
    [cell] = run.cells
    assert (cell.status, cell.protocol, cell.method, cell.n) == ("ok", "frozen", used, 12)
    score = cell.metrics["accuracy"]
    assert {name: group.n for name, group in score.groups.items()} == {"original": 6, "generated": 6}
    assert score.clusters == 6


def test_a_model_without_the_head_is_skipped_with_the_reason(folders: dict[str, Path]) -> None:
    config = RunConfig(
        tasks=("colorless_green_agreement:en",), model=f"hf:{folders['bert']}", data=data_options(["sample"])
    )
    plan = prepare(config).plan
    assert plan.cells == ()
    [reason] = {skipped.reason for skipped in plan.skipped}
    assert "needs FillsMasks or ScoresContinuations" in reason
    assert "its checkpoint has no head of a masked language model, so it fills no masks" in reason


def test_a_bare_encoder_is_no_mask_filler(open_bert: Open) -> None:
    model = open_bert()
    assert not isinstance(model, FillsMasks)
    model.close()


def test_the_other_abilities_are_those_of_the_bare_encoder(
    masked_folders: dict[str, Path], open_folder: Open
) -> None:
    model = open_folder(masked_folders["bert"])
    before = model.embed(["The cat sat."], side="query")
    model.fill_masks(REQUESTS[:1])
    assert isinstance(model, MaskFiller)
    assert np.array_equal(before, model.embed(["The cat sat."], side="query"))
    model.close()


def test_a_config_that_promises_a_head_is_checked(
    masked_folders: dict[str, Path], folders: dict[str, Path], open_folder: Open, tmp_path: Path
) -> None:
    for file in folders["bert"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    config["architectures"] = ["BertForMaskedLM"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert Capability.FILLS_MASKS not in describe(str(tmp_path), EncoderOptions()).offers


def test_a_tokenizer_without_a_mask_is_reported(
    masked_folders: dict[str, Path], open_folder: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_folder(masked_folders["bert"])
    monkeypatch.setattr(model._session.tokenizer, "_special_tokens_map", {}, raising=False)
    if model._session.tokenizer.mask_token_id is not None:
        pytest.fail("the tokenizer still has its mask")
    with pytest.raises(CapabilityError, match="mask token"):
        model.fill_masks(REQUESTS[:1])
    model.close()
