from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.errors import AdapterError, UsageError
from harness.models.capabilities import EmbedOptions
from harness_hf.inference.word_vectors import resolve_layer

TEXTS = [
    "The cat sat on the mat.",
    "",
    "Der Hund schläft.",
    "cafe\u0301",
    "القطة تجلس على السجادة",
    "👩‍👩‍👧 猫",
    "one two three " * 40,
]


def reference(encoder: Any, texts: list[str], layer: int, pooling: str) -> Any:
    """One text at a time, straight through transformers."""
    session = encoder._session
    rows = []
    for text in texts:
        batch = session.tokenizer(text, truncation=True, max_length=session.limit, return_tensors="pt")
        batch = {name: batch[name] for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            states = session.network(**batch, output_hidden_states=True).hidden_states[layer][0]
        vector = {"mean": states.mean(dim=0), "cls": states[0], "last": states[-1]}[pooling]
        rows.append((vector / vector.norm()).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize("layer", [0, 2, 4])
def test_vectors_are_those_of_transformers(encoder: Any, pooling: Any, layer: int) -> None:
    vectors = encoder.embed(TEXTS, side="query", options=EmbedOptions(pooling=pooling, layer=layer))
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, reference(encoder, TEXTS, layer, pooling), atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_chunks_keep_the_order(monkeypatch: pytest.MonkeyPatch, bert: Any) -> None:
    whole = bert.embed(TEXTS, side="query")
    monkeypatch.setattr("harness_hf.inference.text_vectors.CHUNK", 2)
    np.testing.assert_allclose(bert.embed(TEXTS, side="query"), whole, atol=1e-6)


def test_the_pooler(open_bert: Any) -> None:
    adapter = open_bert()
    text = "The cat sat."
    batch = adapter._session.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        expected = adapter._session.network(**batch).pooler_output[0]
    found = adapter.embed([text], side="query", options=EmbedOptions(pooling="pooler"))
    np.testing.assert_allclose(found[0], expected / expected.norm(), atol=1e-6)
    with pytest.raises(UsageError, match="last layer, 4; layer 2"):
        adapter.embed([text], side="query", options=EmbedOptions(pooling="pooler", layer=2))


def test_an_untrained_pooler_is_rejected(folders: dict[str, Path], open_folder: Any, tmp_path: Path) -> None:
    from transformers import BertModel

    make: Any = BertModel.from_pretrained
    make(folders["bert"], add_pooling_layer=False).save_pretrained(tmp_path)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(folders["bert"] / file, tmp_path / file)
    adapter = open_folder(tmp_path)
    assert adapter.embed(["x"], side="query").shape == (1, 32)
    with pytest.raises(UsageError, match="trained pooler weights"):
        adapter.embed(["x"], side="query", options=EmbedOptions(pooling="pooler"))


@pytest.mark.parametrize(("depth", "layer"), [(12, 8), (24, 14), (6, 5), (2, 2), (1, 1)])
def test_the_layer_of_xtreme_r(depth: int, layer: int) -> None:
    assert resolve_layer("xtreme_r", depth) == layer


def test_layers_that_are_not_there(bert: Any) -> None:
    assert bert.layer_count() == 5
    for layer in (-1, 5):
        with pytest.raises(UsageError, match=rf"0 to 4\b.*{layer}\b"):
            bert.embed(["x"], side="query", options=EmbedOptions(layer=layer))
    with pytest.raises(UsageError, match="layer 5"):
        list(bert.hidden_states([["x"]], [5]))


def test_prefixes_and_pooling_of_the_folder(
    bert: Any, folders: dict[str, Path], open_folder: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders["bert"], folder)
    prompts = {"prompts": {"query": "yes ", "passage": "no "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (folder / "1_Pooling").mkdir()
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))
    declared, overridden = open_folder(folder), open_folder(folder, query_prefix="", pooling="mean")
    cls = EmbedOptions(pooling="cls")
    for found, expected in (
        (declared.embed(["cat"], side="query"), bert.embed(["yes cat"], side="query", options=cls)),
        (declared.embed(["cat"], side="passage"), bert.embed(["no cat"], side="query", options=cls)),
        (
            declared.embed(["cat"], side="query", options=EmbedOptions(prefixes=False)),
            bert.embed(["cat"], side="query", options=cls),
        ),
        (overridden.embed(["cat"], side="query"), bert.embed(["cat"], side="query")),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)

    pooling.write_text(json.dumps({"pooling_mode_median_tokens": True}))
    with pytest.raises(AdapterError, match="'median_tokens' pooling"):
        open_folder(folder).embed(["cat"], side="query")
    assert open_folder(folder, pooling="mean").embed(["cat"], side="query").shape == (1, 32)


def test_lengths_are_cut_where_asked(bert: Any, open_bert: Any) -> None:
    long, short = "cat " * 50, "cat " * 6
    asked = bert.embed([long], side="query", options=EmbedOptions(max_length=8))
    np.testing.assert_allclose(asked, bert.embed([short], side="query"), atol=1e-6)
    np.testing.assert_allclose(open_bert(max_length=8).embed([long], side="query"), asked, atol=1e-6)
    beyond = bert.embed([long * 9], side="query", options=EmbedOptions(max_length=5000))
    assert np.isfinite(beyond).all()


def test_vectors_that_are_not_finite_are_an_error(bert: Any) -> None:
    with torch.no_grad():
        next(bert._session.network.parameters()).fill_(float("nan"))
    with pytest.raises(AdapterError, match="not finite"):
        bert.embed(["x"], side="query")


def test_hidden_states_are_those_of_the_first_pieces(encoder: Any) -> None:
    words = ["The", "Katze", "", "sitzt", "unbelievable"]
    sentences = [words, [], ["猫"]]
    found = dict(encoder.hidden_states(sentences, [0, 3, 4]))
    assert sorted(found) == [0, 1, 2]
    assert {index: states.shape for index, states in found.items()} == {
        0: (3, 5, 32),
        1: (3, 0, 32),
        2: (3, 1, 32),
    }
    session = encoder._session
    space = " " if "Ġ" in "".join(session.tokenizer.get_vocab()) else ""
    batch = session.tokenizer(
        [space + word for word in words if word], is_split_into_words=True, return_tensors="pt"
    )
    with torch.no_grad():
        output = session.network(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], output_hidden_states=True
        )
    positions = [batch.word_ids().index(number) for number in range(4)]
    for row, layer in enumerate((0, 3, 4)):
        expected = output.hidden_states[layer][0, positions].numpy()
        np.testing.assert_allclose(found[0][row, [0, 1, 3, 4]], expected, atol=2e-6)
    assert not found[0][:, 2].any()


def test_long_sentences_are_rejoined(bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [["cat", "dog"] * 100, ["dog"], ["cat"] * 62]
    found = dict(bert.hidden_states(sentences, [4]))
    assert found[0].shape == (1, 200, 32)
    assert np.abs(found[0]).sum(axis=2).all()
    first_window = dict(bert.hidden_states([sentences[0][:62]], [4]))[0]
    np.testing.assert_allclose(found[0][:, :62], first_window, atol=2e-6)
    last_window = dict(bert.hidden_states([sentences[0][186:]], [4]))[0]
    np.testing.assert_allclose(found[0][:, 186:], last_window, atol=2e-6)
    monkeypatch.setattr("harness_hf.inference.word_vectors.SENTENCE_CHUNK", 1)
    again = dict(bert.hidden_states(sentences, [4]))
    assert sorted(again) == [0, 1, 2]
    np.testing.assert_allclose(again[2], found[2], atol=2e-6)


def test_identity_distinguishes_models_and_options(
    folders: dict[str, Path], open_folder: Any, open_bert: Any
) -> None:
    first = open_bert().identity()
    assert first == open_bert(batch_tokens=77).identity()
    assert first != open_bert(layer=2).identity()
    assert first["weights"] != open_folder(folders["roberta"]).identity()["weights"]
    assert {"torch", "transformers", "tokenizers", "dtype", "files"} <= set(first)
    assert all(isinstance(value, str) for value in first.values())


def test_closing_twice_and_using_afterwards(bert: Any) -> None:
    identity = bert.identity()
    bert.close()
    bert.close()
    assert bert.identity() == identity
    with pytest.raises(AdapterError, match="has been closed"):
        bert.embed(["x"], side="query")


def test_bfloat16_is_near(open_bert: Any) -> None:
    exact = open_bert().embed(TEXTS, side="query")
    adapter = open_bert(dtype="bfloat16")
    assert adapter.identity()["dtype"] == "bfloat16"
    near = adapter.embed(TEXTS, side="query")
    assert near.dtype == np.float32
    assert (exact * near).sum(axis=1).min() > 0.99


def test_incomplete_weights_are_rejected(folders: dict[str, Path], open_folder: Any, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(folders["bert"], folder)
    weights = load_file(folder / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    assert name in weights
    save_file({key: value for key, value in weights.items() if key != name}, folder / "model.safetensors")
    with pytest.raises(AdapterError, match=r"'encoder\.layer\.1\.output\.dense\.weight'"):
        open_folder(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(AdapterError, match=r"no 'model\.safetensors'"):
        open_folder(folder)


def test_no_gpu_is_one_sentence(open_bert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(AdapterError, match="torch sees no GPU"):
        open_bert(device="cuda")
