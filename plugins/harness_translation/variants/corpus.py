"""The translated splits of a command: their workload, translation, guards and reference scores; and their data set.

The data set on disk is JSON lines for the reader `jsonl`, and a card that describes how they were made.
"""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness import HarnessError, MissingDataError, Progress, UsageError, near_names, open_session
from harness.checks import check_task
from harness.data import (
    DataFinder,
    FoundData,
    GuardReport,
    LostAnswers,
    Origin,
    Row,
    TextChange,
    find_split,
    guard_translations,
)
from harness.planning import (
    MACHINE_VARIANTS,
    EvaluatedSplit,
    RunConfig,
    TrainVariants,
    VariantPlanner,
    data_options,
    evaluated_on,
)
from harness.running import Session
from harness.specs import SelectedTask, TaskEntry, TaskSpec, TrainingSpec, select, source_language
from harness.storage import cache_folder, write_atomically

SHOWN = 1
LONG = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSplit:
    """The test items of one task, or a training set, in one language and variant by one translator."""

    spec: TaskSpec | TrainingSpec
    language: str
    variant: str
    found: FoundData
    entry: TaskEntry | None = None
    """The task of test items; None for a training set."""

    @property
    def owner(self) -> str:
        """The task or training set."""
        return self.found.ref.owner

    @property
    def name(self) -> str:
        """``xnli/tt-nllb/sw``: safe as a path."""
        return f"{self.owner}/{self.variant}-{_path_name(_change(self).translator)}/{self.language}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """Which training sets are translated instead of test items: the values of the options of ``harness eval``."""

    variant: str
    pivot: str
    limit: int | None = None


@dataclass
class Corpus:
    """All splits of one command."""

    session: Session
    finder: DataFinder
    splits: list[TranslatedSplit] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    reports: dict[tuple[str, str, str], GuardReport] = field(default_factory=dict)
    """Findings of the guards, by translator, source and target."""

    def workloads(self) -> list[dict[str, Any]]:
        """Return calls and characters, one row per translator and pair."""
        return self.finder.translations.workload(
            [(_change(split), self.finder.rows_before(split.found)) for split in self.splits]
        )

    def translate(self, progress: Progress) -> list[dict[str, Any]]:
        """Translate everything that is not in the store; return one row per split."""
        self.finder.translate([split.found for split in self.splits], progress)
        self.reports = guard_translations(self.finder.translations)
        return [self._row(split) for split in self.splits]

    def _row(self, split: TranslatedSplit) -> dict[str, Any]:
        change, after = _change(split), self.rows(split)
        return {
            "task": split.owner,
            "language": split.language,
            "variant": split.variant,
            "translator": change.translator,
            "chain": " ".join(change.to_json()["steps"]),
            "items": len(after),
            "lost": None if (lost := self._lost(split)) is None else lost.lost,
            "chrf++": self._reference_score(split, after),
        }

    def _lost(self, split: TranslatedSplit) -> LostAnswers | None:
        return self.finder.translations.lost.get((split.owner, _change(split)))

    def guards(self) -> list[dict[str, Any]]:
        """Return one row per translator and pair: the number of segments, and of faults by guard."""
        return [{"translator": name, **report.to_json()} for (name, _, _), report in self.reports.items()]

    def romanised(self) -> list[dict[str, Any]]:
        """Return one row per romanised text: its language, the text, and the text that is translated instead."""
        return [
            {"language": romanisation.language, "text": text, "changed": changed}
            for romanisation in self.finder.translations.romanised.values()
            for text, changed in romanisation.changed.items()
        ]

    @property
    def found(self) -> int:
        """The number of faults that the guards found."""
        return sum(report.found for report in self.reports.values())

    def examples(self) -> Iterator[str]:
        """Yield one line for each of the first faults of every guard."""
        for (name, source, target), report in self.reports.items():
            for guard, pairs in report.examples.items():
                for before, after in pairs[:SHOWN]:
                    yield f"{name} {source}->{target} {guard}: {_short(before)} => {_short(after)}"

    def rows(self, split: TranslatedSplit) -> list[Row]:
        """Return the translated rows of a split."""
        return list(self.finder.rows(split.found))

    def _reference_score(self, split: TranslatedSplit, after: Sequence[Row]) -> float | None:
        """Return chrF++ against the human text in the language that a variant ends in; None without it."""
        if split.entry is None:
            return None
        spec = split.entry.spec
        assert spec.translate is not None
        end = _change(split).steps[-1][1]
        source = spec.source(end, "test") or (spec.translate.source if end == source_language(spec) else None)
        if source is None:
            return None
        try:
            import sacrebleu

            folder = split.entry.folders.get(end) or next(iter(split.entry.folders.values()), None)
            reference = find_split(
                self.finder, source, spec.task, split.entry.languages.get(end), "test", folder
            )
            human = {
                str(row.fields.get("id", number)): row
                for number, row in enumerate(self.finder.rows(reference), start=1)
            }
        except (ImportError, HarnessError):
            return None
        pairs = [
            (str(row.fields[name]), str(human[key].fields.get(name, "")))
            for row in after
            for name in spec.translate.fields
            if (key := str(row.fields["id"])) in human
        ]
        if not pairs:
            return None
        score = sacrebleu.CHRF(word_order=2).corpus_score(
            [text for text, _ in pairs], [[text for _, text in pairs]]
        )
        return float(score.score)


def gather_corpora(
    tasks: Sequence[str],
    translators: Sequence[str],
    *,
    languages: Sequence[str] | None,
    variants: Sequence[str],
    data: Sequence[str],
    tasks_from: Sequence[Path] = (),
    limit: int | None = None,
    romanised: str = "keep",
    split: EvaluatedSplit = "test",
    train: TrainingRequest | None = None,
) -> Corpus:
    """Return the splits that tasks, languages, variants and translators name, and why others are skipped.

    With `train`, they are the training sets of all stages of the tasks, in its variant.

    Raises `UsageError` for an unknown name, and if no split is left.
    """
    for name in variants:
        if name not in MACHINE_VARIANTS:
            near = near_names(name, MACHINE_VARIANTS)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"The variant {name!r} is not made by translation; expected tt, te or bt.{meant}"
            )
    session = open_session(tasks_from)
    finder = DataFinder(data_options(list(data)), session.registry, cache_folder() / "data")
    planner = VariantPlanner(
        () if train else variants,
        translators,
        session.registry,
        finder,
        limit=limit,
        romanised=romanised,
        split=split,
    )
    corpus = Corpus(session=session, finder=finder)
    chosen = select(session.catalog, tasks, languages)
    if train is not None:
        _add_training_sets(corpus, chosen, translators, train)
    else:
        _add_test_items(corpus, chosen, planner, split)
    corpus.skipped = list(dict.fromkeys(corpus.skipped))
    if not corpus.splits:
        reasons = " ".join(corpus.skipped)
        raise UsageError(f"Nothing is left to translate. {reasons}")
    return corpus


def _add_test_items(
    made: Corpus, chosen: Sequence[SelectedTask], planner: VariantPlanner, split: EvaluatedSplit
) -> None:
    """Add every version of the tasks' items that a translator makes, and why others are skipped."""
    for selected in chosen:
        check_task(selected.entry, made.session.registry, made.session.catalog)
        entry = evaluated_on(selected.entry, split)
        conditions: Mapping[str, str] = dict.fromkeys(entry.spec.axes, "")
        for code, (variant, translator) in itertools.product(
            selected.languages, list(planner.translations())
        ):
            try:
                split_data = planner.plan(entry, code, variant, translator, conditions).found
            except MissingDataError as error:
                made.skipped.append(f"{entry.spec.task}:{code} {variant}: {error}")
                continue
            made.splits.append(
                TranslatedSplit(
                    spec=entry.spec, language=code, variant=variant, found=split_data, entry=entry
                )
            )


