"""What the pages say in tables and numbers is what the specs and recipes say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.api import open_session
from harness.capabilities import Head, ModelDescription, TrainingSettings
from harness.recipes import resolve_settings
from harness.registry import Registry
from harness.specs.catalog import Catalog

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ("xtreme_r", "xtreme_r_paper", "quick")
LONGEST_ENTRY = 25

Find = Callable[..., TrainingSettings]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def table_rows(text: str) -> Mapping[str, list[str]]:
    """Return the cells after the first one, by the first one, of every table row."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return open_session().catalog


@pytest.fixture(scope="module")
def registry() -> Registry:
    return open_session().registry


def rate(number: float) -> str:
    return re.sub(r"e-0(\d)$", r"e-\1", f"{number:.0e}")


def pair(find: Find, name: str) -> str:
    heads = (Head.CLASSIFICATION, Head.SPAN_EXTRACTION)
    return ", ".join(str(getattr(find(head), name)) for head in heads)


RECIPE_ROWS: Mapping[str, Callable[[Find], str]] = {
    "learning rate": lambda find: rate(find(Head.CLASSIFICATION).learning_rate),
    "... classification, large model": lambda find: rate(find(Head.CLASSIFICATION, 24).learning_rate),
    "... tagging": lambda find: rate(find(Head.TAGGING).learning_rate),
    "... tagging, large model": lambda find: rate(find(Head.TAGGING, 24).learning_rate),
    "... span extraction": lambda find: rate(find(Head.SPAN_EXTRACTION).learning_rate),
    "... span extraction, large model": lambda find: rate(find(Head.SPAN_EXTRACTION, 24).learning_rate),
    "epochs: classification, tagging, span extraction": lambda find: ", ".join(
        f"{find(head).epochs:g}" for head in (Head.CLASSIFICATION, Head.TAGGING, Head.SPAN_EXTRACTION)
    ),
    "longest sequence: classification and tagging, span extraction": lambda find: pair(find, "max_length"),
    "stride, question, answer, n-best (span extraction)": lambda find: ", ".join(
        str(getattr(find(Head.SPAN_EXTRACTION), name))
        for name in ("stride", "max_query_length", "max_answer_length", "n_best")
    ),
    "embedding matrix": lambda find: "frozen" if find(Head.TAGGING).freeze_embeddings else "trained",
    "dev items that choose the checkpoint": lambda find: (
        "all" if (limit := find(Head.TAGGING).validation_limit) is None else f"at most {limit}"
    ),
    "batches": lambda find: (
        "examples of like length together" if find(Head.TAGGING).group_by_length else "shuffled"
    ),
}


