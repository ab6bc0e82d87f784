"""Checks of a spec beyond its schema: unknown names, and labels that do not exist."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from string import Formatter
from typing import TYPE_CHECKING

from harness.checks.prompt_checks import word_problems
from harness.data.readers.reader import reader_advice
from harness.data.resolve import check_relative
from harness.data.sources import columns_option, with_conditions
from harness.errors import DataError, HarnessError, Problem, SpecError, UnknownNameError, UsageError
from harness.languages.table import CODE_NAMES, LanguageTable, known_languages
from harness.specs.documents import PublishedSpec, SystemScores
from harness.specs.schema import (
    SPLITS,
    HubSource,
    LocalSource,
    Source,
    SuiteSpec,
    TaskSpec,
    TrainingSpec,
    WebSource,
)
from harness.specs.task_entry import DESCRIBING, described_languages

if TYPE_CHECKING:
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog
    from harness.specs.loading import Document
    from harness.specs.task_entry import TaskEntry

KeyPath = tuple[str | int, ...]
PRINTED_CONDITIONS = ("variant", "train_variant", "train_pivot")
"""What published scores may name besides the axes of their tasks."""
Found = tuple[KeyPath, str]
"""Where a problem stands, and what it is."""
Part = Source | LocalSource | HubSource | WebSource


def check_task(entry: TaskEntry, registry: Registry, catalog: Catalog) -> None:
    """Raise `SpecError` with all problems of a task whose schema is right, or of a fragment that extends it."""
    for document, problems in document_problems(entry, registry, catalog):
        raise SpecError(document.source, problems)


def task_problems(
    entry: TaskEntry, registry: Registry, catalog: Catalog, *, document: Document | None = None
) -> list[Problem]:
    """Return the problems of a task's document, or of a fragment's: unknown names, labels, double names."""
    chosen = entry.document if document is None else document
    by_document = document_problems(entry, registry, catalog)
    return [problem for document, problems in by_document if document is chosen for problem in problems]


def document_problems(
    entry: TaskEntry, registry: Registry, catalog: Catalog
) -> list[tuple[Document, list[Problem]]]:
    """Return the documents of a task that have problems, its own and those of fragments, each with its problems."""
    spec = entry.spec
    faults = [
        *_names(spec, registry, catalog),
        *_languages(spec, entry.languages),
        *_codes(spec),
        *_metric_languages(spec, registry),
        *_sources(spec, registry),
        *_conditions(spec),
    ]
    pairs = []
    for document in entry.documents:
        problems = _problems([item for item in faults if _document_at(item[0], entry) is document], document)
        if entry.words:
            problems += word_problems(entry, registry, catalog, document=document)
        if problems:
            pairs.append((document, problems))
    return pairs


def check_training(spec: TrainingSpec, document: Document, registry: Registry) -> None:
    """Raise `SpecError` with all problems of a training set whose schema is right."""
    problems = training_problems(spec, document, registry)
    if problems:
        raise SpecError(document.source, problems)


def training_problems(spec: TrainingSpec, document: Document, registry: Registry) -> list[Problem]:
    """Return the problems of a training set: unknown kind, readers and labels, double names."""
    languages = described_languages(spec)
    faults = [*_repeated(spec), *_languages(spec, languages), *_codes(spec), *_sources(spec, registry)]
    if spec.kind not in registry.kinds:
        faults.append((("kind",), str(UnknownNameError("task kind", spec.kind, registry.kinds.names))))
    return _problems(faults, document)


def suite_problems(spec: SuiteSpec, document: Document, catalog: Catalog) -> list[Problem]:
    """Return the problems of a suite: unknown tasks, and tasks that are not in one category each."""
    tasks = catalog.names("task")
    faults: list[Found] = [
        (("tasks", index), str(UnknownNameError("task", name, tasks)))
        for index, name in enumerate(spec.tasks)
        if name not in tasks
    ]
    members = [name for names in spec.categories.values() for name in names]
    for index, name in enumerate(spec.tasks):
        if name in spec.tasks[:index]:
            faults.append((("tasks", index), f"{name!r} is given twice"))
        if members and members.count(name) != 1:
            count = members.count(name)
            faults.append((("categories",), f"{name!r} is in {count} categories; expected each task in one"))
    axes = {
        "language": (spec.languages, catalog.languages_of),
        "metric": (spec.metrics, lambda name: catalog.entry("task", name).document.texts("metrics")),
    }
    for axis, (table, owned) in axes.items():
        for name, values in table.items():
            allowed = owned(name) if name in tasks else values
            faults += [
                ((f"{axis}s", name), str(UnknownNameError(f"{axis} of {name!r}", value, allowed)))
                for value in values
                if value not in allowed
            ]
    return _problems(faults, document)


def published_problems(
    spec: PublishedSpec, document: Document, registry: Registry, catalog: Catalog
) -> list[Problem]:
    """Return the problems of published scores: an unknown suite, task, metric or language."""
    if spec.suite is not None and spec.suite not in catalog.names("suite"):
        unknown = UnknownNameError("suite", spec.suite, catalog.names("suite"))
        return _problems([(("suite",), str(unknown))], document)
    faults = [*_unknown_scores((), spec, spec.suite, registry, catalog)]
    for label, system in spec.systems.items():
        faults += _unknown_scores(("systems", label), system, spec.suite, registry, catalog)
    return _problems(faults, document)


def _unknown_scores(
    place: tuple[str, ...], system: SystemScores, suite: str | None, registry: Registry, catalog: Catalog
) -> Iterator[Found]:
    """Yield the tasks, metrics, conditions and languages of one system's scores that are not known.

    A report that a suite's scores are taken from may have further tasks, which are shown where a run has them.
    """
    installed = set(catalog.names("task"))
    sort, tasks = (
        ("task", installed) if suite is None else (f"task of the suite {suite!r}", catalog.suite(suite).tasks)
    )
    for task, scores in system.scores.items():
        if task not in tasks and task not in installed:
            yield (*place, "scores", task), str(UnknownNameError(sort, task, tasks))
        for metric in scores:
            if metric not in registry.metrics:
                unknown = UnknownNameError("metric", metric, registry.metrics.names)
                yield (*place, "scores", task, metric), str(unknown)
    yield from _too_low(place, system, registry)
    for task, view in system.views.items():
        conditions = [*PRINTED_CONDITIONS, *(catalog.task(task).spec.axes if task in installed else ())]
        for name in view:
            if name not in conditions:
                yield (*place, "views", task, name), str(UnknownNameError("condition", name, conditions))
    for task, tables in system.languages.items():
        codes = catalog.languages_of(task) if task in installed else []
        for metric, table in tables.items():
            for code in table:
                if codes and code not in codes:
                    unknown = UnknownNameError(f"language of {task!r}", code, codes)
                    message = known_languages().meant_by(code) or str(unknown)
                    yield (*place, "languages", task, metric, code), message


def _too_low(place: tuple[str, ...], system: SystemScores, registry: Registry) -> Iterator[Found]:
    """Yield the scores and scores by language that are lower than their metric can be."""
    for task, scores in system.scores.items():
        for metric in registry.metrics.names & scores.keys():
            lowest = 100 * registry.metrics.get(metric).lowest
            table = system.languages.get(task, {}).get(metric, {})
            values: dict[tuple[str, ...], float] = {("scores", task, metric): scores[metric]}
            values |= {("languages", task, metric, code): value for code, value in table.items()}
            for path, value in values.items():
                if value < lowest:
                    yield (*place, *path), f"must be at least {lowest:g}, got {value:g}"


def _document_at(path: KeyPath, entry: TaskEntry) -> Document:
    return entry.document_of(str(path[1])) if path[0] == "languages" else entry.document


def _problems(found: Iterable[Found], document: Document) -> list[Problem]:
    problems = [
        Problem(message=message, key=".".join(map(str, path)), line=document.line_of(path))
        for path, message in found
    ]
    return sorted(problems, key=lambda problem: problem.line or 0)


def _names(spec: TaskSpec, registry: Registry, catalog: Catalog) -> Iterator[Found]:
    yield from _repeated(spec)
    for index, name in enumerate(spec.metrics):
        try:
            metric = registry.metrics.get(name)
        except HarnessError as error:
            yield ("metrics", index), str(error)
            continue
        if spec.kind in registry.kinds and spec.kind not in metric.kinds:
            kinds = ", ".join(sorted(metric.kinds))
            yield ("metrics", index), f"the metric {name!r} scores {kinds}, and this task is {spec.kind}"
    yield from _metric_options(spec, registry)
    if spec.transfer is None:
        return
    stages = [*catalog.names("training"), *catalog.names("task"), spec.task]
    for index, name in enumerate(spec.transfer.stages):
        if name not in stages:
            yield ("transfer", "stages", index), str(UnknownNameError("training set", name, stages))
    if spec.transfer.recipe not in catalog.names("recipe"):
        unknown = UnknownNameError("recipe", spec.transfer.recipe, catalog.names("recipe"))
        yield ("transfer", "recipe"), str(unknown)


def _metric_options(spec: TaskSpec, registry: Registry) -> Iterator[Found]:
    # Any registered metric, not the task's alone: finished runs are scored with further ones.
    metrics = [*registry.metrics, *(registry.metrics.get(name) for name in spec.metrics if ":" in name)]
    for key in spec.metric_options:
        if not any(metric.takes_option(key) for metric in metrics):
            options = {option for metric in metrics for option in metric.options}
            yield ("metric_options", key), str(UnknownNameError("option of a metric", key, options))


def _repeated(spec: TaskSpec | TrainingSpec) -> Iterator[Found]:
    for key in ("inputs", "labels", "metrics"):
        names: Sequence[str] = getattr(spec, key, ())
        for index, name in enumerate(names):
            if name in names[:index]:
                yield (key, index), f"{name!r} is given twice"


def _languages(spec: TaskSpec | TrainingSpec, table: LanguageTable) -> Iterator[Found]:
    listed = known_languages().listed
    for code, entry in spec.languages.items():
        if code not in table:
            yield ("languages", code), _unknown_language(code, table)
        elif not table.get(code).is_whole:
            message = f"the script or family of {code!r} is not in the language table, so the entry needs "
            yield ("languages", code), f"{message}'name', 'script' and 'family'"
        elif code in listed and entry is not None:
            language = listed.get(code)
            for key in DESCRIBING:
                stated, expected = getattr(entry, key), getattr(language, key)
                if stated is not None and expected and stated != expected:
                    message = (
                        f"the language table says {expected!r} for {code!r}, found {stated!r}; omit the key"
                    )
                    yield ("languages", code, key), message


def _metric_languages(spec: TaskSpec, registry: Registry) -> Iterator[Found]:
    metrics = [metric for metric in registry.metrics if metric.name in spec.metrics]
    for metric, code in itertools.product(metrics, spec.languages):
        if not metric.scores_language(code, spec.metric_options):
            has = " ".join(metric.languages)
            yield ("languages", code), f"the metric {metric.name!r} has no rules for {code!r}, only for {has}"


def _unknown_language(code: str, table: LanguageTable) -> str:
    return table.meant_by(code) or (
        f"the language table has no {code!r}, so the entry needs 'name', 'script' and 'family'; "
        "'harness languages' shows the known codes"
    )


def _sources(spec: TaskSpec | TrainingSpec, registry: Registry) -> Iterator[Found]:
    sources: list[tuple[KeyPath, Source]] = [
        (("splits", split), source) for split, source in spec.splits.items()
    ]
    for code, language in spec.languages.items():
        splits = [] if language is None else [name for name in SPLITS if name in language.model_fields_set]
        for split in splits:
            source = spec.source(code, split)
            if source is not None:
                sources.append((("languages", code, split), source))
    if isinstance(spec, TaskSpec):
        sources += _further_sources(spec)
    for path, source in sources:
        # What a language's source has from the split is reported there.
        keys = source.model_fields_set if path[0] != "languages" else _given(spec, path)
        for where, message in _source_faults(path, source, spec, registry):
            if where == path or where[len(path)] in keys:
                yield where, message


def _given(spec: TaskSpec | TrainingSpec, path: KeyPath) -> set[str]:
    _, code, split = path
    source: Source = getattr(spec.languages[str(code)], str(split))
    return source.model_fields_set


def _source_faults(
    path: KeyPath, source: Source, spec: TaskSpec | TrainingSpec, registry: Registry
) -> Iterator[Found]:
    yield from _outside(path, source)
    yield from _braces(path, source, spec)
    yield from _unfit(path, source, registry)
    for where, section in _parts(path, source):
        yield from _reader(where, section, source, registry)
        yield from _labels(where, section, spec.label_names)
        yield from _served(where, section, spec)


def _outside(path: KeyPath, source: Source) -> Iterator[Found]:
    """Yield the paths that would leave the data folder, or the folder of samples."""
    sample = LocalSource(path=source.sample) if isinstance(source.sample, str) else source.sample
    groups = [("local", alternative.paths) for alternative in source.alternatives]
    if source.web is not None and source.web.member:
        groups.append(("web", source.web.paths))
    for key, paths in [*groups, ("sample", () if sample is None else sample.paths)]:
        for name in paths:
            try:
                check_relative(name)
            except DataError as error:
                yield (*path, key), error.message


def _codes(spec: TaskSpec | TrainingSpec) -> Iterator[Found]:
    """Yield codes of languages that the document does not have, and braces in them that no column fills."""
    templates: list[tuple[KeyPath, str]] = [
        (("codes", name, code), text) for name, table in spec.codes.items() for code, text in table.items()
    ]
    templates += [
        (("languages", code, "codes", name), text)
        for code, entry in spec.languages.items()
        for name, text in (entry.codes if entry is not None else {}).items()
    ]
    for path, text in templates:
        code = str(path[2])
        if path[0] == "codes" and code != "default" and code not in spec.languages:
            yield path, str(UnknownNameError("language", code, list(spec.languages)))
        try:
            text.format_map(dict.fromkeys(CODE_NAMES, ""))
        except KeyError as error:
            yield path, str(UnknownNameError(f"column in {text!r}", str(error.args[0]), CODE_NAMES))
        except (ValueError, IndexError, AttributeError) as error:
            yield path, f"{text!r} has a brace that is no {{column}}: {error}."
    for name in spec.codes:
        without = [code for code in spec.languages if name not in {*CODE_NAMES, *spec.names_of(code)}]
        if without:
            yield ("codes", name), f"there is no {name!r} for {', '.join(without)}: add them, or a 'default'"


def _braces(path: KeyPath, source: Source, spec: TaskSpec | TrainingSpec) -> Iterator[Found]:
    """Yield braces in paths and configs that no code of a language and no axis fills."""
    named_sets = {name for code in spec.languages for name in spec.names_of(code)}
    allowed = [*CODE_NAMES, *named_sets, *(spec.axes if isinstance(spec, TaskSpec) else ())]
    texts = [("local", name) for alternative in source.alternatives for name in alternative.paths]
    if source.sample is not None:
        sample = LocalSource(path=source.sample) if isinstance(source.sample, str) else source.sample
        texts += [("sample", name) for name in sample.paths]
    if source.hub is not None:
        texts += [
            ("hub", text)
            for text in (source.hub.path, source.hub.config, *source.hub.paths)
            if text is not None
        ]
    if source.web is not None:
        web_texts = (source.web.url, source.web.sha256, source.web.md5, *source.web.paths)
        texts += [("web", text) for text in web_texts if text is not None]
    for key, text in texts:
        try:
            fields = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        except ValueError as error:
            yield (*path, key), f"{text!r} has a brace that is no {{code}}: {error}."
            continue
        for name in fields:
            if name not in allowed:
                yield (*path, key), str(UnknownNameError(f"language code or axis in {text!r}", name, allowed))


def _unfit(path: KeyPath, source: Source, registry: Registry) -> Iterator[Found]:
    """Yield alternatives whose reader cannot do with the options that they have: each has all of them or none."""
    listed = not isinstance(source.local, str)
    sources: list[tuple[KeyPath, LocalSource | WebSource]] = [
        ((*path, "local", index) if listed else path, item) for index, item in enumerate(source.alternatives)
    ]
    if isinstance(source.sample, LocalSource):
        sources.append(((*path, "sample"), source.sample))
    if source.web is not None:
        sources.append(((*path, "web"), source.web))
    for where, item in sources:
        name = source.reader_of(item)
        base_options = source.options if item.options is None else item.options
        options = dict(with_conditions(base_options, source.where if item.where is None else item.where))
        columns = columns_option(source.columns if item.columns is None else item.columns)
        if columns is not None:
            options["columns"] = columns
        try:
            registry.readers.get(name).check_options(options)
        except UsageError as error:
            # An unknown name is reported at its own line.
            if not isinstance(error, UnknownNameError):
                advice = reader_advice(item.paths, name, registry.readers.names)
                yield where, " ".join(filter(None, (error.message, advice)))
        except HarnessError:
            continue


def _further_sources(spec: TaskSpec) -> Iterator[tuple[KeyPath, Source]]:
    """Yield the sources of a task's candidates and of its variants."""
    if spec.pool_source is not None:
        yield ("candidates",), spec.pool_source
    for name, variant in spec.variants.items():
        for split, source in variant.splits.items():
            yield ("variants", name, "splits", split), source