def _add_training_sets(
    made: Corpus, chosen: Sequence[SelectedTask], translators: Sequence[str], train: TrainingRequest
) -> None:
    """Add the translated parts of every training set that the tasks are trained on, each once."""
    stages = {
        name: source_language(selected.entry.spec)
        for selected in chosen
        if selected.entry.spec.transfer is not None
        for name in selected.entry.spec.transfer.stages
    }
    for reference in (part for value in translators for part in value.split(",")):
        variants = TrainVariants(
            RunConfig(
                tasks=tuple(stages),
                model="",
                translators=(reference,),
                train_variant=train.variant,
                train_pivot=train.pivot,
                train_limit=train.limit,
            ),
            made.session.registry,
        )
        for name, code in stages.items():
            origin = Origin.named(name, made.session.catalog)
            try:
                splits = variants.parts(
                    name,
                    [(code, origin.find(made.finder, code, "train"))],
                    origin.spec.translate,
                    "zero_shot_transfer",
                    (),
                    origin.train_finder(made.finder),
                )
            except MissingDataError as error:
                made.skipped.append(f"{name}:{code} {train.variant}: {error}")
                continue
            made.splits += [
                TranslatedSplit(spec=origin.spec, language=language, variant=train.variant, found=split_data)
                for language, split_data in splits
                if split_data.change is not None
            ]


