"""Methods: how a kind of task uses a capability, and which method and protocol a model gets.

The choice is made before any model is loaded, from what `describe` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.data.records import CandidatePool, Prediction
from harness.languages.table import Language
from harness.models.capabilities import (
    HEAD_CAPABILITY,
    Capability,
    Constraint,
    Generates,
    Head,
    ModelDescription,
    ScoresContinuations,
)
from harness.models.requests import GenerateOptions
from harness.progress import Progress
from harness.prompts.asking import generate_answers, rank_choices
from harness.prompts.letter_answer import read_letter
from harness.prompts.parsing import read_choice
from harness.prompts.preset import LETTERS
from harness.prompts.prompter import Prompter
from harness.specs.documents import PromptSpec
from harness.specs.schema import TaskSpec

FITTING_PROTOCOLS = frozenset({"zero_shot_transfer", "translate_train", "translate_train_all", "in_language"})
"""Protocols that fine-tune; `frozen` and `prompted` use the model as it is."""

LearnedSplit = Literal["train", "validation"]
"""A split that a method may learn from by itself, while the model stays as it is."""


def _nothing() -> None:
    pass


def _unconstrained(prompt: PromptSpec) -> None:
    """Return None: the answers have no form that could be kept to."""


def _no_split(name: LearnedSplit) -> list[Any]:
    raise ValueError(f"The method did not declare that it learns from the split {name!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningContext:
    """What a method learns from by itself, and the other cells that learn from the same."""

    view: Mapping[str, str] = field(default_factory=dict)
    """Variant, axes, and whatever else makes the cell's number what it is."""
    train_language: str | None = None
    seeds: tuple[int, ...] = ()
    """Seeds of the cells that differ from this one in their seed alone, finished ones included."""
    data: str = ""
    """Names the files of test, train and validation: cells where it is equal read the same sentences."""
    split: Callable[[LearnedSplit], list[Any]] = _no_split
    """Reads the examples of a split that the method learns from, after ``--train-limit``; raises `DataError`."""
    test: Callable[[], Iterable[Any]] = tuple
    """Reads the cell's items, after ``--limit``, in the order in which `Method.predict` gets them."""
    peers: Callable[[], Sequence[MethodContext]] = tuple
    """Returns the contexts of all unfinished cells of this opened model with the same method, also this cell's."""
    folder: Path = Path()
    """Where caches are kept between runs."""
    check: Callable[[], None] = _nothing
    """Raises where the user wants the run to stop; called now and then by long work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodContext:
    """Context of the cell for a method, apart from its examples."""

    spec: TaskSpec
    language: Language
    """Of prompts and answers: of a translation into English it is English."""
    protocol: str
    seed: int
    cell_language: Language | None = None
    """Language that names the cell, which is the other one of a translation; None where it is `language`."""
    pool: Sequence[Any] = field(default_factory=tuple)
    """All examples of the split, also those that a limit skips: the candidates of bitext retrieval."""
    candidates: CandidatePool | None = None
    """The pool of a kind that has one of its own."""
    cache: MutableMapping[str, Any] = field(default_factory=dict)
    """Values that methods keep between the cells of one opened model: the vectors of a pool that languages share."""
    progress: Progress = field(default_factory=Progress)
    prompter: Prompter | None = None
    """Builds the prompts of methods that are `prompted`."""
    digest: str = ""
    """Names the cell within its run."""
    learning: LearningContext = field(default_factory=LearningContext)
    """For methods with `Method.splits`, which learn by themselves."""
    details: dict[str, Any] = field(default_factory=dict)
    """Plain JSON that is kept in the cell's result as ``details``; filled before the last item is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to get predictions for one kind of task from a model with one capability."""

    name: str
    """``head``, ``rank``, ``generate``, ``translate``, ``embed``, ``probe``."""
    kind: str
    requires: Capability
    protocols: frozenset[str]
    """The protocols that it can serve."""
    predict: Callable[[Any, Sequence[Any], MethodContext], list[Prediction]]
    """Called with an adapter that has the capability and some examples; one prediction per example, in order."""
    prepare: Callable[[Any, MethodContext], None] | None = None
    """Called once per cell before `predict`, for work that is not done item by item; may fill the context's cache."""
    prompted: bool = False
    """Whether it asks with prompts."""
    needs_all: bool = False
    """Whether it must see all examples in one call (retrieval); others are called in chunks."""
    splits: frozenset[LearnedSplit] = frozenset()
    """Splits that it learns from by itself, while the model stays as it is (probing)."""
    seeds: tuple[int, ...] = ()
    """Of a method that learns: one cell each where the user names none."""
    repeatable: bool = False
    """Whether a run may ask for several answers per item: they are written, and right or wrong as a whole."""
    constraint: Callable[[PromptSpec], Constraint | None] = _unconstrained
    """Constraint that ``--constrained`` sets on the answers to a prompt."""
    on_request: bool = False
    """Whether it is taken only where ``--method`` names it, or where the task's own protocols have one of its own."""


