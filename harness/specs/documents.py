"""Documents besides tasks and suites: prompts, fragments, recipes and published scores, each of its own sort.

A prompt says how items of a task become text. A fragment is a language that someone else ships for a task: its data and
the words of its prompts. A recipe is named training settings. Published scores are those that a paper prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from harness.errors import UsageError
from harness.specs.schema import (
    Code,
    LanguageEntry,
    LiteralProvenance,
    Name,
    Preset,
    ProtocolName,
    Provenance,
    Release,
    SpecModel,
)

if TYPE_CHECKING:
    from harness.models.capabilities import Head, ModelDescription, TrainingSettings

ALL_LANGUAGES = "mul"
"""The code of words that belong to no language, such as the class ids of mT5 (ISO 639: multiple languages)."""

Formulation = Literal["cloze", "letters", "hybrid", "generation"]
PromptName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*/[a-z0-9][a-z0-9_\-]*$")]


class Literals(SpecModel):
    """The words of a prompt in one language."""

    provenance: LiteralProvenance
    """`native`: written by a speaker; `translated`: translated, not reviewed; `copied`: taken from the named source."""
    source: str = ""
    """The words were taken from it, where they are ``copied``."""
    words: dict[str, str] = Field(min_length=1)
    """Name -> text; ``label.X`` is the word for the label X, ``connective.cause`` one of a table."""


class LanguageTemplates(SpecModel):
    """Templates that differ in one language; None takes the prompt's."""

    item: str | None = None
    """In place of `item`."""
    choice: str | None = None
    """In place of `choice`."""
    answer: str | None = None
    """In place of `answer`."""


class AddedWords(LanguageTemplates, Literals):
    """The words of a task's prompt in one language, and templates where the language needs its own.

    Its provenance says who wrote the words, not how the items were made.
    """


class PromptSpec(SpecModel):
    """One preset for one or several tasks of the same kind: ``prompt: xnli/lm_eval``."""

    prompt: PromptName
    """Family and preset: ``xnli/default``."""
    tasks: tuple[Name, ...] = Field(min_length=1)
    """Tasks and training sets whose items it renders."""
    kind: Name
    formulation: Formulation
    """`cloze` ranks answer texts, `letters` ranks letters of listed choices, `hybrid` ranks the answer texts after
    listing them, `generation` lets the model write."""
    description: str
    source: str
    """Where it comes from: a paper, or another harness and its version."""
    system: str = ""
    """The text before everything else, or the system turn of a conversation."""
    item: str = ""
    """The text of an item up to its answer."""
    omits: tuple[str, ...] = ()
    """Inputs of its tasks that it does not show on purpose; without them the task audit reports a fault."""
    choice: str = ""
    """What is ranked after `item`, once for every choice; needed by formulations that rank."""
    choice_line: str = "{letter}. {choice}"
    """One line of ``{choices}``."""
    answer: str = ""
    """The gold text after `item`, for shots and for training a text-to-text model; `choice` where it is empty."""
    unconditional: str | None = None
    """A context without the item; where it is given, choices are also scored after it (PMI)."""
    between: str = "\n\n"
    """The text between shots."""
    shot_order: Literal["drawn", "file"] = "drawn"
    """`drawn` draws the shots of every item; `file` takes the first ones in their order, for published exemplars."""
    shots_language: Code | None = None
    """The language of the shots, in place of what ``--shots-language`` says."""
    stop: tuple[str, ...] = ("\n",)
    """A written answer ends before the first of them; ``{question_word}`` is filled with the literal."""
    chat_stop: tuple[str, ...] = ()
    """The same in a conversation, where an answer ends by itself."""
    max_tokens: Annotated[int, Field(ge=1)] = 32
    """A written answer has at most so many."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 is greedy; above it every item is sampled with a seed of its own."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of sampling."""
    reasoning_markers: tuple[str, str] | None = None
    """The marks that the prompt asks the model to put before and after its reasoning; what is between is no answer."""
    parser: Name | None = None
    """How a generated text is read; None takes the kind's."""
    answer_regex: str | None = None
    """What of a generated text is read: the first group of the last match, or the whole match."""
    literals_from: PromptName | None = None
    """A prompt whose literals are taken where this one has no words."""
    literals: dict[Code, Literals] = Field(default={})
    """Words by language; those of `mul` hold in every language that does not say otherwise."""
    templates: dict[Code, LanguageTemplates] = Field(default={})
    """For prompts of others whose structure is not the same in all languages."""

    @property
    def preset(self) -> str:
        """The part of the name that users give: ``lm_eval``."""
        return self.prompt.split("/")[1]

    def worded(self, language: str, given: AddedWords) -> PromptSpec:
        """Return the prompt with words, and templates where they are given, that a fragment brings for a language."""
        words = Literals(provenance=given.provenance, source=given.source, words=given.words)
        language_templates = LanguageTemplates(item=given.item, choice=given.choice, answer=given.answer)
        templates = (
            self.templates
            if language_templates == LanguageTemplates()
            else {**self.templates, language: language_templates}
        )
        return self.model_copy(
            update={"literals": {**self.literals, language: words}, "templates": templates}
        )

    @model_validator(mode="after")
    def _ranks_something(self) -> PromptSpec:
        if self.formulation != "generation" and not self.choice:
            raise ValueError(f"the formulation {self.formulation!r} ranks choices: give 'choice'")
        if self.formulation == "generation" and not (self.answer or self.choice):
            raise ValueError("'answer' is missing: the gold text of shots")
        return self