def _path_name(name: str) -> str:
    """Return a translator's name as a part of a path."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip(".-") or "translator"


def _change(split: TranslatedSplit) -> TextChange:
    assert split.found.change is not None
    return split.found.change


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= LONG else plain[: LONG - 3] + "...")


def check_output_folder(folder: Path | None) -> None:
    """Raise `UsageError` unless the folder is new or empty."""
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{str(folder)!r} is not an empty folder.", hint="Give a new one with --output.")


def write_dataset(corpus: Corpus, folder: Path) -> int:
    """Write every split and ``card.json``; return the number of files. Raises `UsageError`."""
    try:
        for split in corpus.splits:
            path = folder / f"{split.name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps(_record(row, split), ensure_ascii=False) for row in corpus.rows(split)]
            write_atomically(path, "\n".join(lines) + "\n")
        romanised = corpus.romanised()
        if romanised:
            lines = [json.dumps(row, ensure_ascii=False) for row in romanised]
            write_atomically(folder / "romanised.jsonl", "\n".join(lines) + "\n")
        tables = [_write_table(name, pairs, folder) for name, pairs in _segments(corpus).items()]
        card = json.dumps(_card(corpus, tables), ensure_ascii=False, indent=1)
        write_atomically(folder / "card.json", card + "\n")
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
    return len(corpus.splits) + len(tables) + 1 + bool(romanised)


def _segments(corpus: Corpus) -> dict[str, list[dict[str, str]]]:
    """Return every segment with its translation, by translator, as the translator ``file`` reads them."""
    tables: dict[str, list[dict[str, str]]] = {}
    for (name, source, target), segments in corpus.finder.translations.seen.items():
        tables.setdefault(name, []).extend(
            {"source": source, "target": target, "text": text, "translation": segment.text}
            for text, segment in segments.items()
        )
    return tables


def _write_table(name: str, lines: list[dict[str, str]], folder: Path) -> str:
    """Write the segments of a translator; return the value of ``--translator`` that reads them."""
    path = folder / f"translations-{_path_name(name)}.jsonl"
    write_atomically(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return f"{_path_name(name)}=file:{path.name}"


def _record(row: Row, split: TranslatedSplit) -> dict[str, Any]:
    record = {name: value for name, value in row.fields.items() if value is not None}
    if isinstance(record.get("label"), str | int):
        raw = str(record["label"])
        record["label"] = split.found.label_map.get(raw, raw)
    return record


def _card(corpus: Corpus, tables: list[str]) -> dict[str, Any]:
    try:
        harness_version = version("multilingual-harness")
    except PackageNotFoundError:
        harness_version = None
    splits = []
    for split in corpus.splits:
        spec, change = split.spec, split.found.change
        assert change is not None
        splits.append(
            {
                "file": f"{split.name}.jsonl",
                "task": split.owner,
                "language": split.language,
                "variant": split.variant,
                "licence of the source": spec.license,
                "source": split.found.to_json(),
                "chain": corpus.finder.translations.infos(change),
            }
        )
    return {
        "schema": 1,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "harness": harness_version,
        "translator": tables,
        "splits": splits,
        "guards": corpus.guards(),
        "romanised": len(corpus.romanised()),
    }