Predict = Callable[[Any, Sequence[Any], MethodContext], list[Prediction]]


def head_method(kind: str, requires: Capability, predict: Predict) -> Method:
    """Return the method `head` of a kind: a fine-tuned model answers by its head."""
    protocols = FITTING_PROTOCOLS | {"frozen"}
    return Method(name="head", kind=kind, requires=requires, protocols=protocols, predict=predict)


def generate_method(
    kind: str,
    predict: Predict,
    *,
    repeatable: bool = True,
    constraint: Callable[[PromptSpec], Constraint | None] = _unconstrained,
) -> Method:
    """Return the method `generate` of a kind: a model writes the answer to a prompt.

    `repeatable` is False where an answer has parts that are right or wrong by themselves, as tags are.
    """
    return Method(
        name="generate",
        kind=kind,
        requires=Capability.GENERATES,
        protocols=FITTING_PROTOCOLS | {"prompted"},
        predict=predict,
        prompted=True,
        repeatable=repeatable,
        constraint=constraint,
    )


def choice_methods(kind: str) -> tuple[Method, ...]:
    """Return the methods `rank` and `generate` of a kind whose answer is one of several names: labels, or choices."""
    return (
        Method(
            name="rank",
            kind=kind,
            requires=Capability.SCORES_CONTINUATIONS,
            protocols=frozenset({"prompted"}),
            predict=_predict_by_rank,
            prompted=True,
        ),
        generate_method(kind, _predict_by_generation, constraint=lambda _: "choices"),
    )


