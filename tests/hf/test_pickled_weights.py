"""Pickled weights: reported before anything is fetched, converted once to safetensors, and never run."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from harness.errors import AdapterError, HarnessError, UsageError
from harness_hf import unpickling
from harness_hf.family import AnyFamilyOptions, describe_any, open_any
from harness_hf.model_files import RECORD, PickledModel, name_and_revision
from harness_hf.model_folder import fetch_folder
from harness_hf.options import ModelOptions
from tests.hub.hub_server import COMMIT, Handler, Hub

from ..conftest import Cli
from ..faults.saved_models import save_encoder, save_text_to_text
from .conftest import byte_level, equal

CONVERT = ModelOptions(convert_weights=True)
REQUEST = "b" * 40
Save = Callable[[Path], Path]


def save_mt5(folder: Path) -> Path:
    """Save a tiny mT5 whose embeddings are shared by encoder and decoder."""
    return save_text_to_text(folder, vocab_size=len(byte_level()), tie_word_embeddings=False)


MODELS: Mapping[str, tuple[Save, Any, str]] = {
    "bert": (
        lambda folder: save_masked(folder, "bert"),
        AutoModelForMaskedLM,
        "bert.embeddings.word_embeddings",
    ),
    "xlm-roberta": (
        lambda folder: save_masked(folder, "xlm-roberta"),
        AutoModelForMaskedLM,
        "roberta.embeddings.word_embeddings",
    ),
    "mt5": (save_mt5, AutoModelForSeq2SeqLM, "shared"),
}


def save_masked(folder: Path, family: str) -> Path:
    """Save a tiny encoder whose output layer is tied to its embeddings."""
    save_encoder(folder, family)
    network = AutoModelForMaskedLM.from_pretrained(folder)
    network.save_pretrained(folder)
    return folder


def state_of(folder: Path, auto_class: Any) -> dict[str, Tensor]:
    state: dict[str, Tensor] = auto_class.from_pretrained(folder).state_dict()
    return state


def pickle_weights(folder: Path, auto_class: Any, shards: int = 1, **how: Any) -> dict[str, Tensor]:
    """Replace the safetensors of a folder by pickled weights, and return them."""
    state = state_of(folder, auto_class)
    (folder / "model.safetensors").unlink()
    if shards == 1:
        torch.save(state, folder / "pytorch_model.bin", **how)
        return state
    names = list(state)
    table: dict[str, str] = {}
    for shard in range(shards):
        file = f"pytorch_model-{shard + 1:05}-of-{shards:05}.bin"
        torch.save({name: state[name] for name in names[shard::shards]}, folder / file, **how)
        table |= dict.fromkeys(names[shard::shards], file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": table}))
    return state


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and conversions in this process: a process of their own costs seconds."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Run the program of conversion in this process, and return its calls."""
    calls: list[tuple[str, ...]] = []

    def unpickle(origin: Path, target: Path, files: list[str]) -> None:
        calls.append(tuple(files))
        try:
            unpickling.main(str(origin), str(target), *files)
        except ValueError as error:
            raise AdapterError(str(error)) from error

    monkeypatch.setattr("harness_hf.model_files._unpickle", unpickle)
    return calls


def converted(ref: str | Path, options: ModelOptions = CONVERT) -> Path:
    description = describe_any(str(ref), AnyFamilyOptions(**options.model_dump(exclude_unset=True)))
    assert description.fault == ""
    return fetch_folder(description, options)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", list(MODELS))
def test_a_converted_copy_is_the_model(
    tmp_path: Path, in_process: list[tuple[str, ...]], name: str, shards: int
) -> None:
    save, auto_class, embedding = MODELS[name]
    folder = save(tmp_path / name)
    state = pickle_weights(folder, auto_class, shards)
    assert "harness fetch" in describe_any(str(folder), AnyFamilyOptions()).fault
    copy = converted(folder)
    assert equal(state_of(copy, auto_class), state)
    assert f"{embedding}.weight" in load_file(copy / "model.safetensors")
    assert converted(folder, ModelOptions()) == copy, "the copy is used without the option"
    assert len(in_process) == 1
    assert len(list(folder.glob("*.bin"))) == shards


