"""All YAML documents of all plugins: found and read at once, validated when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from harness.errors import DuplicateNameError, HarnessError, Problem, SpecError, UnknownNameError
from harness.languages.table import Language, LanguageTable, known_languages
from harness.specs.folder import SORTS, SpecIndex, read_folder, read_given
from harness.specs.loading import Document, read_yaml
from harness.specs.task_entry import Entry, TaskEntry, described_language, join_fragments

if TYPE_CHECKING:
    from harness.specs.documents import FragmentSpec, PromptSpec, PublishedSpec, RecipeSpec
    from harness.specs.schema import SuiteSpec, TaskSpec, TrainingSpec
    from harness.specs.task_entry import TaskSource
    from harness.table import NamedTable

WithoutTaken = Callable[[str, list[tuple[str, str, Entry]]], list[tuple[str, str, Entry]]]
SHOWN = {"training": "training set", "published": "published scores"}


class Catalog:
    """The tasks, training sets, recipes, suites and published scores of this environment."""

    def __init__(
        self,
        folders: Iterable[tuple[str, Traversable]],
        *,
        kind_models: Mapping[str, type[TaskSpec]],
        extra_paths: Sequence[Path] = (),
        sources: NamedTable[TaskSource] | None = None,
        drop_shadowed_names: WithoutTaken = lambda _, triples: triples,
    ) -> None:
        """Read all documents; `drop_shadowed_names` drops those of plugins that take a name of the core."""
        self._kind_models = kind_models
        self._without_taken = drop_shadowed_names
        self._sources = sources
        # Documents are read once and never change, so that a task is validated once.
        self._tasks: dict[str, TaskEntry] = {}
        self.problems: list[HarnessError] = []
        self.unreadable: dict[str, list[HarnessError]] = {}
        """By plugin: what is wrong with documents that cannot be read."""
        self.entries: list[Entry] = []
        index = SpecIndex()
        for plugin, folder in folders:
            entries, problems = read_folder(plugin, folder, index)
            self.entries += entries
            self.problems += problems
            if problems:
                self.unreadable.setdefault(plugin, []).extend(problems)
        index.save()
        extra = [entry for path in extra_paths for entry in read_given(path)]
        self.entries += extra
        self._given = {id(entry) for entry in extra}
        self.problems_in: Callable[[TaskEntry], Iterable[tuple[Document, Sequence[Problem]]]] = lambda _: ()
        """Problems that only a session finds, such as names that no plugin registers; a session sets it."""
        self._extending = self._table("extends")
        self._tables = {sort: self._table(sort) for sort in SORTS if sort != "extends"}
        for entry in extra:
            self._require_extended_task(entry)

    def names(self, sort: str) -> list[str]:
        """Return the names of all documents of a sort."""
        return sorted(self._tables[sort])

    def entry(self, sort: str, name: str) -> Entry:
        """Return a document as it was found; raises `UnknownNameError`, or `DuplicateNameError`."""
        entries = self._tables[sort].get(name)
        if not entries and sort == "task" and self.is_made(name):
            self.make(name)
            entries = self._tables[sort].get(name)
        if not entries:
            names = self.names(sort)
            raise UnknownNameError(SHOWN.get(sort, sort), name, names, hint=_list_hint(sort))
        if len(entries) > 1:
            paths = [item.plugin for item in entries if item.given]
            raise DuplicateNameError(sort, name, entries[0].plugin, entries[1].plugin, given=paths)
        return entries[0]

    def is_made(self, name: str) -> bool:
        """Return whether a name or glob is of tasks that a source makes: ``PREFIX:...``."""
        prefix, colon, _ = name.partition(":")
        return bool(colon) and self._sources is not None and prefix in self._sources.names

    def names_made(self, pattern: str) -> dict[str, list[str] | None]:
        """Return the tasks that a task, group or glob after ``PREFIX:`` means, each with its languages, None for all.

        None of them is made. ``:code+code`` behind the pattern picks languages.
        """
        assert self._sources is not None
        prefix, _, name_pattern = pattern.partition(":")
        name_pattern, _, chosen = name_pattern.partition(":")
        codes_by_task: dict[str, list[str] | None] = {}
        for name in self._sources.get(prefix).open().names(name_pattern):
            task, _, codes = name.partition(":")
            codes_by_task[f"{prefix}:{task}"] = [
                code for code in (chosen or codes).split("+") if code
            ] or None
        return codes_by_task

    def make(self, pattern: str, shots: int = 0) -> dict[str, list[str] | None]:
        """Make the tasks of `names_made` and return what it does; `shots` of 0 leaves their number to the task.

        Raises `HarnessError` for a task that cannot be taken.
        """
        assert self._sources is not None
        prefix = pattern.partition(":")[0]
        names = self.names_made(pattern)
        for name in names:
            if name not in self._tables["task"]:
                generated = self._sources.get(prefix).open().document(name.partition(":")[2], shots)
                document, folder = read_yaml(generated.text, generated.source), Path(generated.source).parent
                plugin = self._sources.plugin_of(prefix)
                entry = Entry(sort="task", name=name, plugin=plugin, document=document, folder=folder)
                self.entries.append(entry)
                self._tables["task"][name] = [entry]
        return names

    def task(self, name: str) -> TaskEntry:
        """Return a validated task, joined with the fragments that extend it."""
        joined = self._tasks.get(name)
        if joined is None:
            entry = self.entry("task", name)
            joined = self._tasks[name] = self._usable(entry, self.validate_task(entry))
        return joined

    def _usable(self, entry: Entry, spec: TaskSpec) -> TaskEntry:
        """Return a task without broken fragments of plugins, which are reported: its other languages still work."""
        left = [entry for entry in self._found_fragments(spec.task) if id(entry) not in self._given]
        faulty: list[Entry] = []
        while True:
            joined = self.joined(entry, spec, without=faulty)
            problems = self.problems_in(joined) if joined.added or joined.words else ()
            faults = {document.source: SpecError(document.source, found) for document, found in problems}
            found = [one for one in left if one not in faulty and one.document.source in faults]
            if not found:
                return joined
            for fragment in found:
                self._note(faults[fragment.document.source], [fragment])
            faulty += found

    def joined(
        self, entry: Entry, spec: TaskSpec, *, further: Sequence[Entry] = (), without: Sequence[Entry] = ()
    ) -> TaskEntry:
        """Return a task with the languages of the fragments that extend it.

        Packages that bring the same language are reported with the problems, and bring nothing: neither is the right
        one, and the task's other languages still work. `further` are fragments that need not be installed, `without`
        those that are skipped.

        Raises:
            DuplicateNameError: A fragment that the user gave brings what is there already.
        """
        installed = [fragment for fragment in self._fragments(spec.task) if fragment not in without]
        fragments = _each_once([*installed, *further])
        while True:
            contents = [(fragment, self._fragment(fragment)) for fragment in fragments]
            try:
                return join_fragments(entry, spec, contents, self._plugin_with_words)
            except DuplicateNameError as error:
                disputed = [fragment for fragment in fragments if fragment.plugin in error.both]
                if not disputed or any(fragment in further for fragment in disputed):
                    raise
                self._note(error, disputed)
                fragments = [fragment for fragment in fragments if fragment not in disputed]

    def _plugin_with_words(self, task: str, preset: str, language: str) -> str | None:
        """Return the plugin whose prompt document has the words of a language itself, or None."""
        if preset not in self.presets(task):
            return None
        prompt = self.prompt(task, preset)
        for spec in filter(None, (prompt, self.inherited_prompt(prompt))):
            if language in spec.literals:
                return self.entry("prompt", spec.prompt).plugin
        return None

    def validate_task(self, entry: Entry) -> TaskSpec:
        """Return the spec of a task document; raises `SpecError` with all its faults."""
        from harness.specs.validating import validate_document

        model, document, problems = self.task_schema(entry)
        try:
            spec = validate_document(model, document)
        except SpecError as error:
            problems += error.problems
        if problems:
            raise SpecError(document.source, sorted(problems, key=lambda problem: problem.line or 0))
        return spec

    def task_schema(self, entry: Entry) -> tuple[type[TaskSpec], Document, list[Problem]]:
        """Return the schema of a task document, the document, and the faults of its kind.

        Where the kind is unknown, that is the nearest kind, or what tasks of all kinds share.
        """
        from harness.specs.schema import TaskSpec

        document, kind = entry.document, entry.document.data.get("kind")
        if isinstance(kind, str) and kind in self._kind_models:
            return self._kind_models[kind], document, []
        problems: list[Problem] = []
        if isinstance(kind, str):
            unknown = UnknownNameError("task kind", kind, self._kind_models)
            problems.append(Problem(message=str(unknown), line=document.line_of(["kind"]), key="kind"))
            if unknown.near:
                data = {**document.data, "kind": unknown.near[0]}
                return self._kind_models[unknown.near[0]], replace(document, data=data), problems
        special = {key for model in self._kind_models.values() for key in model.model_fields}
        special -= TaskSpec.model_fields.keys()
        data = {key: value for key, value in document.data.items() if key not in special}
        return TaskSpec, replace(document, data=data), problems

    def add(self, entries: Iterable[Entry]) -> None:
        """Make the names of further documents known, except those that are known already, and fragments."""
        for entry in entries:
            if entry.sort != "extends" and entry.name not in self._tables[entry.sort]:
                self.entries.append(entry)
                self._tables[entry.sort][entry.name] = [entry]
        for name in ("languages", "_prompts_by_task"):
            self.__dict__.pop(name, None)

    def training(self, name: str) -> tuple[TrainingSpec, Entry]:
        """Return a validated training set."""
        from harness.specs.schema import TrainingSpec
        from harness.specs.validating import validate_document

        entry = self.entry("training", name)
        return validate_document(TrainingSpec, entry.document), entry

    def recipe(self, name: str) -> RecipeSpec:
        """Return a validated recipe."""
        from harness.specs.documents import RecipeSpec
        from harness.specs.validating import validate_document

        return validate_document(RecipeSpec, self.entry("recipe", name).document)

    def suite(self, name: str) -> SuiteSpec:
        """Return a validated suite."""
        from harness.specs.schema import SuiteSpec
        from harness.specs.validating import validate_document

        return validate_document(SuiteSpec, self.entry("suite", name).document)

    def published(self, name: str) -> PublishedSpec:
        """Return the validated scores of one published system."""
        from harness.specs.documents import PublishedSpec
        from harness.specs.validating import validate_document

        return validate_document(PublishedSpec, self.entry("published", name).document)

    def published_for(self, suite: str | None = None) -> list[PublishedSpec]:
        """Return the published scores on a suite, or on any tasks: by protocol, people last, then by name.

        A document with several systems is one document for each of them.
        """
        from harness.specs.schema import ProtocolName

        specs: list[PublishedSpec] = []
        for name in self.names("published"):
            entries = self._tables["published"][name]
            if suite is None or any(entry.document.data.get("suite") == suite for entry in entries):
                try:
                    specs += self.published(name).each()
                except HarnessError as error:
                    self._note(error, entries)
        order = [*get_args(ProtocolName), "human"]
        return sorted(specs, key=lambda spec: (order.index(spec.protocol), spec.published))

    def presets(self, task: str) -> list[str]:
        """Return the names of the prompts that a task or training set has."""
        return sorted({name.partition("/")[2] for name in self._prompts_of(task)})

    def prompt(self, task: str, preset: str) -> PromptSpec:
        """Return the prompt of a task by its preset; raises `UnknownNameError` with those that it has."""
        from harness.specs.documents import PromptSpec
        from harness.specs.validating import validate_document

        names = [name for name in self._prompts_of(task) if name.partition("/")[2] == preset]
        if not names:
            raise UnknownNameError(f"prompt of {task!r}", preset, self.presets(task))
        if len(names) > 1:
            entries = [(preset, self.entry("prompt", name)) for name in names]
            names = [entry.name for entry in self._own_first(f"prompt of {task!r}", entries)]
        if len(names) > 1:
            first, second = (self.entry("prompt", name) for name in names[:2])
            paths = [item.plugin for item in (first, second) if item.given]
            raise DuplicateNameError(f"prompt {preset!r} of", task, first.plugin, second.plugin, given=paths)
        return validate_document(PromptSpec, self.entry("prompt", names[0]).document)

    def inherited_prompt(self, spec: PromptSpec) -> PromptSpec | None:
        """Return the prompt that another takes words from, or None."""
        from harness.specs.documents import PromptSpec
        from harness.specs.validating import validate_document

        if spec.literals_from is None:
            return None
        return validate_document(PromptSpec, self.entry("prompt", spec.literals_from).document)

    def _prompts_of(self, task: str) -> list[str]:
        return list(self._prompts_by_task.get(task, ()))

    @cached_property
    def _prompts_by_task(self) -> Mapping[str, Mapping[str, None]]:
        by_task: dict[str, dict[str, None]] = {}
        for name in self.names("prompt"):
            for entry in self._tables["prompt"][name]:
                for task in entry.document.texts("tasks"):
                    by_task.setdefault(task, {})[name] = None
        return by_task

    def human_performance(self) -> dict[str, dict[str, float]]:
        """Return the scores of people by task and metric, as fractions; broken documents are added to the problems."""
        by_task: dict[str, dict[str, float]] = {}
        for name in self.names("published"):
            try:
                spec = self.published(name)
            except HarnessError as error:
                self.problems.append(error)
                continue
            if spec.protocol == "human":
                for task, scores in spec.scores.items():
                    by_task.setdefault(task, {}).update({key: value / 100 for key, value in scores.items()})
        return by_task

    def languages_of(self, name: str) -> list[str]:
        """Return the language codes of a task, fragments included, without validating anything."""
        codes = self.entry("task", name).languages
        added = [code for entry in self._found_fragments(name) for code in entry.languages]
        return list(dict.fromkeys([*codes, *added]))

    def on_request(self, name: str) -> list[str]:
        """Return the languages of a task that run only where they are named, without validating anything."""
        fragments = [
            fragment
            for fragment in self._found_fragments(name)
            if fragment.document.data.get("on_request") is True
        ]
        return [code for entry in fragments for code in entry.languages]

    @cached_property
    def languages(self) -> LanguageTable:
        """The language table and every language that a document describes in full, as written."""
        described: dict[str, Language] = {}
        for entry in self.entries:
            for code in entry.languages if entry.sort != "prompt" else ():
                content = entry.document.data["languages"][code]
                language = described_language(code, content) if isinstance(content, Mapping) else None
                if language is not None:
                    described.setdefault(code, language)
        return known_languages().extended(described)

    def language_codes(self) -> set[str]:
        """Return the codes of the language table and of all documents."""
        return set(self._language_codes)

    @cached_property
    def _language_codes(self) -> frozenset[str]:
        table = frozenset(language.code for language in known_languages())
        return table.union(*(entry.languages for entry in self.entries))

    def _found_fragments(self, task: str) -> list[Entry]:
        return self._extending.get(task, [])

    def _fragments(self, task: str) -> list[Entry]:
        """Return the fragments of a task without broken ones of plugins: they must not stop who asks for the task."""
        usable = []
        for entry in self._found_fragments(task):
            try:
                self._fragment(entry)
            except SpecError as error:
                self._note(error, [entry])
            else:
                usable.append(entry)
        return usable

    def _note(self, error: HarnessError, entries: Iterable[Entry]) -> None:
        """Keep a problem of plugins' documents; raise that of one which the user gave."""
        if any(id(entry) in self._given for entry in entries):
            raise error
        if all(str(error) != str(problem) for problem in self.problems):
            self.problems.append(error)

    def _fragment(self, entry: Entry) -> FragmentSpec:
        from harness.specs.documents import FragmentSpec
        from harness.specs.validating import validate_document

        return validate_document(FragmentSpec, entry.document)

    def lost_fragments(self) -> list[SpecError]:
        """Return the faults of plugins' fragments that extend an unknown task."""
        lost = []
        for entries in self._extending.values():
            for entry in entries:
                try:
                    self._require_extended_task(entry)
                except SpecError as error:
                    lost.append(error)
        return lost

    def _require_extended_task(self, entry: Entry) -> None:
        """Raise `SpecError` where the user gave languages for an unknown task."""
        if entry.sort == "extends" and entry.name not in self._tables["task"]:
            unknown = UnknownNameError("task", entry.name, self._tables["task"])
            line = entry.document.line_of(["extends"])
            raise SpecError(entry.document.source, [Problem(message=str(unknown), key="extends", line=line)])

    def _table(self, sort: str) -> dict[str, list[Entry]]:
        table: dict[str, list[Entry]] = {}
        entries = [entry for entry in self.entries if entry.sort == sort]
        if sort != "extends":
            entries = self._own_first(SHOWN.get(sort, sort), [(entry.name, entry) for entry in entries])
        for entry in entries:
            table.setdefault(entry.name, []).append(entry)
        return table

    def _own_first(self, sort: str, named: Sequence[tuple[str, Entry]]) -> list[Entry]:
        """Return documents without those of strangers whose names the harness has itself; the user's are last."""
        plugged = [(entry.plugin, name, entry) for name, entry in named if not entry.given]
        return [
            *(entry for _, _, entry in self._without_taken(sort, plugged)),
            *(entry for _, entry in named if entry.given),
        ]


def _each_once(entries: Iterable[Entry]) -> list[Entry]:
    return list({Path(entry.document.source).resolve(): entry for entry in entries}.values())


def _list_hint(sort: str) -> str | None:
    return "Run 'harness tasks list' to see all." if sort in {"task", "suite"} else None
