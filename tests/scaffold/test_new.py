"""``harness new``: what is written, and the names, codes and folders that are rejected."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_scaffold.scaffold import LAYERS, LONGEST, package_name, render

Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]

WORDS = dict.fromkeys(
    ("package distribution summary metric metrics padding task code language described provenance").split()
    + "origin items count label_map prompts license citation description codes counts fewest languages".split(),
    "x",
)


@pytest.mark.parametrize("sort", LAYERS)
def test_every_word_of_the_templates_is_given(sort: str) -> None:
    contents = render(sort, WORDS)
    assert {"pyproject.toml", "README.md", "src/x/__init__.py", "src/x/py.typed"} <= contents.keys()
    assert any(name.startswith("tests/test_") for name in contents)
    assert not [
        name for name in contents if any(part.isupper() for part in name.replace("README", "").split("/"))
    ]
    assert not [name for name, text in contents.items() if "$" in text]


def test_a_package_is_named_after_its_folder(cli: Cli) -> None:
    status, out, err = cli("new", "task", "my-mood")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "my-mood: 11 files"
    project = tomllib.loads(Path("my-mood/pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["name"] == "my-mood"
    assert project["project"]["entry-points"]["harness"] == {"my_mood": "my_mood"}
    assert Path("my-mood/src/my_mood/specs/my_mood.yaml").is_file()
    reported = {line.strip() for line in out.splitlines()[1:-1]}
    assert reported == {
        str(path.relative_to("my-mood")) for path in Path("my-mood").rglob("*") if path.is_file()
    }
    assert [path.name for path in Path().iterdir()] == ["my-mood"], "nothing else is left"


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["task", "xnli"], "The name 'xnli' is taken by a task of the plugin 'task_specs'"),
        (["task", "mnli"], "The name 'mnli' is taken by a training set of the plugin"),
        (["plugin", "xtreme-r"], "The name 'xtreme_r' is taken by a plugin of the package"),
        (["plugin", "latex"], "The name 'latex' is taken by a report format"),
        (["plugin", "vllm"], "The name 'vllm' is taken by a plugin"),
        (["task", "harness"], "The name 'harness' is taken by the module at "),
        (
            ["task", "multilingual-harness"],
            "The name 'multilingual-harness' is taken by an installed package",
        ),
        (["metric", "span-f1"], "The name 'span_f1' is taken by a metric"),
        (["adapter", "hf-causal"], "The name 'hf-causal' is taken by a model adapter."),
        (["adapter", "../letters"], "'../letters'"),
        (["task", "a/b"], "'a/b'"),
        (["task", ".."], "'..'"),
        (["task", "Mood"], "'Mood'"),
        (["task", "2mood"], "'2mood'"),
        (["task", "stimmung-ä"], "'stimmung-ä'"),
        (["task", "mood\n"], "'mood\\n'"),
        (["task", ""], "The name ''"),
        (["task", "class"], "'class'"),
        (["metric", "statistics"], "'statistics'"),
        (["task", "m" * (LONGEST + 1)], f"{'m' * (LONGEST + 1)!r}"),
        (["language", "yo", "--task", "xnly"], "No task named 'xnly'. Did you mean 'xnli'?"),
        (["language", "de"], "The task 'xnli' has the language 'de' already, from the plugin 'task_specs'."),
        (["language", "cmn"], "'cmn' is the Tatoeba code and ISO 639-3 code of Mandarin Chinese: use 'zh'"),
        (["language", "../yo"], "'../yo'"),
        (["language", "qzz"], "it needs --name, --script, --family. For example:"),
        (["language", "yo", "--name", "Yoruba"], "The language 'yo' is known: Yoruba, Latn, Niger-Congo."),
        (["language", "yo", "--from", "yy"], "The task 'xnli' has no 'yy' to translate from: it has "),
        (["language", "yo", "--from", "fr"], "The task 'xnli' has no sample in 'fr'. Name another language"),
        (["language", "yo", "--provenance", "guessed"], "guessed"),
        (["language", "yo", "--task", "vyakarana_pos"], "vyakarana_pos"),
        (["task", "mood", "--output", "none/mood"], "none'"),
    ],
)
def test_impossible_requests_are_rejected(cli: Cli, arguments: list[str], reported: str) -> None:
    status, out, err = cli("new", *arguments)
    assert (status, out) == (2, "")
    assert reported in err
    assert len(err.splitlines()) == 1
    assert not list(Path().iterdir())


@pytest.mark.parametrize("there", ["folder", "file", "link"])
def test_existing_files_are_kept(cli: Cli, there: str) -> None:
    path = Path("mood")
    if there == "folder":
        path.mkdir()
    elif there == "file":
        path.write_text("mine", encoding="utf-8")
    else:
        path.symlink_to("nowhere")
    status, _, err = cli("new", "task", "mood")
    assert (status, err) == (
        2,
        "Error: 'mood' exists already; nothing was written. Name another folder with --output.\n",
    )
    assert not path.is_dir() or not list(path.iterdir())
    assert cli("new", "task", "mood", "--output", "other")[0] == 0


def test_a_plugin_of_another_has_its_name(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("acme_mood", "raise RuntimeError('broken')\n")
    status, _, err = cli("new", "adapter", "acme-mood")
    assert (status, err) == (
        2,
        "Error: The name 'acme_mood' is taken by a plugin of the package 'acme-mood'. Choose another.\n",
    )


def test_an_unlisted_language_is_described(cli: Cli) -> None:
    described = ("--name", 'Schwiizer "Tüütsch": $x', "--script", "Latn", "--family", "Indo-European")
    status, out, _ = cli("new", "language", "qpf", "--task", "udpos", *described)
    assert status == 0
    assert "still holds the text in 'en'" in out.splitlines()[-1]
    folder = Path("udpos-qpf/src/udpos_qpf/specs")
    assert cli("tasks", "validate", folder / "qpf.yaml")[0] == 0
    status, out, _ = cli("tasks", "show", "udpos", "--tasks-from", folder)
    assert status == 0
    assert "qpf" in out
    lines = (folder / "sample/udpos/qpf.jsonl").read_text(encoding="utf-8").splitlines()
    assert {"id", "tokens", "tags"} <= json.loads(lines[0]).keys()
    assert '"Schwiizer \\"Tüütsch\\": $x"' in (folder / "qpf.yaml").read_text(encoding="utf-8")


def test_a_language_has_no_label_map_that_its_items_do_not_need(cli: Cli) -> None:
    """XNLI's `contradictory` is in files of the Hub and of XTREME, never in the sample."""
    assert cli("new", "language", "nl", "--task", "xnli")[0] == 0
    specs = Path("xnli-nl/src/xnli_nl/specs")
    assert "label_map" not in (specs / "nl.yaml").read_text(encoding="utf-8")
    assert (specs / "sample/xnli/nl.jsonl").read_text(encoding="utf-8").endswith("}\n")


@pytest.mark.parametrize(("given", "package"), [("a", "a"), ("my-mood_2", "my_mood_2"), ("x1", "x1")])
def test_both_spellings(given: str, package: str) -> None:
    name = package_name(given)
    assert (name.package, name.distribution) == (package, package.replace("_", "-"))
