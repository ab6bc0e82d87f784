"""Tasks as they are found: joined with the fragments that extend them, and made by sources such as other harnesses.

Fragments bring languages, and words for the prompts of a task. A source makes tasks named ``PREFIX:NAME``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import BrokenPluginError, DuplicateNameError
from harness.languages.table import Language, LanguageTable, known_languages
from harness.specs.loading import Document

if TYPE_CHECKING:
    from harness.specs.documents import AddedWords, FragmentSpec, PromptSpec
    from harness.specs.schema import LanguageEntry, TaskSpec, TrainingSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One document as it was found."""

    sort: str
    name: str
    plugin: str
    document: Document
    folder: Traversable
    """The registered folder that it came from; samples lie in its ``sample``."""
    given: bool = False
    """Whether the user gave it as a file or folder; `plugin` is then its path."""

    @property
    def languages(self) -> list[str]:
        """The language codes of a task, as written, without validating it."""
        # Published scores and suites have their languages by task, so that the keys are names of tasks.
        entries = None if self.sort in {"published", "suite"} else self.document.data.get("languages")
        return list(entries) if isinstance(entries, Mapping) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenWords:
    """Words that a fragment brought for a prompt."""

    words: AddedWords
    plugin: str
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A validated task with the languages that fragments added to it."""

    spec: TaskSpec
    plugin: str
    document: Document
    languages: LanguageTable
    """The known languages and those that only this task has."""
    folders: Mapping[str, Traversable]
    """By language: the folder that its samples are looked up in."""
    added: Mapping[str, str]
    """Languages that fragments added, with the plugin that did."""
    fragments: Mapping[str, Document]
    """Languages that fragments added, with the document that did."""
    on_request: frozenset[str] = frozenset()
    """Added languages that are run only where they are named."""
    words: Mapping[tuple[str, str], GivenWords] = field(default_factory=dict)
    """By preset and language: the words that fragments brought for the task's prompts."""

    def document_of(self, language: str) -> Document:
        """Return the document that gives a language."""
        return self.fragments.get(language, self.document)

    @property
    def documents(self) -> list[Document]:
        """The task's document and every fragment's, each once."""
        all_documents = [
            self.document,
            *self.fragments.values(),
            *(added.document for added in self.words.values()),
        ]
        return list({document.source: document for document in all_documents}.values())

    def pool_languages(self, language: str) -> tuple[str, ...]:
        """Return the languages whose candidates the queries of a language are ranked against."""
        return self.joint_languages(language) if self.spec.pools_languages else tuple(self.spec.languages)[:1]

    def joint_languages(self, language: str) -> tuple[str, ...]:
        """Return the languages that count where a language's score hangs on all: the published ones and itself.

        With others that fragments added, it would depend on what else is installed.
        """
        return tuple(code for code in self.spec.languages if code not in self.added or code == language)

    def worded(self, prompt: PromptSpec, language: str | None = None) -> PromptSpec:
        """Return a prompt of the task with the words that fragments brought for a language, or for all.

        With those of one language alone, a fragment changes no digest of a prompt in another language.
        """
        for (preset, code), added in self.words.items():
            applies = preset == prompt.preset and self.spec.task in prompt.tasks
            if applies and language in {None, code}:
                prompt = prompt.worded(code, added.words)
        return prompt


def _own_place(spec: TaskSpec, code: str, file: str) -> str:
    """Return the remedy for a file that brings a language which the task has itself."""
    source, languages = spec.source(code, "test"), described_languages(spec)
    codes = languages.get(code).codes() if code in languages else {"language": code}
    alternatives = () if source is None else source.alternatives
    paths = [path for item in alternatives if item.serves(codes) for path in item.paths]
    for name, value in codes.items():
        paths = [path.replace(f"{{{name}}}", value) for path in paths]
    advice = (
        f", and put your items where those of the task are looked for: {' or '.join(paths)}" if paths else ""
    )
    return f"The task has {code!r} already. Omit the file {file!r}{advice}."