_NO_PROVENANCE = (
    "'provenance' is missing: how the test items were made, one of "
    f"{', '.join(map(repr, get_args(Provenance)))}"
)


class AddedLanguage(LanguageEntry):
    """A language that a fragment adds to a task, or words alone for one that the task has."""

    prompts: dict[Preset, AddedWords] = Field(default={})
    """Preset of the task -> its words in the language."""

    @property
    def words_alone(self) -> bool:
        """Whether it only brings words for a language that the task has already."""
        return self.model_fields_set == {"prompts"}

    @model_validator(mode="after")
    def _says_how_it_was_made(self) -> AddedLanguage:
        if self.provenance is None and not self.words_alone:
            raise ValueError(_NO_PROVENANCE)
        return self


def _not_empty(entry: AddedLanguage | None) -> AddedLanguage:
    if entry is None:
        raise ValueError(_NO_PROVENANCE)
    return entry


class FragmentSpec(SpecModel):
    """Further languages of a task that someone else ships."""

    extends: Name
    """The name of the task."""
    on_request: bool = False
    """Whether its languages are run only where they are named: another data set, in the format of the task's."""
    releases: dict[str, Release] = Field(default={})
    """Known releases of the test sets in these languages by name."""
    languages: dict[Code, Annotated[AddedLanguage | None, AfterValidator(_not_empty)]] = Field(min_length=1)
    """By code: what the task gets."""

    @property
    def entries(self) -> dict[str, AddedLanguage]:
        """The languages, each with an entry."""
        return {code: entry for code, entry in self.languages.items() if entry is not None}


HeadName = Literal[
    "classification", "multiple_choice", "tagging", "span_extraction", "dual_encoder", "text_to_text"
]
"""The values of `harness.models.capabilities.Head`, which is not imported here because it brings numpy."""


class SettingsPatch(SpecModel):
    """Some of the numbers of `harness.models.capabilities.TrainingSettings`."""

    learning_rate: Annotated[float, Field(gt=0)] | None = None
    """The highest one, after the warm-up."""
    epochs: Annotated[float, Field(gt=0)] | None = None
    """How often all training items are seen."""
    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Examples of one step of the optimiser, over all devices."""
    max_length: Annotated[int, Field(ge=8)] | None = None
    """Tokens that an input is cut at."""
    stride: Annotated[int, Field(ge=0)] | None = None
    """Tokens from the start of one window of a long context to the start of the next."""
    max_query_length: Annotated[int, Field(ge=1)] | None = None
    """Tokens that a question is cut at."""
    max_answer_length: Annotated[int, Field(ge=1)] | None = None
    """The longest answer, in tokens, that is looked for."""
    n_best: Annotated[int, Field(ge=1)] | None = None
    """So many starts and ends of answers are combined."""
    warmup_steps: Annotated[int, Field(ge=0)] | None = None
    """Steps in which the learning rate rises."""
    warmup_share: Annotated[float, Field(ge=0, lt=1)] | None = None
    """The same as a share of all steps."""
    weight_decay: Annotated[float, Field(ge=0)] | None = None
    """Of the optimiser, not for biases and norms."""
    adam_epsilon: Annotated[float, Field(gt=0)] | None = None
    """Of AdamW."""
    max_grad_norm: Annotated[float, Field(gt=0)] | None = None
    """Longer gradients are cut to it."""
    eval_steps: Annotated[int, Field(ge=1)] | None = None
    """Steps between evaluations on the dev set; null evaluates once an epoch."""
    select_best: bool | None = None
    """Whether the checkpoint that is best on the dev set is kept, rather than the last one."""
    validation_limit: Annotated[int, Field(ge=1)] | None = None
    """At most so many items of the dev set choose the checkpoint."""
    freeze_embeddings: bool | None = None
    """Whether the embeddings stay as they are."""
    max_steps: Annotated[int, Field(ge=1)] | None = None
    """Training ends after so many steps, whatever `epochs` says."""
    group_by_length: bool | None = None
    """Whether a batch holds examples of like length."""
    pooling: Literal["pooler", "mean", "cls"] | None = None
    """How a dual encoder makes one vector of a text."""
    max_target_length: Annotated[int, Field(ge=1)] | None = None
    """Tokens that the target of a text pair is cut at."""
    lr_schedule: Literal["linear", "constant"] | None = None
    """The learning rate after the warm-up."""
    optimizer: Literal["adamw", "adafactor"] | None = None
    """Which one."""
    lora_rank: Annotated[int, Field(ge=1)] | None = None
    """Rank of the matrices that are trained next to frozen weights (LoRA); without it all weights are trained."""
    lora_alpha: Annotated[int, Field(ge=1)] | None = None
    """What the matrices add is multiplied by lora_alpha / lora_rank."""
    lora_dropout: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Dropout of what the matrices read."""
    lora_targets: tuple[str, ...] | None = None
    """Last parts of the names of the layers that get matrices; by default all linear layers."""
    quantize: Literal["nf4"] | None = None
    """Stores the frozen weights in 4 bits (QLoRA); needs lora_rank."""


