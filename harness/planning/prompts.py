"""Which prompts a plan uses: preset, words, and the pool that shots are drawn from."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

from harness.checks.word_checks import needed_words, place_of_words
from harness.data.sources import FoundData
from harness.errors import DataError, MissingDataError
from harness.kinds.kind import ReadContext
from harness.kinds.methods import Pairing
from harness.languages.table import Language
from harness.planning.asking import asking_view, repeats, require_askable, sampled_prompt
from harness.planning.fits import stage_origin
from harness.planning.plan import PlanRequest, PromptPlan, ShotPool
from harness.specs.schema import TaskSpec
from harness.specs.task_entry import TaskEntry

DEFAULT_PRESET = "default"
CHAT_PRESET = "instruct"
"""What a conversation is asked with, where a task has it and the user names no other prompt."""
FITTED_PRESET = "mt5"
"""What text-to-text models are trained with where the user names no other prompt."""
_OTHER = {"train": "validation", "validation": "train"}


class PromptPlanner:
    """Plans the prompts of one run."""

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self._config, self._catalog = request.config, request.catalog
        self._labelled: dict[tuple[str, str, str], int] = {}
        self.notes: dict[str, None] = {}
        """Sentences about the words of prompts for the run's notes."""

    def presets(self, task: str, method: str, *, fits: bool) -> tuple[str, ...]:
        """Return the presets of a pairing: the user's, or the usual one.

        A model that writes needs to see what it may answer: where the usual preset does not show the choices, this is
        another preset of the task that does. A conversation needs a request, where a task has one.
        """
        if self._config.prompt or fits:
            return tuple(dict.fromkeys(self._config.prompt or (FITTED_PRESET,)))
        if self._config.chat and method == "generate" and CHAT_PRESET in self._catalog.presets(task):
            return (CHAT_PRESET,)
        if self._is_answerable(task, DEFAULT_PRESET, method):
            return (DEFAULT_PRESET,)
        return tuple(self._answerable(task)[:1]) or (DEFAULT_PRESET,)

    def _is_answerable(self, task: str, preset: str, method: str) -> bool:
        """Return whether a method can work with a preset; only a cloze shows no choices to a model that writes."""
        is_listed = preset in self._catalog.presets(task)
        return (
            method != "generate" or not is_listed or self._catalog.prompt(task, preset).formulation != "cloze"
        )

    def _answerable(self, task: str) -> list[str]:
        """Return the presets of a task for a model that writes, the best one first: letters are read most reliably."""
        order = {"letters": 0, "hybrid": 1, "generation": 2}
        specs = [
            self._catalog.prompt(task, name) for name in self._catalog.presets(task) if name != FITTED_PRESET
        ]
        answerable = [spec for spec in specs if spec.formulation in order]
        answerable.sort(key=lambda spec: (order[spec.formulation], spec.preset))
        return [spec.preset for spec in answerable]

    def _require_answerable(self, task: str, preset: str, method: str) -> None:
        """Raise `MissingDataError` for a preset whose choices a model that writes would not see."""
        if self._is_answerable(task, preset, method):
            return
        names = self._answerable(task)
        raise MissingDataError(
            f"The prompt {preset!r} of {task!r} ranks answers and does not show them, and the model is asked to write.",
            hint=f"Give --prompt {' or --prompt '.join(names)}."
            if names
            else "The task has no prompt that lists the answers: add one with the formulation 'letters'.",
        )

    def plan(
        self, entry: TaskEntry, language: Language, pairing: Pairing, tested: FoundData, preset: str
    ) -> PromptPlan | None:
        """Return the prompt of a cell with one of `presets`, or None where its method needs none.

        Raises `MissingDataError` where shots are asked for and there are no data to draw them from, where the prompt
        has no words for the language and English ones are not allowed, and where it does not show its choices to a
        model that writes. Raises `UnknownNameError` for an unknown preset, and what `require_askable` does.
        """
        if not pairing.method.prompted:
            return None
        task, method = entry.spec.task, pairing.method.name
        spec = sampled_prompt(self._request, self._catalog.prompt(task, preset), method)
        if not pairing.fits:
            self._require_answerable(task, preset, method)
        if method == "rank" and not spec.choice:
            raise MissingDataError(
                f"The prompt {preset!r} of {task!r} lets the model write its answer, and answers are ranked here.",
                hint="Add --method generate, or run this prompt by itself.",
            )
        require_askable(self._request, task, pairing, spec)
        inherited = self._catalog.inherited_prompt(spec)
        code = self._config.instruction_language or language.code
        shots = 0 if pairing.fits else self._config.shots
        prompt = PromptPlan(
            spec=entry.worded(spec, code),
            inherited=None if inherited is None else entry.worded(inherited, code),
            policy=self._config.literals,
            instruction=code,
            shots=shots,
            pool=self._pool(entry, language, tested, spec.shots_language) if shots else None,
            chat=self._config.chat,
            constrained=self._config.constrained,
            repeats=repeats(self._request, method),
        )
        try:
            words = prompt.compiled(code).literals_language
        except MissingDataError as error:
            raise MissingDataError(
                f"{error} Write them in {place_of_words(entry, code, spec.preset)}."
            ) from error
        if not pairing.fits and not self._config.prompt and preset != DEFAULT_PRESET:
            why = (
                "it is a request, for conversations"
                if preset == CHAT_PRESET
                else f"{DEFAULT_PRESET!r} does not show the answers to a model that writes"
            )
            self.notes[f"{task} is asked with the prompt {preset!r}: {why}"] = None
        if words != code and code in entry.added and code not in entry.on_request:
            location = place_of_words(entry, code, spec.preset)
            needed = ", ".join(needed_words(spec, inherited))
            note = f"{entry.spec.task}:{code} is asked with English words; write its own ({needed}) in {location}"
            self.notes[note] = None
        return prompt

    def view(self, prompt: PromptPlan | None, method: str, *, fits: bool) -> dict[str, str]:
        """Return the conditions of a cell that its prompt makes; what is usual is not listed."""
        if prompt is None:
            return {}
        view = {}
        if prompt.spec.preset != (FITTED_PRESET if fits else DEFAULT_PRESET):
            view["prompt"] = prompt.spec.preset
        if prompt.pool is not None:
            view["shots"] = str(prompt.shots)
            if self._config.shots_from != "train":
                view["shots_from"] = self._config.shots_from
            if self._config.shots_language == "target":
                view["shots_language"] = "target"
        if self._config.instruction_language is not None:
            view["instruction"] = self._config.instruction_language
        for name in ("chat", "constrained"):
            if getattr(prompt, name):
                view[name] = "yes"
        return view | asking_view(self._request, method)

    def _pool(self, entry: TaskEntry, language: Language, tested: FoundData, given: str | None) -> ShotPool:
        """Return the split that shots come from: a stage's training data, or a dev set; never what is tested."""
        spec, split = entry.spec, self._config.shots_from
        source = spec.transfer.source if spec.transfer is not None else language.code
        code = given or (language.code if self._config.shots_language == "target" else source)
        stages = () if spec.transfer is None else spec.transfer.stages[-1:]
        for name in dict.fromkeys([spec.task, *stages]):
            origin = stage_origin(self._request, name)
            if origin.spec.source(code, split) is None or origin.spec.kind != spec.kind:
                continue
            try:
                data = origin.find(self._request.finder, code, split)
            except MissingDataError:
                continue
            if not _reveals(data, tested, parallel=spec.pairs(language.code)):
                twins = self._twins(spec, language.code, code)
                pool = ShotPool(
                    owner=name, language=code, split=split, found=data, spec=origin.spec, twins=twins
                )
                self._require_shots(pool)
                return pool
        raise MissingDataError(
            f"No {split} data in {code!r} were found for the shots of {spec.task!r}, apart from what is tested.",
            hint=f"Try --shots-from {_OTHER[split]}, or the other --shots-language.",
        )

    def _require_shots(self, pool: ShotPool) -> None:
        """Raise `DataError` where a pool on this machine has fewer labelled items than shots; read once per pool."""
        kind, shots = self._request.registry.kinds.get(pool.spec.kind), self._config.shots
        key = (kind.name, pool.owner, pool.found.digest())
        if key not in self._labelled:
            context = shot_context(pool)
            count = 0
            with suppress(DataError):  # the cell reports a fault in its rows
                count = shots
                numbered = enumerate(self._request.finder.rows(pool.found), start=1)
                examples = (kind.example(row, number, context) for number, row in numbered)
                labelled = (1 for example in examples if kind.reference(example) is not None)
                count = sum(islice(labelled, shots))
            self._labelled[key] = count
        require_shots(pool, self._labelled[key], shots)

    def _twins(self, spec: TaskSpec, tested: str, code: str) -> FoundData | None:
        """Return the test set in the language of the shots whose items are translations of those that are tested."""
        if tested == code or not (spec.pairs(tested) and spec.pairs(code)):
            return None
        try:
            return stage_origin(self._request, spec.task).find(self._request.finder, code, "test")
        except MissingDataError:
            return None


def shot_context(pool: ShotPool) -> ReadContext:
    """Return how the rows of a pool are read."""
    return ReadContext.of(pool.spec, pool.owner, pool.language, pool.split, pool.found.label_map)


def require_shots(pool: ShotPool, labelled: int, shots: int) -> None:
    """Raise `MissingDataError` where a pool has fewer labelled items than a prompt needs."""
    if labelled < shots:
        raise MissingDataError(
            f"{pool.found.ref} has {labelled:,} labelled items, fewer than --shots {shots}.",
            hint=f"Give at most --shots {labelled}.",
        )


def _reveals(pool: FoundData, tested: FoundData, *, parallel: bool) -> bool:
    """Return whether shots from a pool could be items that are tested, or their translations.

    A dev file may replace a missing test file; that of a parallel task holds the same items in every language.
    """
    if set(pool.files.paths) & set(tested.files.paths) or pool.files.split_used == "test":
        return True
    return parallel and pool.files.split_used == tested.files.split_used