def _conditions(spec: TaskSpec) -> Iterator[Found]:
    """Yield axes that change nothing, and releases of languages that the task does not have."""
    sources = [spec.source(code, "test") for code in spec.languages]
    for axis in spec.axes:
        if not any(f"{{{axis}}}" in source.model_dump_json() for source in sources if source is not None):
            yield (
                ("axes", axis),
                f"no test source has {{{axis}}}, so all of its values would read the same file",
            )
    for name, release in spec.releases.items():
        for code in release.counts if isinstance(release.counts, dict) else ():
            if code not in spec.languages:
                unknown = UnknownNameError(f"language of {spec.task!r}", code, list(spec.languages))
                yield ("releases", name, "counts", code), str(unknown)


def _parts(path: KeyPath, source: Source) -> Iterator[tuple[KeyPath, Part]]:
    """Yield the source and every place that it names, each with its path in the document."""
    yield path, source
    if isinstance(source.local, tuple):
        for index, item in enumerate(source.local):
            if isinstance(item, LocalSource):
                yield (*path, "local", index), item
    if isinstance(source.sample, LocalSource):
        yield (*path, "sample"), source.sample
    if source.hub is not None:
        yield (*path, "hub"), source.hub
    if source.web is not None:
        yield (*path, "web"), source.web


