from __future__ import annotations

from typing import Any

import pytest

from harness.errors import UsageError
from harness.models.capabilities import Head, ModelDescription
from harness.running.session import Session
from harness.specs.documents import RecipeSpec, resolve_settings
from harness.specs.loading import read_yaml
from harness.specs.validating import validate_document

RECIPE = """
recipe: mine
description: d
source: s
settings: {learning_rate: 1e-5, epochs: 1, batch_size: 1, max_length: 11, weight_decay: 0.1}
heads: {tagging: {epochs: 2, batch_size: 2, max_length: 12}}
stages: {udpos: {batch_size: 3, max_length: 13}}
large_layers: 20
large: {learning_rate: 4e-5, max_length: 14}
large_heads: {tagging: {max_length: 15, weight_decay: 0.5}}
large_stages: {udpos: {weight_decay: 0.6}}
"""


def _model(layers: int | None) -> ModelDescription:
    return ModelDescription(adapter="a", ref="r", offers=frozenset(), layers=layers)


def _recipe(text: str) -> RecipeSpec:
    return validate_document(RecipeSpec, read_yaml(text, "r.yaml"))


def _settings(layers: int | None, head: Head, stage: str) -> tuple[Any, ...]:
    settings = resolve_settings(_recipe(RECIPE), head, stage, _model(layers))
    names = ("learning_rate", "epochs", "batch_size", "max_length", "weight_decay")
    return tuple(getattr(settings, name) for name in names)


@pytest.mark.parametrize(
    ("layers", "head", "stage", "expected"),
    [
        (12, Head.CLASSIFICATION, "mnli", (1e-5, 1, 1, 11, 0.1)),
        (12, Head.TAGGING, "other", (1e-5, 2, 2, 12, 0.1)),
        (12, Head.TAGGING, "udpos", (1e-5, 2, 3, 13, 0.1)),
        (None, Head.TAGGING, "udpos", (1e-5, 2, 3, 13, 0.1)),
        (19, Head.TAGGING, "udpos", (1e-5, 2, 3, 13, 0.1)),
        (20, Head.CLASSIFICATION, "mnli", (4e-5, 1, 1, 14, 0.1)),
        (24, Head.TAGGING, "other", (4e-5, 2, 2, 15, 0.5)),
        (24, Head.TAGGING, "udpos", (4e-5, 2, 3, 15, 0.6)),
    ],
)
def test_later_patches_win(layers: int | None, head: Head, stage: str, expected: tuple[Any, ...]) -> None:
    assert _settings(layers, head, stage) == expected


def test_settings_missing_in_a_recipe_are_reported() -> None:
    recipe = _recipe("recipe: mine\ndescription: d\nsource: s\nsettings: {epochs: 1}\n")
    with pytest.raises(UsageError) as caught:
        resolve_settings(recipe, Head.TAGGING, "udpos", _model(None))
    assert str(caught.value) == (
        "The recipe 'mine' gives no learning_rate, batch_size for the stage 'udpos' (tagging)."
    )


@pytest.mark.parametrize(
    ("name", "layers", "head", "expected"),
    [
        # google-research/xtreme scripts/train_*.sh: 2e-5, 5 epochs; 3e-5 for large models; SQuAD 3e-5, 3 epochs, 384.
        ("xtreme_r", 12, Head.CLASSIFICATION, (2e-5, 5, 32, 128)),
        ("xtreme_r", 24, Head.CLASSIFICATION, (3e-5, 5, 32, 128)),
        ("xtreme_r", 12, Head.TAGGING, (2e-5, 10, 32, 128)),
        ("xtreme_r", 12, Head.SPAN_EXTRACTION, (3e-5, 3, 32, 384)),
        # Ruder et al. (2021), appendix G.
        ("xtreme_r_paper", 12, Head.TAGGING, (2e-5, 2, 32, 128)),
        ("xtreme_r_paper", 24, Head.SPAN_EXTRACTION, (3e-5, 2, 16, 384)),
        # Artetxe et al. (2020), appendix C: XLM-R large on XNLI and MLQA, mBERT on XNLI.
        ("translation_errors", 24, Head.CLASSIFICATION, (5e-6, 2, 30, 128)),
        ("translation_errors", 12, Head.CLASSIFICATION, (2e-5, 2, 32, 128)),
        ("translation_errors", 24, Head.SPAN_EXTRACTION, (3e-5, 3, 32, 384)),
    ],
)
def test_shipped_recipes_say_what_their_sources_say(
    session: Session, name: str, layers: int, head: Head, expected: tuple[Any, ...]
) -> None:
    stage = {Head.CLASSIFICATION: "mnli", Head.SPAN_EXTRACTION: "squad"}.get(head, "any")
    settings = resolve_settings(session.catalog.recipe(name), head, stage, _model(layers))
    assert (
        settings.learning_rate,
        settings.epochs,
        settings.batch_size,
        settings.max_length,
    ) == expected


@pytest.mark.parametrize(
    ("head", "stage", "expected"),
    [
        (Head.CLASSIFICATION, "mnli", (2, 100)),
        (Head.CLASSIFICATION, "pawsx", (5, 100)),
        (Head.SPAN_EXTRACTION, "squad", (3, None)),
    ],
)
def test_stages_of_the_translation_errors_paper(
    session: Session, head: Head, stage: str, expected: tuple[int, int | None]
) -> None:
    settings = resolve_settings(session.catalog.recipe("translation_errors"), head, stage, _model(24))
    assert (settings.epochs, settings.eval_steps) == expected


@pytest.mark.parametrize(
    ("name", "stage", "layers", "expected"),
    [
        # google-research/xtreme at 838c13b: LAReQA 2e-5, 4 answers; Mewsli-X mBERT 2e-5, 64, large 1e-5, 8.
        ("xtreme_r", "squad_sentences", 12, (2e-5, 3, 4, 256, 96, "pooler")),
        ("xtreme_r", "squad_sentences", 24, (2e-5, 3, 4, 256, 96, "pooler")),
        ("xtreme_r", "mewsli_x_pairs", 12, (2e-5, 2, 64, 64, 64, "pooler")),
        ("xtreme_r", "mewsli_x_pairs", 24, (1e-5, 2, 8, 64, 64, "pooler")),
        # Ruder et al. (2021), appendix G; its lengths are those of the scripts.
        ("xtreme_r_paper", "squad_sentences", 12, (2e-5, 2, 32, 256, 96, "pooler")),
        ("xtreme_r_paper", "squad_sentences", 24, (3e-5, 2, 16, 256, 96, "pooler")),
        ("xtreme_r_paper", "mewsli_x_pairs", 12, (2e-5, 2, 32, 64, 64, "pooler")),
        ("quick", "squad_sentences", 12, (5e-5, 1, 16, 160, 64, "mean")),
    ],
)
def test_shipped_recipes_of_dual_encoders(
    session: Session, name: str, stage: str, layers: int, expected: tuple[Any, ...]
) -> None:
    settings = resolve_settings(session.catalog.recipe(name), Head.DUAL_ENCODER, stage, _model(layers))
    names = ("learning_rate", "epochs", "batch_size", "max_length", "max_query_length", "pooling")
    assert tuple(getattr(settings, name) for name in names) == expected
    if name == "xtreme_r":
        assert (settings.warmup_steps, settings.warmup_share, settings.weight_decay) == (0, 0, 0)
    assert not settings.group_by_length


def test_shipped_recipe_of_mt5(session: Session) -> None:
    """Ruder et al. (2021), appendix G: 10k steps, constant 1e-3, 2^17 tokens, every 200 steps the best on dev."""
    recipe = session.catalog.recipe("mt5")
    found = resolve_settings(recipe, Head.TEXT_TO_TEXT, "any", _model(24))
    assert (found.learning_rate, found.lr_schedule, found.optimizer) == (1e-3, "constant", "adafactor")
    assert (found.max_steps, found.eval_steps, found.select_best) == (10_000, 200, True)
    assert found.batch_size * found.max_length == 2**17
    with pytest.raises(UsageError, match="'mt5' gives no learning_rate"):
        resolve_settings(recipe, Head.TAGGING, "any", _model(24))
