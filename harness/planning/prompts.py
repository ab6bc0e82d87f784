"""How models are asked: preset, words and shots of prompts, sampling, several answers per item, and reasoning."""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from typing import Any

from harness.checks.prompt_checks import needed_words, place_of_words
from harness.data.sources import FoundData
from harness.errors import CapabilityError, DataError, MissingDataError, UsageError
from harness.kinds.kind import ReadContext
from harness.kinds.methods import Pairing
from harness.languages.table import Language
from harness.models.capabilities import Capability
from harness.models.options import ReasoningOptions, SamplingOptions
from harness.planning.fits import stage_origin
from harness.planning.plan import PlanRequest, PromptPlan, ShotPool
from harness.prompts.parsing import answer_regex
from harness.specs.documents import PromptSpec
from harness.specs.schema import TaskSpec
from harness.specs.task_entry import TaskEntry

WRITES = "generate"
CONSTRAINTS = {"choices": "their list", "regex": "a regular expression", "json_schema": "a JSON schema"}
LONGEST = 24
"""Characters of an option's value in a view."""


def sampled_prompt(request: PlanRequest, spec: PromptSpec, method: str) -> PromptSpec:
    """Return a prompt with what the user gave in place of its own: temperature, limit, stops, system turn ...

    Raises `UsageError` for a regular expression that is not valid, or could take very long.
    """
    options = _sampling_options(request)
    if "stop" in options:
        # Commas part them, and a shell passes no line end.
        stops = tuple(options["stop"].replace("\\n", "\n").split(","))
        options |= {"stop": tuple(map(_plain, stops)), "chat_stop": stops}
    if "system" in options:
        options["system"] = _plain(options["system"]) + "\n\n"
    try:
        answer_regex(options.get("answer_regex", ""))
    except ValueError as error:
        raise UsageError(f"The option answer_regex is {options['answer_regex']!r}, but {error}.") from error
    return spec.model_copy(update=options) if options and method == WRITES else spec


def repeats(request: PlanRequest, method: str) -> int:
    """Return how many answers an item gets."""
    return request.config.repeats if method == WRITES else 1


def require_askable(request: PlanRequest, task: str, pairing: Pairing, spec: PromptSpec) -> None:
    """Raise `UsageError` for several greedy answers, which are all the same.

    Raises `CapabilityError` for a task whose answers cannot be repeated, and where the model is to reason and is
    not asked in turns, or does not write, or cannot keep to what ``--constrained`` allows.
    """
    method = pairing.method
    if repeats(request, method.name) > 1:
        if spec.temperature == 0:
            raise UsageError(
                f"--repeats {request.config.repeats} needs sampled answers: at temperature 0 all answers to an item "
                "are the same.",
                hint="Give a temperature, such as -o temperature=0.7.",
            )
        if not method.repeatable:
            raise CapabilityError(
                f"--repeats needs answers that are right or wrong as a whole, and those of {task!r} have parts"
            )
    _require_turns(request, task, method.name)
    supported, constraint = request.model.description.constraints, method.constraint(spec)
    if not request.config.constrained or supported is None or constraint is None:
        return
    if constraint not in supported:
        raise CapabilityError(
            f"--constrained keeps the answers to {task!r} to {CONSTRAINTS[constraint]}, and "
            f"{request.model.reference} cannot do that: omit --constrained, or serve the model with vLLM (vllm:URL)"
        )


def _require_turns(request: PlanRequest, task: str, method: str) -> None:
    reasoning, name = _reasoning(request), str(request.model.reference)
    if method != WRITES:
        if reasoning.reasons:
            raise CapabilityError(
                f"{task!r} ranks given answers by log-likelihood, and {name} is to reason before it answers "
                f"({_given(reasoning)}): an answer without its reasoning has no likelihood of its own. Add --chat, and "
                "the model writes its answer; or give -o thinking=off"
            )
        return
    # A chat endpoint ranks nothing, and takes every prompt as a turn.
    offers = request.model.description.offers
    in_turns = request.config.chat or Capability.SCORES_CONTINUATIONS not in offers
    if reasoning.template_variables() and not in_turns:
        raise CapabilityError(
            f"{_given(reasoning)} is a switch of the chat template, and {task!r} is asked without it: add --chat"
        )
    if reasoning.reasons and request.config.constrained:
        raise CapabilityError(
            f"--constrained allows only valid answers to {task!r}, and {name} is to reason before them "
            f"({_given(reasoning)}): omit one of both"
        )


def asking_view(request: PlanRequest, method: str) -> dict[str, str]:
    """Return the conditions of a cell that were given."""
    if method != WRITES:
        return {}
    count = repeats(request, method)
    view = {"repeats": str(count)} if count > 1 else {}
    view |= {name: _short(value) for name, value in _sampling_options(request).items()}
    return view | _reasoning_view(_reasoning(request))


def _sampling_options(request: PlanRequest) -> dict[str, Any]:
    options = request.model.options
    values = {name: getattr(options, name, None) for name in SamplingOptions.model_fields}
    is_sampled = isinstance(options, SamplingOptions)
    return {name: value for name, value in values.items() if is_sampled and value is not None}


def _reasoning(request: PlanRequest) -> ReasoningOptions:
    options = request.model.options
    return options if isinstance(options, ReasoningOptions) else ReasoningOptions()


def _plain(text: str) -> str:
    """Return a text as a template writes it: without slots."""
    return text.replace("{", "{{").replace("}", "}}")


def _short(value: float | str) -> str:
    """Return the value of an option for a view, which heads columns: a long text by its beginning and a digest."""
    if not isinstance(value, str):
        return f"{value:g}"
    if len(value) <= LONGEST and value.isprintable():
        return value
    digest = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{' '.join(value.split())[: LONGEST - 8]}\u2026{digest}"


def _reasoning_view(options: ReasoningOptions) -> dict[str, str]:
    return {name.removeprefix("option."): value for name, value in options.reasoning_identity().items()}


def _given(options: ReasoningOptions) -> str:
    return ", ".join(f"-o {name}={value}" for name, value in _reasoning_view(options).items())


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