def _reader(path: KeyPath, part: Part, source: Source, registry: Registry) -> Iterator[Found]:
    alone = next(iter(source.alternatives), None)
    item = part if isinstance(part, LocalSource | WebSource) else alone
    name = part.reader or (source.reader_of(item) if item is not None else source.reader or "tsv")
    try:
        reader = registry.readers.get(name)
    except HarnessError as error:
        if part.reader is not None:
            yield (*path, "reader"), str(error)
        return
    for option in with_conditions(part.options or {}, part.where):
        if option not in reader.options:
            unknown = UnknownNameError(f"option of the reader {name!r}", option, reader.options)
            yield (*path, "options", option), str(unknown)


def _labels(path: KeyPath, part: Part, labels: tuple[str, ...]) -> Iterator[Found]:
    for raw, label in (part.label_map or {}).items():
        if labels and label not in labels:
            yield (*path, "label_map", raw), str(UnknownNameError("label", label, labels))


def _served(path: KeyPath, part: Part, spec: TaskSpec | TrainingSpec) -> Iterator[Found]:
    """Yield axes and values of ``only`` that the document does not have: such an alternative is never read."""
    if not isinstance(part, LocalSource):
        return
    axes = spec.axes if isinstance(spec, TaskSpec) else {}
    allowed: dict[str, Sequence[str]] = {"language": list(spec.languages), **axes}
    for name, values in part.served.items():
        if name not in allowed:
            yield (*path, "only", name), str(UnknownNameError("axis", name, allowed))
            continue
        for value in values:
            if value not in allowed[name]:
                unknown = UnknownNameError(f"value of {name!r}", value, allowed[name])
                yield (*path, "only", name), str(unknown)
