"""Trivial answers, leaking prompts and odd items: parts of the audit by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.records import MultipleChoiceExample, RankedQuery, TaggedSentence
from harness.metrics.catalog import METRICS
from harness.metrics.metric import Metric, MetricContext
from harness.prompts.preset import CompiledPrompt, PromptItem
from harness.running.session import open_session
from harness.specs.documents import PromptSpec
from harness_audit.answers import Scored, Trial, kinds_with_answers, trials
from harness_audit.prompt import TaskPrompt, label_findings
from tests.audit.bench import Bench, found_by, scorer
from tests.audit.plants import ARABIC, xnli_prompt

# Metrics ------------------------------------------------------------------------------------------------


def scored(
    kind: str, tried: Metric, examples: Sequence[Any], references: Sequence[Any], labels: tuple[str, ...]
) -> list[Trial]:
    """Return the trials that a metric scores otherwise than it should."""
    context = MetricContext(language="en", labels=labels)
    wrong = []
    for trial in trials(kind, examples, references, labels):
        value = Scored.of(tried, trial, examples, references, context).goodness
        if (value != 1) if trial.check == "gold" else (value or 0.0) > trial.ceiling:
            wrong.append(trial)
    return wrong


def test_a_constant_tag_may_be_right_for_sentences_that_are_one_entity() -> None:
    tags = [["B-PER", "I-PER", "I-PER"], ["B-PER", "I-PER"], ["O", "O", "B-LOC", "O"]] * 4
    examples = [
        TaggedSentence(id=str(number), tokens=tuple(own), tags=tuple(own)) for number, own in enumerate(tags)
    ]
    labels = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    [own] = [item for item in METRICS if item.name == "chunk_f1"]
    assert scored("token_tagging", own, examples, tags, labels) == []
    lenient = scorer("type", lambda guess, gold: bool({*guess} & {*gold}))
    assert "constant" in {trial.check for trial in scored("token_tagging", lenient, examples, tags, labels)}


def test_all_kinds_have_trials() -> None:
    # lm-eval's own tasks are answered and scored by lm-eval, as whole sets of requests; `harness judge` writes the
    # items of judgements from the answers of a run, mostly without gold. Rules check answers to instructions: there is
    # no gold answer.
    names = open_session().registry.kinds.names
    without = {"judgement", "instruction_following"}
    own = {name for name in names if not name.startswith("lm_eval_") and name not in without}
    assert own == set(kinds_with_answers())
    assert set(kinds_with_answers()) == {
        "sequence_classification", "multiple_choice", "form_preference", "token_tagging", "word_labelling",
        "span_extraction", "text_marking", "bitext_retrieval", "ranked_retrieval", "numeric_answer", "translation",
        "summary", "multilabel_classification", "text_pair_similarity",
    }  # fmt: skip
    assert trials("ranked_retrieval", [], [], ()) == []


# Prompts ------------------------------------------------------------------------------------------------


def test_a_context_that_depends_on_the_label() -> None:
    spec = PromptSpec(
        prompt="mood/plain",
        tasks=("mood",),
        kind="sequence_classification",
        formulation="cloze",
        description="",
        source="",
        item="{text}",
        choice=" {label}",
    )
    words = {"label.a": "yes", "label.b": "no"}

    class ByLabel(CompiledPrompt):
        """A prompt whose context says which label is gold."""

        def context(self, item: PromptItem) -> str:
            return f"{super().context(item)} {item.gold}"

    item = PromptItem(fields={"text": "x"}, choices=("a", "b"), gold="a")
    compiled = ByLabel(spec, words, literals_language="en")
    made = TaskPrompt(task="mood", language="en", spec=spec, compiled=compiled, words=words)
    assert [found.check for found in label_findings(made, item)] == ["leak"]


# Data ---------------------------------------------------------------------------------------------------


def test_choices_are_labels() -> None:
    examples = [
        MultipleChoiceExample(
            id=str(number), context="x", choices=("a", "b"), label=number % 2, names=("choice1", "choice2")
        )
        for number in range(12)
    ]
    references = [f"choice{number % 2 + 1}" for number in range(12)]
    [own] = [item for item in METRICS if item.name == "accuracy"]
    assert scored("multiple_choice", own, examples, references, ("choice1", "choice2")) == []


def test_a_sentence_of_a_treebank_may_be_a_question_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = Bench(folder=tmp_path, task="udpos", monkeypatch=monkeypatch)
    own = {"id": "asked", "tokens": ["?"], "tags": ["PUNCT"], "text": "?"}
    tried.write("udpos/de", [*tried.rows("udpos/de"), own])
    assert found_by(tried.audit(), "placeholder") == []


NAMES = ("map_at_20", "mrr_at_20", "one_target_map_at_20")


def pools() -> st.SearchStrategy[list[list[str]]]:
    """Return the right candidates of some queries."""
    names = st.integers(0, 59).map("c{}".format)
    return st.lists(st.lists(names, min_size=1, max_size=8, unique=True), min_size=1, max_size=12)


def scores(metric: str, gold: Sequence[Sequence[str]]) -> dict[str, tuple[float, float]]:
    """Return what every trial scores, and the most that it may."""
    [own] = [item for item in METRICS if item.name == metric]
    references = [{"targets": list(ids), "languages": ["en"] * len(ids)} for ids in gold]
    examples = [RankedQuery(id=str(row), query="q", targets=tuple(ids)) for row, ids in enumerate(gold)]
    found = {}
    for trial in trials("ranked_retrieval", examples, references, ()):
        value = Scored.of(own, trial, examples, references, MetricContext(language="en")).goodness
        assert value is not None
        found[trial.name] = (value, trial.ceiling)
    return found


@pytest.mark.parametrize("metric", NAMES)
@given(pool=pools())
def test_the_published_metrics_pass_on_any_pool(metric: str, pool: list[list[str]]) -> None:
    found = scores(metric, pool)
    assert found.pop("gold")[0] == pytest.approx(1)
    for name, (value, ceiling) in found.items():
        assert value <= ceiling + 1e-9, name


def test_a_constant_is_right_for_its_own_query() -> None:
    found = scores("mrr_at_20", [[f"c{number}"] for number in range(200)])
    assert found["empty rankings"] == (0.0, 0.0)
    assert found["the constant 'c0'"] == pytest.approx((1 / 200, 1 / 200))


@pytest.mark.parametrize(("word", "check"), [("", "label words"), ("No", "script")])
def test_an_empty_label_word_and_an_english_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, check: str
) -> None:
    tried = Bench(folder=tmp_path, task="xnli", monkeypatch=monkeypatch, languages=("en", "ar"))
    tried.prompts.append(xnli_prompt(words=ARABIC.replace("لا", word)))
    assert found_by(tried.audit(), check, "ar")
