"""Boards for the tests, and a browser where one is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.running.session import open_session
from harness.specs.catalog import Catalog
from harness.storage.run_folder import Run
from harness_board.document import Board, Score, System, TaskColumn
from harness_board.gathering import gather
from harness_board.repository_entry import RepositoryEntry
from harness_board.repository_runs import Allowed, entry_of

HOSTILE = "<img src=x onerror=\"document.title='broken'\"></script><script>document.title='broken'</script>"
ROWS = "text,sentiment,lang\n" + "".join(
    f"{text} {number},{label},{language}\n"
    for language, texts in {
        "English": ("I love it", "I hate it"),
        "Swahili": ("Ninaipenda it", "Ilivunjika it"),
    }.items()
    for number in range(6)
    for text, label in zip(texts, ("positive", "negative"), strict=True)
)
OVERRIDE = "safe\u202egnp.exe\u0000"


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return open_session().catalog


@pytest.fixture(scope="session")
def published(catalog: Catalog) -> Board:
    """The board of the shipped published scores."""
    return gather(published="xtreme_r", catalog=catalog, means={"accuracy", "f1", "exact_match", "map_at_20"})


@pytest.fixture(scope="session")
def hostile() -> Board:
    """A board whose texts try to become markup, with errors and a diagnosis."""
    systems = tuple(
        System(
            label=label,
            origin="run",
            protocol="zero_shot_transfer",
            year=2020 + index,
            scores=tuple(
                Score(
                    task=task,
                    metric="accuracy",
                    mean=60.0 + 4 * index,
                    se=1.0,
                    by_language={"en": 70.0 + index, "sw": 50.0 + 7 * index},
                    se_by_language={"en": 1.0, "sw": 2.0},
                    note=HOSTILE if index == 0 else "",
                )
                for task in ("xnli", "xcopa")
            ),
            metadata={"parameters": 10**8 * (index + 1), "paper": HOSTILE},
        )
        for index, label in enumerate((HOSTILE, OVERRIDE, "plain"))
    )
    return Board(
        title=f"Board {HOSTILE}",
        tasks=tuple(
            TaskColumn(
                task=task, metrics=("accuracy",), headline=("accuracy",), languages=("en", "sw"), source="en"
            )
            for task in ("xnli", "xcopa")
        ),
        systems=systems,
        languages={
            "en": {"name": "English", "family": "Indo-European", "script": "Latn"},
            "sw": {"name": "Swahili", "family": "Niger-Congo", "script": "Latn"},
        },
        diagnosis=_diagnosis(),
        examples={"xnli/sw/1": _example()},
    )


def _diagnosis() -> tuple[dict[str, Any], ...]:
    shared: dict[str, Any] = {
        "task": "xnli",
        "language": "sw",
        "attribute": "length",
        "metric": "accuracy",
        "q": None,
    }
    single = [
        {**shared, "kind": "single", "system": "plain", "bucket": bucket, "n": n, "value": value,
         "ci": [value - 0.1, value + 0.1], "examples": ["xnli/sw/1"]}
        for bucket, n, value in (("XS", 20, 0.5), ("XL", 40, 0.3))
    ]  # fmt: skip
    pairwise = [
        {**shared, "kind": "pairwise", "systems": ["plain", HOSTILE], "bucket": "XS", "n": 20, "value": None,
         "values": [0.5, 0.6], "difference": -0.1, "ci": [-0.2, 0.0], "p": 0.04, "q": 0.08, "examples": []}
    ]  # fmt: skip
    bias = [{**shared, "kind": "data", "bucket": HOSTILE, "n": 7, "value": None, "examples": []}]
    return (*single, *pairwise, *bias)


def _example() -> dict[str, Any]:
    return {
        "id": "1",
        "language": "sw",
        "inputs": {"premise": HOSTILE, "hypothesis": OVERRIDE, "context": "neno " * 20_000},
        "reference": "entailment",
        "predictions": {"plain": "شيء ما", HOSTILE: HOSTILE},
    }


@pytest.fixture(scope="session")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """What evaluates baselines on a small task of its own, whose data are no sample."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "reviews.csv").write_text(ROWS, encoding="utf-8")
    (folder / "train.csv").write_text(ROWS.replace(" it", " them"), encoding="utf-8")
    row = {"columns": {"text": "text", "label": "sentiment"}, "where": {"lang": "{called}"}}
    spec = {
        "task": "mood",
        "kind": "sequence_classification",
        "version": 1,
        "inputs": ["text"],
        "labels": ["positive", "negative"],
        "metrics": ["accuracy"],
        "splits": {"train": {"local": "train.csv", **row}, "test": {"local": "reviews.csv", **row}},
        "transfer": {"source": "en", "stages": ["mood"], "recipe": "quick"},
        "languages": {"en": {"codes": {"called": "English"}}, "sw": {"codes": {"called": "Swahili"}}},
    }
    (folder / "mood.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    numbers = iter(range(1000))

    def evaluated(model: str = "baseline:random", tasks: str = "mood", **settings: Any) -> Run:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HARNESS_CACHE", str(folder / "cache"))
            given = {"data": str(folder), "tasks_from": [folder / "mood.yaml"], **settings}
            return harness.evaluate(tasks, model, output=folder / f"run-{next(numbers)}", **given)

    return evaluated


@pytest.fixture(scope="session")
def whole(evaluate: Callable[..., Run]) -> Run:
    return evaluate()


@pytest.fixture
def entry(whole: Run) -> RepositoryEntry:
    return entry_of(whole, "mood", allowed=Allowed())


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Write a page and open it from its file; fails on errors of the console and on any request."""
    faults: list[str] = []
    contexts: list[Any] = []

    def opened(html: str, address: str = "", **options: Any) -> Any:
        path = tmp_path / "board.html"
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: faults.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda request: (
                faults.append(f"request {request.url}")
                if not request.url.startswith((path.as_uri(), "blob:"))
                else None
            ),
        )
        page.goto(path.as_uri() + address)
        if options.get("java_script_enabled", True):
            assert page.evaluate("Boolean(harnessBoard.shown())"), "modules run before a page has loaded"
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []
