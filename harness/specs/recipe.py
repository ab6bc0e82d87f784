"""A recipe: named training settings, as a YAML document of its own sort."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.specs.schema import Code, Name, SpecModel

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