def _predict_by_rank(
    adapter: ScoresContinuations, examples: Sequence[Any], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    return rank_choices(adapter, examples, context.prompter)


def _predict_by_generation(
    adapter: Generates, examples: Sequence[Any], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    prompter = context.prompter
    spec = prompter.prompt.spec
    by_letter = (spec.parser or ("letter" if spec.formulation == "letters" else "choice")) == "letter"

    languages = (context.language.code, prompter.prompt.literals_language)

    def read(example: Any, text: str) -> tuple[dict[str, Any], bool]:
        item = prompter.item(example)
        words = prompter.prompt.words(item)
        index = read_letter(text, words, languages) if by_letter else read_choice(text, words, languages)
        return {"label": None if index is None else item.choices[index]}, index is not None

    def options(example: Any) -> GenerateOptions:
        words = prompter.prompt.words(prompter.item(example))
        return prompter.options(example, choices=tuple(LETTERS[: len(words)]) if by_letter else words)

    return generate_answers(adapter, examples, prompter, options, read, whole=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A protocol with the method that serves it."""

    protocol: str
    method: Method

    @property
    def fits(self) -> bool:
        """Whether the model is fine-tuned first."""
        return self.protocol in FITTING_PROTOCOLS


def choose_pairings(
    spec: TaskSpec,
    methods: Sequence[Method],
    description: ModelDescription,
    *,
    head: Head | None,
    protocols: Sequence[str] = (),
    method_name: str | None = None,
    suite_protocols: Sequence[str] = (),
) -> tuple[list[Pairing], list[str]]:
    """Return the pairings that a model can do for a task, and a reason for every protocol that it cannot.

    Args:
        spec: The task.
        methods: The methods of its kind, preferred ones first.
        description: What the model offers.
        head: The head that the task's training stages fit; None where it has no stages.
        protocols: What the user asked for; empty takes the spec's own, or `frozen` for a checkpoint that has
            already been fine-tuned for this kind of task, or what a model that cannot be fitted serves as it is.
        method_name: The method that the user asked for.
        suite_protocols: Those of the suites that the task was named through: a model is trained as they average it,
            not as the task's own would.
    """
    methods = [method for method in methods if _is_asked_for(method, spec, method_name)]
    trained = None if spec.transfer is None else head
    of_suites = {name for name in suite_protocols if name in FITTING_PROTOCOLS}
    if of_suites and spec.transfer is not None and not of_suites & set(spec.protocols):
        spec = spec.model_copy(update={"protocols": tuple(sorted(of_suites))})
    chosen_protocols = tuple(protocols) or _default_protocols(spec, methods, description, head, method_name)
    allowed = [method for method in methods if method_name in (None, method.name)]
    pairings: list[Pairing] = []
    reasons: list[str] = []
    for protocol in chosen_protocols:
        serving = [method for method in allowed if protocol in method.protocols]
        able = [method for method in serving if _is_able(method, protocol, description, trained)]
        strange = (
            _label_fault(spec, able[0], description) if able and protocol not in FITTING_PROTOCOLS else None
        )
        if strange is not None:
            reasons.append(strange)
        elif able:
            pairings.append(Pairing(protocol=protocol, method=able[0]))
        else:
            reasons.append(_why_not(spec, protocol, serving, description, trained, method_name))
    return pairings, reasons


def _is_asked_for(method: Method, spec: TaskSpec, method_name: str | None) -> bool:
    return not method.on_request or method.name == method_name or bool(method.protocols & set(spec.protocols))


def _default_protocols(
    spec: TaskSpec,
    methods: Sequence[Method],
    description: ModelDescription,
    head: Head | None,
    method_name: str | None,
) -> tuple[str, ...]:
    on_request = {
        name
        for method in methods
        if method.on_request and method_name in (None, method.name)
        for name in method.protocols
    }
    if on_request:
        return tuple(name for name in spec.protocols if name in on_request) or tuple(sorted(on_request))
    # Every encoder embeds and every text-to-text model writes: only a head that adds an ability shows that a
    # checkpoint was fine-tuned for the task.
    adds_nothing = head in {None, Head.DUAL_ENCODER, Head.TEXT_TO_TEXT}
    already_fitted = head is not None and not adds_nothing and HEAD_CAPABILITY[head] in description.offers
    if already_fitted and any("frozen" in method.protocols for method in methods):
        return ("frozen",)
    fits = Capability.FITS in description.offers and not description.fits_on_request
    if fits and spec.transfer is not None:
        return spec.protocols
    able = [method for method in methods if method.requires in description.offers]
    without_fit = sorted({name for method in able for name in method.protocols} - FITTING_PROTOCOLS)
    return tuple(without_fit) or spec.protocols


def _is_able(method: Method, protocol: str, description: ModelDescription, head: Head | None) -> bool:
    if protocol not in FITTING_PROTOCOLS:
        return method.requires in description.offers
    if head is None or Capability.FITS not in description.offers:
        return False
    return method.requires in description.after_fit.get(head, frozenset())


def _label_fault(spec: TaskSpec, method: Method, description: ModelDescription) -> str | None:
    """Return why a fine-tuned checkpoint's labels are not those of a task; None where they are, or it names none."""
    if method.requires not in {Capability.CLASSIFIES, Capability.TAGS}:
        return None
    if not description.labels or not spec.label_names:
        return None
    model_clause = f"{description.ref} has the labels {', '.join(description.labels)}"
    task_clause = f"the task {spec.task!r} has {', '.join(spec.label_names)}"
    names = ",".join(["NAME"] * len(description.labels))
    rename = f"give these names in the order of its outputs with -o labels={names}"
    if method.requires is Capability.TAGS:
        # A tagger of more or fewer types is of use: its other tags are wrong answers.
        shared = set(description.labels) & set(spec.label_names) - {"O"}
        return None if shared else f"{model_clause}, and {task_clause}, of which none is its own: {rename}"
    folded_labels = sorted(label.casefold() for label in description.labels)
    if folded_labels == sorted(label.casefold() for label in spec.label_names):
        return None
    if len(folded_labels) != len(spec.label_names):
        return f"{model_clause} ({len(folded_labels)}), and {task_clause} ({len(spec.label_names)})"
    return f"{model_clause}, and {task_clause}: {rename}"


def missing_tags(spec: TaskSpec, pairing: Pairing, description: ModelDescription) -> list[str]:
    """Return the tags of a task that a fine-tuned tagger never gives; empty for any other model."""
    if pairing.method.requires is not Capability.TAGS or pairing.protocol in FITTING_PROTOCOLS:
        return []
    return [name for name in spec.label_names if description.labels and name not in description.labels]


def _why_not(
    spec: TaskSpec,
    protocol: str,
    serving: Sequence[Method],
    description: ModelDescription,
    head: Head | None,
    method_name: str | None,
) -> str:
    if not serving:
        subject = f"the method {method_name!r}" if method_name else f"the kind {spec.kind!r}"
        return f"{subject} does not serve the protocol {protocol!r} of task {spec.task!r}"
    needs = " or ".join(sorted({method.requires.value for method in serving}))
    if protocol in FITTING_PROTOCOLS and head is None:
        return (
            f"the protocol {protocol!r} needs training data, and the task {spec.task!r} names none: add 'transfer', "
            "add a prompt for models that write, or evaluate a model that is fine-tuned already"
        )
    if protocol in FITTING_PROTOCOLS:
        needs = f"Fits and then {needs}"
    offers = ", ".join(sorted(description.offers)) or "nothing"
    note = f" ({description.note})" if description.note else ""
    return f"{protocol!r} needs {needs}; {description.adapter}:{description.ref} offers {offers}{note}"