Value = float | int | bool | str


class TunedScore(SpecModel):
    """One point of a grid and what it scored."""

    settings: dict[str, Value]
    """The values that were tried."""
    dev: Annotated[float, Field(ge=0, le=1)] | None
    """The mean over the seeds; null where a training failed."""
    by_seed: dict[str, float] = Field(default={})
    """The score of each training seed."""
    fits: tuple[str, ...] = ()
    """The digests of the fits, one per seed."""
    failure: str = ""
    """Why a training failed."""


class TunedFit(SpecModel):
    """Chosen settings for the training sets of one fit, and the candidates."""

    stages: tuple[Name, ...] = Field(min_length=1)
    """The training sets, one after the other."""
    language: Code
    """Of the dev set."""
    items: Annotated[int, Field(ge=1)]
    """Of the dev set."""
    metric: str
    """What was measured on the dev set."""
    chosen: dict[str, Value]
    """The values with the best score."""
    scores: tuple[TunedScore, ...] = Field(min_length=1)
    """All points of the grid, in its order."""


class Tuning(SpecModel):
    """How ``harness tune`` chose the settings of a recipe."""

    recipe: Name
    """The recipe that it began with."""
    model: dict[str, str]
    """The identity of the model that was trained."""
    grid: dict[str, Annotated[tuple[Value, ...], Field(min_length=1)]]
    """Setting -> the values that were tried."""
    seeds: tuple[int, ...]
    """Of the trainings."""
    fits: tuple[TunedFit, ...] = Field(min_length=1)
    """What was chosen for each."""


class RecipeSpec(SpecModel):
    """Named training settings. Later ones win: settings, head, stage, then the same three for large models."""

    recipe: Name
    """The name."""
    description: str
    source: str
    """Where the numbers come from."""
    settings: SettingsPatch
    """What all stages have."""
    heads: dict[HeadName, SettingsPatch] = Field(default={})
    """By head: what differs."""
    stages: dict[Name, SettingsPatch] = Field(default={})
    """By training set: what differs."""
    large_layers: Annotated[int, Field(ge=1)] = 24
    """Models with at least so many layers also take the settings under `large`."""
    large: SettingsPatch | None = None
    """`settings` of large models."""
    large_heads: dict[HeadName, SettingsPatch] = Field(default={})
    """`heads` of large models."""
    large_stages: dict[Name, SettingsPatch] = Field(default={})
    """`stages` of large models."""
    tuned: Tuning | None = None
    """How its settings were chosen, where ``harness tune`` wrote it."""

    def tuned_fit(self, stages: tuple[str, ...]) -> TunedFit | None:
        """Return the chosen settings for a fit of these training sets; None where nothing was chosen."""
        fits = () if self.tuned is None else self.tuned.fits
        return next((fit for fit in fits if fit.stages == stages), None)


def resolve_settings(recipe: RecipeSpec, head: Head, stage: str, model: ModelDescription) -> TrainingSettings:
    """Return the settings for a head and stage; later patches win, those for large models last.

    Raises `UsageError` where learning rate, epochs or batch size are given nowhere, and for `quantize` without
    `lora_rank`.
    """
    from harness.models.capabilities import TrainingSettings

    patches: list[SettingsPatch | None] = [
        recipe.settings,
        recipe.heads.get(head.value),
        recipe.stages.get(stage),
    ]
    if model.layers is not None and model.layers >= recipe.large_layers:
        patches += [recipe.large, recipe.large_heads.get(head.value), recipe.large_stages.get(stage)]
    values: dict[str, Any] = {}
    for patch in patches:
        if patch is not None:
            values |= patch.model_dump(exclude_none=True)
    missing = [name for name in ("learning_rate", "epochs", "batch_size") if name not in values]
    if missing:
        raise UsageError(
            f"The recipe {recipe.recipe!r} gives no {', '.join(missing)} for the stage {stage!r} ({head.value})."
        )
    if "quantize" in values and "lora_rank" not in values:
        raise UsageError(
            f"The recipe {recipe.recipe!r} has quantize: {values['quantize']} but no lora_rank: quantised weights "
            "cannot be trained themselves."
        )
    return TrainingSettings(**values)