def join_fragments(
    entry: Entry,
    spec: TaskSpec,
    fragments: Sequence[tuple[Entry, FragmentSpec]],
    plugin_with_words: Callable[[str, str, str], str | None],
) -> TaskEntry:
    """Return a task with the languages and words of fragments.

    Args:
        entry: The task as it was found.
        spec: The task.
        fragments: Those that extend it.
        plugin_with_words: Task, preset and language -> the plugin whose prompt has words of the language already.

    Raises:
        DuplicateNameError: A language, or the words of a prompt in one, are given twice; names both plugins.
    """
    added: dict[str, str] = {}
    on_request: set[str] = set()
    documents: dict[str, Document] = {}
    folders = dict.fromkeys(spec.languages, entry.folder)
    languages = dict(spec.languages)
    words: dict[tuple[str, str], GivenWords] = {}
    paths = [item.plugin for item in (entry, *(own for own, _ in fragments)) if item.given]
    for fragment, content in fragments:
        for code, language in content.entries.items():
            for preset, added_words in language.prompts.items():
                earlier = words.get((preset, code))
                first = plugin_with_words(spec.task, preset, code) if earlier is None else earlier.plugin
                if first is not None:
                    kind = f"table of words in {code!r} for the prompt {preset!r} of task"
                    raise DuplicateNameError(kind, spec.task, first, fragment.plugin, given=paths)
                own = GivenWords(words=added_words, plugin=fragment.plugin, document=fragment.document)
                words[preset, code] = own
            if language.words_alone:
                continue
            if code in languages:
                kind = f"language {code!r} of task"
                owner = added.get(code, entry.plugin)
                error = DuplicateNameError(kind, spec.task, owner, fragment.plugin, given=paths)
                if code not in added and fragment.given:
                    error.hint = _own_place(spec, code, fragment.plugin)
                raise error
            languages[code] = language
            added[code] = fragment.plugin
            documents[code] = fragment.document
            on_request.update([code] * content.on_request)
            folders[code] = fragment.folder
    merged = _merged(spec, languages, [content for _, content in fragments]) if added else spec
    return TaskEntry(
        spec=merged,
        plugin=entry.plugin,
        document=entry.document,
        languages=described_languages(merged),
        folders=folders,
        added=added,
        fragments=documents,
        on_request=frozenset(on_request),
        words=words,
    )


def _merged(
    spec: TaskSpec, languages: Mapping[str, LanguageEntry | None], fragments: Iterable[FragmentSpec]
) -> TaskSpec:
    releases = dict(spec.releases)
    for content in fragments:
        releases |= content.releases
    return spec.model_copy(update={"languages": languages, "releases": releases})


DESCRIBING = ("name", "script", "family", "flores", "segmentation")
"""Keys of an entry that describe its language."""


def described_languages(spec: TaskSpec | TrainingSpec) -> LanguageTable:
    """Return the known languages and those that a spec describes in full, with their codes in its files."""
    described = {
        code: language
        for code, entry in spec.languages.items()
        if entry is not None
        and entry.name
        and (language := described_language(code, {key: getattr(entry, key) for key in DESCRIBING}))
    }
    table = known_languages().extended(described)
    return table.with_names({code: spec.names_of(code) for code in spec.languages})


def described_language(code: str, given: Mapping[str, Any]) -> Language | None:
    """Return the language that an entry describes in full: with name, script and family; None for other entries."""
    fields: dict[str, Any] = {
        key: value for key in DESCRIBING if isinstance(value := given.get(key), str) and value
    }
    return Language(code=code, **fields) if fields.keys() >= {"name", "script", "family"} else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTask:
    """The document of one task."""

    text: str
    """YAML; its task is named ``PREFIX:NAME``."""
    source: str
    """The file that it was made of, for messages."""


class MakesTasks(Protocol):
    """Interface of a source's code. Neither of its functions runs the files that it reads, nor needs the network."""

    def names(self, pattern: str) -> Sequence[str]:
        """Return the names (without prefix) that a task, a group or a glob means.

        ``name:code+code`` means some languages of a task.

        Raises `UnknownNameError` with near names, and `HarnessError` where what the source needs is not installed.
        """

    def document(self, name: str, shots: int) -> MadeTask:
        """Return the document of one task; raises `HarnessError` for one that cannot be taken.

        `shots` is what the user asked for; 0 leaves it to the task. The test data of the document are a Hub source
        whose path is ``PREFIX:NAME``: the hook ``harness_resolve_data`` is asked for it wherever other data lie.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSource:
    """Tasks that are made when they are named; the code is named here, and imported when one is."""

    name: str
    """The prefix: ``lm_eval`` of ``lm_eval:xnli_sw``."""
    target: str
    """``module:object``, a `MakesTasks`."""
    metric: str | None = None
    """``module:function``, the metric of a name ``PREFIX:METRIC``; None where the tasks have no metric of their own."""
    summary: str = ""

    def open(self) -> MakesTasks:
        """Return its code; raises `BrokenPluginError` where it cannot be imported."""
        makes: MakesTasks = self._loaded(self.target)
        return makes

    def open_metric(self, name: str) -> Any:
        """Return the metric of a name with the prefix; raises `BrokenPluginError` where it cannot be imported."""
        assert self.metric is not None
        return self._loaded(self.metric)(name)

    def _loaded(self, target: str) -> Any:
        module, _, name = target.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise BrokenPluginError(
                f"The source of tasks {self.name!r} cannot be loaded from {target!r}: {error}."
            ) from error