@pytest.mark.parametrize("row", RECIPE_ROWS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_numbers(row: str, recipe: str, catalog: Catalog) -> None:
    def find(head: Head, layers: int = 12) -> TrainingSettings:
        model = ModelDescription(adapter="any", ref="any", offers=frozenset(), layers=layers)
        return resolve_settings(catalog.recipe(recipe), head, "any", model)

    shown = table_rows(page("docs/recipes.md"))[row][RECIPES.index(recipe)]
    assert shown == RECIPE_ROWS[row](find)


def test_recipe_prose_numbers(catalog: Catalog) -> None:
    def find(recipe: str, head: Head, layers: int = 12, stage: str = "any") -> TrainingSettings:
        model = ModelDescription(adapter="any", ref="any", offers=frozenset(), layers=layers)
        return resolve_settings(catalog.recipe(recipe), head, stage, model)

    scripts, paper, quick = ({head: find(name, head) for head in Head} for name in RECIPES)
    span, label, tag = Head.SPAN_EXTRACTION, Head.CLASSIFICATION, Head.TAGGING
    dual = Head.DUAL_ENCODER
    assert {settings.batch_size for head, settings in scripts.items() if head is not dual} == {32}
    assert scripts[dual].batch_size == 4
    mewsli = [find("xtreme_r", dual, layers, "mewsli_x_pairs").batch_size for layers in (12, 24)]
    assert mewsli == [64, 8]
    assert (paper[label].batch_size, find("xtreme_r_paper", label, 24).batch_size) == (32, 16)
    assert (quick[label].batch_size, quick[span].batch_size, quick[dual].batch_size) == (32, 16, 16)
    assert (scripts[span].warmup_steps, scripts[label].warmup_steps, paper[span].warmup_steps) == (500, 0, 0)
    assert quick[label].warmup_share == 0.1
    assert (scripts[span].weight_decay, scripts[label].weight_decay, paper[span].weight_decay) == (1e-4, 0, 0)
    assert (scripts[label].eval_steps, scripts[tag].eval_steps, scripts[span].select_best) == (
        100,
        None,
        False,
    )
    assert all(settings.select_best and settings.eval_steps is None for settings in paper.values())
    assert all(settings.select_best and settings.eval_steps is None for settings in quick.values())
    assert quick[Head.TEXT_TO_TEXT].batch_size == 16
    everywhere = [*scripts.values(), *paper.values(), *quick.values()]
    assert {(settings.adam_epsilon, settings.max_grad_norm) for settings in everywhere} == {(1e-8, 1.0)}
    assert {catalog.recipe(name).large_layers for name in RECIPES} == {24}


def test_every_setting_of_a_recipe_is_named() -> None:
    keys = re.sub(r" \(.+?\)", "", page("docs/recipes.md").rpartition("Keys:")[2], flags=re.DOTALL)
    assert set(re.findall(r"`(\w+)`", keys)) == set(TrainingSettings.__slots__)


TEXT_ROWS: Mapping[str, Callable[[TrainingSettings], str]] = {
    "learning rate, how it goes on": lambda found: f"{rate(found.learning_rate)}, {found.lr_schedule}",
    "optimiser": lambda found: found.optimizer,
    "batch": lambda found: str(found.batch_size),
    "longest source, longest target": lambda found: f"{found.max_length}, {found.max_target_length}",
    "length of training": lambda found: (
        f"{found.max_steps} steps" if found.max_steps else f"{found.epochs:g} epochs"
    ),
    "checkpoint, chosen on the dev set": lambda found: (
        f"every {found.eval_steps} steps" if found.eval_steps else "every epoch"
    ),
}


@pytest.mark.parametrize("row", TEXT_ROWS)
def test_recipe_numbers_of_text_pairs(row: str, catalog: Catalog) -> None:
    model = ModelDescription(adapter="any", ref="any", offers=frozenset(), layers=12)
    rows = table_rows(page("docs/recipes.md").partition("`text_to_text`:")[2].partition("\n## ")[0])
    for place, recipe in enumerate(("mt5", "quick")):
        found = resolve_settings(catalog.recipe(recipe), Head.TEXT_TO_TEXT, "any", model)
        assert found.select_best
        assert rows[row][place] == TEXT_ROWS[row](found)


def test_tasks_and_their_languages(catalog: Catalog) -> None:
    text = page("docs/tasks.md")
    assert sorted(re.findall(r"^## ([a-z]+)$", text, flags=re.MULTILINE)) == catalog.names("task")
    counts = {"xnli": "15 languages", "pawsx": "Seven languages", "xquad": "11 languages"}
    counts |= {"udpos": "38 languages", "tatoeba": "41 languages"}
    numbers = {"Seven": 7}
    for name, shown in counts.items():
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        word = shown.split()[0]
        assert shown in " ".join(section.split()), name
        assert len(catalog.languages_of(name)) == int(numbers.get(word, word)), name


def test_languages_that_the_hub_copy_of_udpos_lacks(catalog: Catalog) -> None:
    test = catalog.task("udpos").spec.source("en", "test")
    assert test is not None
    assert test.hub is not None
    assert set(test.hub.lacks) == {"el", "de", "fr", "ru", "zh", "lt", "pl", "ro", "uk", "wo"}


def test_layout_of_data_folders_is_that_of_the_specs(catalog: Catalog) -> None:
    known = {"mnli": catalog.training("mnli")[0], "squad": catalog.training("squad")[0]}
    specs = [*(catalog.task(name).spec for name in catalog.names("task")), *known.values()]
    paths = {
        path
        for spec in specs
        for code in spec.languages
        for split in ("train", "validation", "test")
        if (source := spec.source(code, split)) is not None
        for files in source.alternatives
        for path in files.paths
    }
    text = page("docs/first-run.md").partition("## Real data")[2].partition("```")[0]
    shown = [path for path in re.findall(r"`([^`\s]+/[^`\s]+\.[^`\s]+)`", text) if not path.startswith("~")]
    assert len(shown) >= 10
    assert [path for path in shown if path not in paths] == []


def test_readers_and_kinds_are_those_that_exist(registry: Registry) -> None:
    text = page("docs/add-a-task.md")
    assert all(f"`{name}`" in text for name in registry.readers.names)
    assert all(f"`{name}`" in text for name in registry.kinds.names)


def test_changelog_entries_are_one_short_sentence() -> None:
    entries = re.findall(r"^- (.+)$", page("CHANGELOG.md"), flags=re.MULTILINE)
    assert entries
    for entry in entries:
        assert entry.endswith("."), entry
        assert len(entry.split()) <= LONGEST_ENTRY, entry