Percent = Annotated[float, Field(ge=-100, le=100)]
"""Below 0 only for metrics whose `lowest` value is."""
Count = Annotated[int, Field(gt=0)]
ByTest = dict[str, Percent]


class SystemScores(SpecModel):
    """The scores of one system, in percent as printed."""

    label: str = ""
    """The name of the system in tables, ``XLM-R Large``; of one among several, by default its key."""
    views: dict[Name, dict[Name, str]] = Field(default={})
    """By task: the conditions under which it was scored, ``variant: tt``. A report shows its score under columns of
    these conditions. Who translated is said by the label: runs give translators names of their own."""
    scores: dict[Name, Annotated[dict[Name, Percent], Field(min_length=1)]] = Field(default={})
    """By task and metric: the mean over languages."""
    languages: dict[Name, dict[Name, Annotated[dict[Code, Percent], Field(min_length=1)]]] = Field(default={})
    """By task, metric and language: the tables by language, as far as they are printed and legible."""
    families: dict[Name, dict[Name, Annotated[dict[str, Percent], Field(min_length=1)]]] = Field(default={})
    """By task, metric and family: means over the languages of families, where only these are printed."""
    groups: dict[Name, dict[Name, Annotated[dict[Code, ByTest], Field(min_length=1)]]] = Field(default={})
    """By task, metric, language and group: the scores on the tests of a checklist."""
    layers: dict[Name, Annotated[dict[Code, Count], Field(min_length=1)]] = Field(default={})
    """By task and language: the layer of a model whose probe has the score."""

    @model_validator(mode="after")
    def _names_scored_tasks(self) -> SystemScores:
        for key in ("views", "layers"):
            if unknown := sorted(set(getattr(self, key)) - set(self.scores)):
                raise ValueError(f"{key} names {', '.join(unknown)}, which 'scores' does not have")
        for key in ("languages", "families", "groups"):
            for task, tables in getattr(self, key).items():
                if task not in self.scores:
                    raise ValueError(f"{key} names {task}, which 'scores' does not have")
                missing = [metric for metric in tables if metric not in self.scores[task]]
                if missing:
                    raise ValueError(
                        f"{key}.{task} has {', '.join(missing)}, which scores.{task} does not have"
                    )
        return self


class PublishedSpec(SystemScores):
    """The published scores of one system or several, shown next to a run's and never mixed with them."""

    published: Name
    """The name."""
    suite: Name | None = None
    """The suite whose tasks were scored; null for tasks of no suite."""
    protocol: ProtocolName | Literal["human"]
    recipe: str
    """How the system was trained."""
    release: str
    """The data that it was scored on."""
    source: str
    """Paper and tables. Two sources of one system are two documents."""
    comparable: dict[Name, str] = Field(default={})
    """By task: why its number cannot be compared with a run's, or with the other rows."""
    errata: dict[Name, str] = Field(default={})
    """By task: where the paper disagrees with itself or cannot be read."""
    items: dict[Name, Annotated[dict[Code, Count], Field(min_length=1)]] = Field(default={})
    """By task and language: how many items were scored, where they are other ones than the release's or few."""
    overall: Percent | None = None
    """The printed average of the suite; null where none is printed."""
    systems: dict[str, SystemScores] = Field(default={})
    """The scores of several systems of one source, in place of `label` and `scores`. Systems of one label are one row
    of a report, each in the columns of its conditions."""

    @model_validator(mode="after")
    def _scores_systems(self) -> PublishedSpec:
        if bool(self.systems) == bool(self.scores) or bool(self.scores) != bool(self.label):
            raise ValueError("expected either 'label' and 'scores', or 'systems'")
        systems = [self, *self.systems.values()]
        scored = {task for system in systems for task in system.scores}
        for key in ("comparable", "errata", "items"):
            unknown = [task for task in getattr(self, key) if task not in scored]
            if unknown:
                raise ValueError(f"{key} names {', '.join(unknown)}, which 'scores' does not have")
        return self

    def each(self) -> Iterator[PublishedSpec]:
        """Yield one document for every system, with what is said of its own tasks."""
        if not self.systems:
            yield self
        for label, system in self.systems.items():
            by_task = {
                key: {task: value for task, value in getattr(self, key).items() if task in system.scores}
                for key in ("comparable", "errata", "items")
            }
            fields = {key: getattr(system, key) for key in SystemScores.model_fields}
            yield self.model_copy(update={**fields, "label": system.label or label, "systems": {}, **by_task})
