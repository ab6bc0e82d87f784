"""What the pages say in tables and numbers is what the specs and recipes say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from docs_site.task_table import replaced, task_table
from harness.models.capabilities import Head, ModelDescription, TrainingSettings
from harness.registry.registry import Registry
from harness.running.session import open_session
from harness.specs.catalog import Catalog
from harness.specs.documents import resolve_settings
from harness.specs.schema import SPLITS

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ("xtreme_r", "xtreme_r_paper", "quick")
LONGEST_ENTRY = 25
LONGEST_CHANGELOG = 60
"""Lines of the first release."""

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
    "... dual encoder": lambda find: rate(find(Head.DUAL_ENCODER).learning_rate),
    "... dual encoder, large model": lambda find: rate(find(Head.DUAL_ENCODER, 24).learning_rate),
    "epochs: multiple choice, dual encoder": lambda find: ", ".join(
        f"{find(head).epochs:g}" for head in (Head.MULTIPLE_CHOICE, Head.DUAL_ENCODER)
    ),
    "longest query and answer (dual encoder)": lambda find: ", ".join(
        str(getattr(find(Head.DUAL_ENCODER), name)) for name in ("max_query_length", "max_length")
    ),
    "vector (dual encoder)": lambda find: find(Head.DUAL_ENCODER).pooling,
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
        "examples of similar length together" if find(Head.TAGGING).group_by_length else "shuffled"
    ),
}


@pytest.fixture(scope="module")
def find(catalog: Catalog) -> Callable[..., TrainingSettings]:
    """Return the settings of a recipe for a head, the layers of a model, and a stage."""

    def found(recipe: str, head: Head, layers: int = 12, stage: str = "any") -> TrainingSettings:
        model = ModelDescription(adapter="any", ref="any", offers=frozenset(), layers=layers)
        return resolve_settings(catalog.recipe(recipe), head, stage, model)

    return found


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_numbers(recipe: str, find: Find) -> None:
    rows = table_rows(page("docs/recipes.md"))
    cells = {row: rows[row][RECIPES.index(recipe)] for row in RECIPE_ROWS}
    assert cells == {row: show(partial(find, recipe)) for row, show in RECIPE_ROWS.items()}


def test_recipe_prose_numbers(catalog: Catalog, find: Find) -> None:
    scripts, paper, quick = ({head: find(name, head) for head in Head} for name in RECIPES)
    span, label, tag = Head.SPAN_EXTRACTION, Head.CLASSIFICATION, Head.TAGGING
    dual = Head.DUAL_ENCODER
    assert {settings.batch_size for head, settings in scripts.items() if head is not dual} == {32}
    assert scripts[dual].batch_size == 4
    assert [find("xtreme_r", dual, layers, "mewsli_x_pairs").batch_size for layers in (12, 24)] == [64, 8]
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
    mewsli = [find(name, dual, 12, "mewsli_x_pairs") for name in RECIPES[:2]]
    assert {(settings.max_query_length, settings.max_length) for settings in mewsli} == {(64, 64)}
    assert [settings.epochs for settings in mewsli] == [2, 2]
    assert find("xtreme_r", dual, 24, "mewsli_x_pairs").learning_rate == 1e-5
    assert not scripts[Head.MULTIPLE_CHOICE].select_best
    assert quick[Head.TEXT_TO_TEXT].batch_size == 16
    everywhere = [*scripts.values(), *paper.values(), *quick.values()]
    assert {(settings.adam_epsilon, settings.max_grad_norm) for settings in everywhere} == {(1e-8, 1.0)}
    assert {catalog.recipe(name).large_layers for name in RECIPES} == {24}


LOW_RANK_ROWS: Mapping[str, Callable[[TrainingSettings], str]] = {
    "`lora_rank`, `lora_alpha`, `lora_dropout`": lambda one: (
        f"{one.lora_rank}, {one.lora_alpha}, {one.lora_dropout}"
    ),
    "layers": lambda one: ", ".join(one.lora_targets) or "all linear ones",
    "frozen weights": lambda one: {None: "as they are", "nf4": "4 bits (NF4, double quantisation)"}[
        one.quantize
    ],
    "learning rate, schedule": lambda one: (
        f"{one.learning_rate:.0e}".replace("e-0", "e-") + f", {one.lr_schedule}"
    ),
    "warm-up": lambda one: f"{100 * one.warmup_share:.0f} % of the steps",
    "gradient norm": lambda one: f"{one.max_grad_norm:g}",
    "epochs": lambda one: f"{one.epochs:g}",
}


@pytest.mark.parametrize("column", [0, 1])
def test_numbers_of_low_rank_recipes(column: int, find: Find) -> None:
    name = ("lora", "qlora")[column]
    rows = table_rows(page("docs/train-large-models.md"))
    found = {head: find(name, head) for head in Head}
    for row, show in LOW_RANK_ROWS.items():
        assert {show(settings) for settings in found.values()} == {rows[row][column]}, row
    sizes = {head: settings.batch_size for head, settings in found.items()}
    others = (Head.SPAN_EXTRACTION, Head.DUAL_ENCODER, Head.TEXT_TO_TEXT)
    assert rows["batch"][column] == ("32; other heads 16" if name == "lora" else "16")
    assert sizes == {head: 32 if name == "lora" and head not in others else 16 for head in Head}


def test_every_setting_of_a_recipe_is_named() -> None:
    keys = re.sub(
        r" \(.+?\)", "", page("docs/recipes.md").rpartition("Keys:")[2].partition("\n\n")[0], flags=re.DOTALL
    )
    assert set(re.findall(r"`(\w+)`", keys)) == set(TrainingSettings.__slots__)


TEXT_ROWS: Mapping[str, Callable[[TrainingSettings], str]] = {
    "learning rate, schedule": lambda found: f"{rate(found.learning_rate)}, {found.lr_schedule}",
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


def test_recipe_numbers_of_text_pairs(find: Find) -> None:
    rows = table_rows(page("docs/recipes.md").partition("`text_to_text`:")[2].partition("\n## ")[0])
    for place, recipe in enumerate(("mt5", "quick")):
        found = find(recipe, Head.TEXT_TO_TEXT)
        assert found.select_best
        assert {row: rows[row][place] for row in TEXT_ROWS} == {
            row: show(found) for row, show in TEXT_ROWS.items()
        }


def test_the_table_of_tasks_is_that_of_the_specs(catalog: Catalog) -> None:
    """Write it anew with python -m docs_site.task_table."""
    text = page("docs/tasks.md")
    assert replaced(text, task_table(catalog)) == text
    rows = table_rows(text)
    assert [re.findall(r"`(\w+)`", name)[0] for name in rows if "`" in name] == catalog.names("task")
    assert rows["[`xnli`](benchmarks/xnli.md)"][::2] == [
        "`sequence_classification`",
        "738 to 5,010",
        "`mnli`",
    ]
    assert rows["[`tatoeba`](benchmarks/tatoeba.md)"][1:4] == ["41", "205 to 1,000", "files, Hub"]
    assert rows["[`lareqa`](benchmarks/lareqa.md)"][3] == "files, web"
    suite = table_rows(page("docs/xtreme-r.md"))
    assert {f"`{task}`" for task in catalog.suite("xtreme_r").tasks} <= suite.keys()


def test_numbers_of_languages_in_the_index_are_those_of_the_tasks(catalog: Catalog) -> None:
    counts: dict[str, set[str]] = {}
    for name, cells in table_rows(task_table(catalog)).items():
        for file in re.findall(r"\((benchmarks/[\w-]+\.md)\)", name):
            counts.setdefault(file, set()).update(re.findall(r"\d+", cells[1]))
    entries = re.findall(r"^- .*?\((benchmarks/.*?)\): (.*)$", page("docs/README.md"), flags=re.MULTILINE)
    numbers = [(file, found) for file, text in entries for found in re.findall(r"(?<![\w-])\d+\b", text)]
    assert len(numbers) > 20
    assert [(file, number) for file, number in numbers if number not in counts[file]] == []


@pytest.mark.parametrize(
    ("name", "heading", "least"),
    [("first-run", "Real data", 10), ("xtreme-r", "Where the data come from", 18)],
)
def test_layout_of_data_folders_is_that_of_the_specs(
    catalog: Catalog, name: str, heading: str, least: int
) -> None:
    tasks = [catalog.task(task).spec for task in catalog.names("task")]
    specs = [*tasks, *(catalog.training(training)[0] for training in catalog.names("training"))]
    sources = [spec.source(code, split) for spec in specs for code in spec.languages for split in SPLITS]
    sources += [spec.pool_source for spec in tasks]
    paths = {path for source in sources if source for files in source.alternatives for path in files.paths}
    text = page(f"docs/{name}.md").partition(f"## {heading}")[2].partition("```")[0]
    shown = [path for path in re.findall(r"`([^`\s]+/[^`\s]+\.[^`\s]+)`", text) if not path.startswith("~")]
    assert len(shown) >= least
    assert [path for path in shown if path not in paths] == []


def test_readers_and_kinds_are_those_that_exist(registry: Registry) -> None:
    text = page("docs/add-a-task.md")
    assert all(f"`{name}`" in text for name in registry.readers.names)
    assert all(f"`{name}`" in text for name in registry.kinds.names)
    rows = " ".join(table_rows(page("docs/add-a-metric.md")))
    written = {name for name in registry.kinds.names if not name.startswith(("lm_eval_", "judgement"))}
    assert {name for name in written if f"`{name}`" not in rows} == set()


def test_changelog_entries_are_one_short_sentence() -> None:
    entries = re.findall(r"^- (.+)$", page("CHANGELOG.md"), flags=re.MULTILINE)
    assert entries
    assert len(set(entries)) == len(entries)
    assert len(page("CHANGELOG.md").splitlines()) <= LONGEST_CHANGELOG
    for entry in entries:
        assert entry.endswith("."), entry
        assert len(entry.split()) <= LONGEST_ENTRY, entry
