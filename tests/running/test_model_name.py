"""A model is called by its name wherever people read of it, never by an address or a path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import harness
from harness.cli.main import run_command
from harness.reporting.blocks.model import file_stem
from harness.reporting.overview.column import system_names
from harness.storage.model_name import folder_names, model_name
from harness.storage.results import Manifest
from harness.storage.run_folder import Run

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("hf:/models/e5-small/", "e5-small"),
        ("hf:./e5", "e5"),
        ("hf:../runs/mine/checkpoint-500", "mine@checkpoint-500"),
        ("hf:out/mine/step_1000/", "mine@step_1000"),
        ("hf:/srv/mine/best", "mine@best"),
        (f"hf:/root/.cache/hub/models--org--e5/snapshots/{COMMIT}", f"org/e5@{COMMIT[:7]}"),
        ("hf:FacebookAI/xlm-roberta-base", "FacebookAI/xlm-roberta-base"),
        ("hf-encoder:a/b/c", "c"),
        (r"hf:C:\models\e5", "e5"),
        ("baseline:char-ngram", "char-ngram"),
        ("vllm:http://10.0.0.7:8000/v1,http://10.0.0.8:8000/v1", "vllm"),
        ("plain", "plain"),
    ],
)
def test_the_name_of_a_reference(reference: str, name: str) -> None:
    assert model_name(reference) == name


@pytest.mark.parametrize(
    ("served", "name"),
    [("tiny-b", "tiny-b"), ("qwen2:7b", "qwen2:7b"), ("/srv/models/e5", "e5"), ("org/model", "org/model")],
)
def test_a_served_model_has_the_name_of_its_server(served: str, name: str) -> None:
    reference = "openai:https://user:secret@intern.example/v1"
    assert model_name(reference, served) == name
    manifest = Manifest.model_validate({"model": reference, "options": {"model": served}})
    assert manifest.model_name == name
    assert manifest.changed(name="GPT at home").model_name == "GPT at home"


def test_a_revision_and_a_folder_of_one_level_are_read() -> None:
    assert model_name("hf:org/e5", None, COMMIT) == f"org/e5@{COMMIT[:7]}"
    assert model_name("hf:org/e5", None, "v1.5") == "org/e5@v1.5"
    assert model_name("hf:models/e5", is_folder=True) == "e5"


@pytest.mark.thorough
@given(
    st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), min_size=1, max_size=4),
    st.sampled_from(["/", "~/", "./", "../", "http://", "https://"]),
)
def test_no_name_holds_its_address_or_folders(parts: list[str], start: str) -> None:
    name = model_name(f"hf:{start}{'/'.join(parts)}")
    assert "/" not in name
    assert name


@pytest.mark.thorough
@given(st.lists(st.from_regex(r"[ab](/[ab]){0,3}", fullmatch=True), unique=True, min_size=1, max_size=6))
def test_names_of_folders_are_distinct_ends(paths: list[str]) -> None:
    names = folder_names([Path("/runs") / path for path in paths])
    assert len(set(names)) == len(paths)
    assert all(f"/runs/{path}".endswith(name) for path, name in zip(paths, names, strict=True))


@given(st.text(max_size=120))
def test_files_have_readable_names(name: str) -> None:
    stem = file_stem("heatmap", name)
    assert stem.startswith("heatmap")
    assert len(stem) <= 90
    assert not set(stem) & set('/\\:*?"<>| \n\0')
    assert file_stem("heatmap", "org/e5-small v1.5") == "heatmap-org-e5-small-v1.5"


def test_a_chosen_name_is_in_the_run_and_a_title_in_its_page(tmp_path: Path) -> None:
    for folder, name in (("a", "mine"), ("b", None)):
        harness.evaluate(
            "xnli:de", "baseline:majority", data="sample", limit=4, output=tmp_path / folder, name=name
        )
    runs = [Run(tmp_path / folder) for folder in ("a", "b")]
    assert system_names(runs) == ["mine", "majority"]
    assert [run.manifest.model for run in runs] == ["baseline:majority"] * 2
    page, rows = tmp_path / "page.html", tmp_path / "rows.json"
    given = ["report", str(tmp_path / "a"), "-f", "html", "--out", str(page), "--json", str(rows)]
    assert run_command([*given, "--title", "My <study>"]) == 0
    assert "<h1>My &lt;study&gt;</h1>" in page.read_text(encoding="utf-8").replace(' class="title"', "")
    assert {row["model"] for row in json.loads(rows.read_text(encoding="utf-8"))} == {"mine"}


def test_two_models_of_one_server_are_distinct_and_no_page_has_its_address(tmp_path: Path) -> None:
    address = "http://intern.example:8731/v1"
    for number, served in enumerate(("tiny-a", "tiny-b")):
        path = tmp_path / served
        harness.evaluate("xnli:de", "baseline:majority", data="sample", limit=4, output=path)
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        manifest |= {"model": f"openai:{address}", "options": {"model": served}, "name": ""}
        manifest["command"] = ["harness", "eval", "--model", f"openai:{address}"]
        manifest["config"]["model"] = f"openai:{address}"
        (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        page = tmp_path / f"{number}.html"
        assert run_command(["report", str(path), "-f", "html", "--out", str(page)]) == 0
        assert "intern.example" not in page.read_text(encoding="utf-8")
    assert system_names([Run(tmp_path / name) for name in ("tiny-a", "tiny-b")]) == ["tiny-a", "tiny-b"]