@pytest.mark.parametrize("form", ["of old versions of torch", "larger than a file"])
def test_other_forms_of_weights_are_converted(
    tmp_path: Path, in_process: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    is_large = form == "larger than a file"
    if is_large:
        monkeypatch.setattr(unpickling, "SHARD_SIZE", 40_000)
    folder = save_masked(tmp_path / "bert", "bert")
    state = pickle_weights(folder, AutoModelForMaskedLM, _use_new_zipfile_serialization=is_large)
    copy = converted(folder)
    assert (len(list(copy.glob("model-*.safetensors"))) > 1) == is_large
    assert equal(state_of(copy, AutoModelForMaskedLM), state)


def test_tied_weights_are_written_once(tmp_path: Path, in_process: list[tuple[str, ...]]) -> None:
    folder = save_mt5(tmp_path / "mt5")
    state = pickle_weights(folder, AutoModelForSeq2SeqLM)
    torch.save({**state, "lm_head.weight": state["shared.weight"] + 1}, folder / "pytorch_model.bin")
    with safe_open(converted(folder) / "model.safetensors", framework="pt") as weights:
        names = set(weights.keys())
    assert "shared.weight" in names
    assert not names & {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    assert "lm_head.weight" in names, "the output layer of mT5 is not tied"


def test_views_of_one_storage_are_different_weights(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    state = {"whole": whole, "again": whole, "row": whole[1], "columns": whole.T}
    torch.save(state, tmp_path / "pytorch_model.bin")
    unpickling.main(str(tmp_path), str(tmp_path), "pytorch_model.bin")
    written = load_file(tmp_path / "model.safetensors")
    assert written.keys() == {"whole", "row", "columns"}
    assert all(torch.equal(written[name], state[name]) for name in written)


def test_modules_and_adapters_are_converted_to_the_name_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "2_Dense").mkdir()
    for name in ("2_Dense/pytorch_model.bin", "adapter_model.bin"):
        torch.save({"linear.weight": torch.ones(2, 2)}, tmp_path / name)
        unpickling.main(str(tmp_path), str(tmp_path), name)
    assert (tmp_path / "2_Dense" / "model.safetensors").is_file()
    assert (tmp_path / "adapter_model.safetensors").is_file()


class Command:
    """Runs a command when an unrestricted loader reads it."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def _cut(file: Path, **how: Any) -> None:
    torch.save({"weight": torch.ones(2000)}, file, **how)
    file.write_bytes(file.read_bytes()[:4000])


def _without_a_shard(file: Path) -> None:
    index = '{"weight_map": {"weight": "pytorch_model-2.bin"}}'
    file.with_name("pytorch_model.bin.index.json").write_text(index)
    torch.save({"weight": torch.ones(2)}, file.with_name("pytorch_model-00001-of-00002.bin"))


OLD: Mapping[str, Any] = {"_use_new_zipfile_serialization": False}
PLANTED: Mapping[str, Callable[[Path, Command], object]] = {
    "command": lambda file, command: torch.save({"weight": torch.ones(2), "command": command}, file),
    "command, old": lambda file, command: torch.save(command, file, **OLD),
    "pickle with a command": lambda file, command: file.write_bytes(pickle.dumps({"command": command})),
    "pickle": lambda file, _: file.write_bytes(pickle.dumps({"weight": [1.0, 2.0]})),
    "texts": lambda file, _: torch.save({"weight": torch.ones(2), "name": "model"}, file),
    "list": lambda file, _: torch.save([torch.ones(2)], file),
    "empty": lambda file, _: file.write_bytes(b""),
    "cut": lambda file, _: _cut(file),
    "cut, old": lambda file, _: _cut(file, **OLD),
    "missing shard": lambda file, _: _without_a_shard(file),
}
"""What writes files of weights that are none; `Command` would run where they are unpickled."""


def plant(folder: Path, kind: str, marker: Path) -> None:
    """Write the pickled weights of a folder so that they are not weights."""
    PLANTED[kind](folder / "pytorch_model.bin", Command(f"touch {marker}"))


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_no_file_of_weights_is_rejected_and_nothing_runs(
    tmp_path: Path, cache: Path, in_process: list[tuple[str, ...]], kind: str
) -> None:
    folder, marker = save_encoder(tmp_path / "model"), tmp_path / "marker"
    (folder / "model.safetensors").unlink()
    plant(folder, kind, marker)
    with pytest.raises(AdapterError) as caught:
        converted(folder)
    assert "pytorch_model" in caught.value.message
    assert ("system" in caught.value.message) == kind.startswith("command")
    assert len(in_process) == 1
    assert not marker.exists()
    assert [path.name for path in (cache / "converted").iterdir() if path.is_dir()] == []


@pytest.mark.thorough
def test_the_command_converts_in_a_process_of_its_own(cli: Cli, tmp_path: Path) -> None:
    folder, marker = save_mt5(tmp_path / "mt5"), tmp_path / "marker"
    pickle_weights(folder, AutoModelForSeq2SeqLM)
    run = ["--tasks", "xnli:sw", "--data", "sample", "--limit", "2", "--protocol", "prompted"]
    status, _, err = cli("plan", *run, "--model", f"hf:{folder}")
    assert (status, "--convert" in err) == (1, True)
    status, _, err = cli("fetch", f"hf:{folder}", "--convert")
    assert status == 0, err
    status, _, err = cli("eval", *run, "--model", f"hf:{folder}", "--output", tmp_path / "run")
    assert status == 0, err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert "weights_only" in manifest["identity"]["conversion"]
    plant(folder, "command", marker)
    status, _, err = cli(
        "eval", *run, "--model", f"hf:{folder}", "--convert-weights", "--output", tmp_path / "b"
    )
    assert (status, "system" in err) == (1, True)
    assert not marker.exists()


def test_the_identity_names_the_source(tmp_path: Path, in_process: list[tuple[str, ...]]) -> None:
    folder = save_masked(tmp_path / "bert", "bert")
    pickle_weights(folder, AutoModelForMaskedLM)
    digest = hashlib.sha256((folder / "pytorch_model.bin").read_bytes()).hexdigest()
    options = AnyFamilyOptions.model_validate({"convert_weights": True})
    identity = open_any(describe_any(str(folder), options), options).identity()
    assert identity["converted_from"] == hashlib.sha256(digest.encode()).hexdigest()
    assert "weights_only" in identity["conversion"]
    other = describe_any(str(save_encoder(tmp_path / "other")), AnyFamilyOptions())
    assert "converted_from" not in open_any(other, AnyFamilyOptions()).identity()


def test_changed_weights_are_converted_again_and_changed_files_are_read(
    tmp_path: Path, in_process: list[tuple[str, ...]]
) -> None:
    folder = save_masked(tmp_path / "bert", "bert")
    state = pickle_weights(folder, AutoModelForMaskedLM)
    copy = converted(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "layer_norm_eps": 0.5}), encoding="utf-8")
    again = json.loads((converted(folder) / "config.json").read_text(encoding="utf-8"))
    assert again["layer_norm_eps"] == 0.5
    assert len(in_process) == 1
    torch.save({name: tensor + 1 for name, tensor in state.items()}, folder / "pytorch_model.bin")
    assert describe_any(str(folder), AnyFamilyOptions()).fault
    moved = {name: tensor + 1 for name, tensor in state.items()}
    assert equal(state_of(converted(folder), AutoModelForMaskedLM), moved)
    assert (len(in_process), converted(folder)) == (2, copy)


# The Hub ------------------------------------------------------------------------------------------------


class WeightsHandler(Handler):
    """Adds digests of large files, revisions, pull requests, and gated and missing repositories."""

    server: WeightsHub

    def answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0].strip("/").replace("%2F", "/")
        repository = path.removeprefix("api/models/").partition("/resolve/")[0]
        repository = "/".join(repository.split("/")[:2])
        if repository == "org/gated":
            self.send(403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"}, body=body)
        elif repository == "org/missing":
            self.send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body=body)
        elif path.endswith("/discussions"):
            rows = [
                {
                    "title": "Adding `safetensors` variant of this model",
                    "num": 7,
                    "author": {"name": self.server.author},
                    "createdAt": "2024-01-01T00:00:00.000Z",
                    "status": self.server.status,
                    "repo": {"name": repository, "type": "model"},
                    "isPullRequest": True,
                }
            ]
            rows = rows if self.server.request else []
            content = json.dumps({"discussions": rows, "count": len(rows), "start": 0}).encode()
            self.send(200, content, {}, body=body)
        else:
            revision = re.sub("^.*/(revision|resolve|tree)/", "", path)
            is_request = revision.startswith(("refs/pr/7", REQUEST))
            self.repository_answer(path, repository, is_request=is_request, body=body)

    def repository_answer(self, path: str, repository: str, *, is_request: bool, body: bool) -> None:
        files = self.server.request if is_request else self.server.main
        commit = REQUEST if is_request else COMMIT
        if path.startswith("api/"):
            siblings = [
                {
                    "rfilename": name,
                    "size": len(content),
                    "blobId": hashlib.sha1(content, usedforsecurity=False).hexdigest(),
                    **({"lfs": large_file(content)} if name.endswith((".bin", ".safetensors")) else {}),
                }
                for name, content in files.items()
            ]
            tree = [{"type": "file", "path": name, "size": 1, "oid": commit} for name in files]
            info = {"id": repository, "sha": commit, "siblings": siblings}
            self.send(200, json.dumps(tree if "/tree/" in path else info).encode(), {}, body=body)
            return
        name = path.partition("/resolve/")[2].removeprefix("refs/pr/7/").removeprefix(f"{commit}/")
        name = name.removeprefix("main/").removeprefix("v1/")
        content = files.get(name)
        headers = {"X-Repo-Commit": commit}
        if content is None:
            self.send(404, b"", {"X-Error-Code": "EntryNotFound", **headers}, body=body)
            return
        if body:
            self.server.sent.append(name)
        etag = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        self.send(200, content, {"ETag": f'"{etag}"', **headers}, body=body)


def large_file(content: bytes) -> dict[str, Any]:
    return {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}


class WeightsHub(Hub):
    """A Hub with one repository, and perhaps a pull request that adds safetensors to it."""

    author, status = "SFconvertbot", "open"

    def __init__(self, main: Mapping[str, bytes]) -> None:
        super().__init__({})
        self.RequestHandlerClass = WeightsHandler
        self.main, self.request = dict(main), dict[str, bytes]()
        self.safe: dict[str, bytes] = {}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WeightsHub]:
    """A Hub whose repository has pickled weights; its client in this process uses it."""
    folder = save_masked(tmp_path / "made", "bert")
    safe = {file.name: file.read_bytes() for file in folder.iterdir()}
    pickle_weights(folder, AutoModelForMaskedLM)
    server = WeightsHub({file.name: file.read_bytes() for file in folder.iterdir()})
    server.safe = {**server.main, "model.safetensors": safe["model.safetensors"]}
    shutil.rmtree(folder)
    from huggingface_hub import HfApi, constants

    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", server.url)
    assert HfApi().endpoint == server.url
    yield server
    server.shutdown()
    server.server_close()


def test_the_list_of_files_shows_it_before_weights_are_fetched(hub: WeightsHub) -> None:
    fault = describe_any("org/old", AnyFamilyOptions()).fault
    assert "harness fetch hf:org/old --convert" in fault
    assert set(hub.sent) == {"config.json"}


@pytest.mark.parametrize("ref", ["org/old", "org/old@v1", "org/old@main"])
def test_a_hub_model_is_converted(hub: WeightsHub, in_process: list[tuple[str, ...]], ref: str) -> None:
    copy = converted(ref)
    assert len(in_process) == 1
    assert json.loads((copy / RECORD).read_text(encoding="utf-8"))["source"] == f"org/old@{COMMIT}"
    assert "pytorch_model.bin" in hub.sent
    assert converted("org/old", ModelOptions()) == copy


def test_the_hubs_own_conversion_is_preferred(hub: WeightsHub, in_process: list[tuple[str, ...]]) -> None:
    hub.request = hub.safe
    copy = converted("org/old")
    assert in_process == []
    assert "pytorch_model.bin" not in hub.sent
    record = json.loads((copy / RECORD).read_text(encoding="utf-8"))
    assert "refs/pr/7" in record["conversion"]
    assert record["files"] == {"pytorch_model.bin": hashlib.sha256(hub.main["pytorch_model.bin"]).hexdigest()}
    assert AutoModelForMaskedLM.from_pretrained(copy) is not None


@pytest.mark.parametrize("what", ["author", "status", "weights"])
def test_other_pull_requests_are_not_trusted(
    hub: WeightsHub, in_process: list[tuple[str, ...]], what: str
) -> None:
    hub.request = dict(hub.safe)
    if what == "weights":
        hub.request["pytorch_model.bin"] = b"other weights"
    else:
        setattr(hub, what, {"author": "somebody", "status": "closed"}[what])
    converted("org/old")
    assert len(in_process) == 1
    assert "model.safetensors" not in hub.sent


@pytest.mark.parametrize(("name", "words"), [("gated", "gated"), ("missing", "no such model")])
def test_gated_and_missing_repositories_are_named(hub: WeightsHub, name: str, words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        describe_any(f"org/{name}", AnyFamilyOptions.model_validate({"convert_weights": True}))


def test_a_name_has_one_revision() -> None:
    assert name_and_revision("org/old@refs/pr/1", ModelOptions()) == ("org/old", "refs/pr/1")
    assert name_and_revision("org/old", ModelOptions(revision="v1")) == ("org/old", "v1")
    with pytest.raises(UsageError, match="v1"):
        name_and_revision("org/old@v2", ModelOptions(revision="v1"))


@pytest.mark.parametrize(
    ("names", "pickled"),
    [
        (["pytorch_model.bin"], ["pytorch_model.bin"]),
        (["pytorch_model.bin", "model.safetensors"], []),
        (["pytorch_model-00001-of-00002.bin", "model.safetensors.index.json"], []),
        (["pytorch_model.bin", "pytorch_model-00001-of-00001.bin"], ["pytorch_model.bin"]),
        (["model.safetensors", "2_Dense/pytorch_model.bin"], ["2_Dense/pytorch_model.bin"]),
        (["adapter_config.json", "adapter_model.bin", "training_args.bin"], ["adapter_model.bin"]),
        (["adapter_model.bin", "onnx/pytorch_model.bin", "pytorch_model.fp16.bin"], []),
    ],
)
def test_pickled_files_are_those_without_a_counterpart(
    tmp_path: Path, names: list[str], pickled: list[str]
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    model = PickledModel.find(str(tmp_path), ModelOptions(), None)
    assert ([] if model is None else [*model.files]) == pickled
