"""Every kind of fault that was found in another harness is planted, and must be found here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.checks.task_audit import TaskAudit
from harness.data.records import MultipleChoiceExample, TaggedSentence
from harness.metrics.catalog import METRICS
from harness.metrics.metric import Metric, MetricContext, MetricResult, field_of
from harness.prompts.preset import CompiledPrompt, PromptItem
from harness.running.session import open_session
from harness.specs.prompt import PromptSpec
from harness_audit.answers import Scored, Trial, kinds_with_answers, trials
from harness_audit.auditor import TaskAuditor
from harness_audit.prompt import TaskPrompt, label_findings
from tests.audit.bench import Bench, found_by
from tests.audit.conftest import SPEC, WORDS, Audit

Data = dict[str, Sequence[tuple[str, str]]]
PROMPT = """
prompt: mood/plain
tasks: [mood]
kind: sequence_classification
formulation: {formulation}
description: Made for a test.
source: this test
item: "{item}"
choice: " {{label}}"
literals:
  en:
    provenance: native
    words: {{is: "This is the mood of somebody who wrote:", label.pleased: "glad", label.annoyed: "angry"}}
  de:
    provenance: native
    words: {{is: "So klingt die Stimmung von jemandem:", label.pleased: "froh", label.annoyed: "verärgert"}}
  ru:
    provenance: native
    words: {{is: "Такое настроение у того, кто написал:", {ru}}}
{more}
"""
RUSSIAN = 'label.pleased: "рад", label.annoyed: "сердит"'


def prompt(
    *, formulation: str = "cloze", item: str = "{is} {text}", ru: str = RUSSIAN, more: str = ""
) -> str:
    return PROMPT.format(formulation=formulation, item=item, ru=ru, more=more)


def checks(report: TaskAudit) -> set[tuple[str, tuple[str, ...]]]:
    return {(item.check, item.languages) for item in report.findings}


def finding_texts(report: TaskAudit) -> str:
    return "\n".join(map(str, report.findings))


@pytest.mark.parametrize("formulation", ["cloze", "generation"])
def test_a_task_without_a_fault_has_no_finding(audit: Audit, formulation: str) -> None:
    report = audit(prompts=[prompt(formulation=formulation)])
    assert finding_texts(report) == ""
    assert not report.notes
    assert (report.languages, report.items) == (("en", "de", "ru"), 120)


# Labels -------------------------------------------------------------------------------------------------


def test_an_inverted_label_map_of_one_language(audit: Audit) -> None:
    inverted = '{test: {local: "mood/test-de.tsv", columns: [text, label], label_map: {"0": pleased, "1": annoyed}}, '
    spec = SPEC.replace("de: {", f"de: {inverted}")
    report = audit(spec=spec.replace('local: "mood/test-de.tsv"', 'local: "mood/test-{language}.tsv"'))
    assert checks(report) == {("label map", ("de",)), ("parallel labels", ("de",))}
    assert (
        "mood [de]: expected the labels of the same items in en, found 0 of 40 that agree (first: "
        in finding_texts(report)
    )


def test_inverted_labels_in_one_file(audit: Audit, data: Data) -> None:
    data["test-ru"] = [(text, "01"[label == "0"]) for text, label in data["test-ru"]]
    assert checks(audit()) == {("parallel labels", ("ru",))}


def test_a_map_that_gives_two_values_one_label(audit: Audit) -> None:
    report = audit(
        spec=SPEC.replace(
            '    label_map: {"1": pleased, "0": annoyed}', '    label_map: {"1": pleased, "0": pleased}'
        )
    )
    assert ("labels", ("en", "de", "ru")) in checks(report)
    assert "found none with 'annoyed'" in finding_texts(report)


# Metrics ------------------------------------------------------------------------------------------------


def metric(name: str, score: Any) -> Metric:
    """Return a metric whose item score is a function of prediction and reference."""

    def compute(
        predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
    ) -> MetricResult:
        items = np.array([float(score(*pair)) for pair in zip(predictions, references, strict=True)])
        return MetricResult(value=float(items.mean()), items=items)

    [model] = [item for item in METRICS if item.name == "accuracy"]
    return replace(model, name=name, compute=compute)


def answer(prediction: Any) -> str:
    return str(field_of(prediction, "label", 0))


PLANTED = {
    "all labels": metric("substring", lambda guess, gold: gold in answer(guess)),
    "gold": metric("inverted", lambda guess, gold: answer(guess) in {"annoyed", "pleased"} - {gold}),
    "constant": metric("generous", lambda guess, gold: answer(guess) in {"annoyed", "pleased"}),
    "empty": metric("lenient", lambda guess, gold: answer(guess) in {gold, "", "None"}),
}


@pytest.mark.parametrize("check", PLANTED)
def test_a_metric_that_trivial_answers_please(
    audit: Audit, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    monkeypatch.setattr(TaskAuditor, "_metrics", lambda self, entry: [PLANTED[check]])
    report = audit()
    assert (check, ("en", "de", "ru")) in checks(report)
    assert PLANTED[check].name in finding_texts(report)


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
    lenient = metric("type", lambda guess, gold: bool({*guess} & {*gold}))
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


def test_an_empty_template_of_one_language(audit: Audit) -> None:
    more = 'templates:\n  de: {item: "Translated Template:"}'
    report = audit(prompts=[prompt(more=more)])
    assert ("template", ("de",)) in checks(report)
    assert (
        "expected 'text' of the item in the prompt 'mood/plain', found nothing of the item"
        in finding_texts(report)
    )


def test_a_template_that_shows_the_input_in_no_language(audit: Audit) -> None:
    assert checks(audit(prompts=[prompt(item="{is}")])) == {("template", ("en", "de", "ru"))}


@pytest.mark.parametrize(
    ("ru", "check"),
    [
        ('label.pleased: "рад", label.annoyed: "рад"', "label words"),
        ('label.pleased: "рад", label.annoyed: ""', "label words"),
        ('label.pleased: "рад", label.annoyed: "angry"', "script"),
    ],
)
def test_wrong_label_words(audit: Audit, ru: str, check: str) -> None:
    assert (check, ("ru",)) in checks(audit(prompts=[prompt(ru=ru)]))


def test_label_words_that_two_presets_swap(audit: Audit) -> None:
    swapped = prompt(ru='label.annoyed: "рад", label.pleased: "сердит"').replace("mood/plain", "mood/other")
    assert ("label words", ("ru",)) in checks(audit(prompts=[prompt(), swapped]))


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


def test_a_parser_that_reads_every_text_as_the_first_label(
    audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    import harness.kinds.choosing as choosing

    monkeypatch.setattr(choosing, "read_choice", lambda text, words, languages: 0 if text else None)
    report = audit(prompts=[prompt(formulation="generation")])
    assert ("written gold", ("en", "de", "ru")) in checks(report)


# Data ---------------------------------------------------------------------------------------------------


def test_test_items_in_training_data_are_found_in_any_language(audit: Audit, data: Data) -> None:
    long = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    data["train-en"] = [*data["train-en"], (f"{WORDS['de']} 3!", "1"), (f"{long} sixteen", "0")]
    data["test-en"] = [*data["test-en"][:-1], (f"{long} seventeen", "1")]
    report = audit()
    assert checks(report) == {("overlap", ("de",)), ("overlap", ("en",))}
    assert "of 40 items 1 exact and 0 near duplicates" in finding_texts(report)
    assert "of 40 items 0 exact and 1 near duplicates" in finding_texts(report)


def test_counts_scripts_and_placeholders(audit: Audit, data: Data) -> None:
    data["test-de"] = data["test-de"][:39]
    data["test-en"] = [("NS", "0"), *data["test-en"][1:]]
    data["test-ru"] = [("Zamechanie o chisle", "0"), *data["test-ru"][1:]]
    report = audit()
    assert [str(item) for item in report.findings] == [
        "mood [de]: expected 40 items in the test split, as published, found 39.",
        "mood [de]: expected the ids of 'en' in the test split, or 'parallel: false' below 'de', found it has 39 items "
        "and 'en' 40, and without ids in the files a number names the same item only where both have as many.",
    ]
    assert [(item.check, item.languages) for item in report.notes] == [
        ("placeholder", ("en",)),
        ("script", ("ru",)),
    ]
    data["test-ru"] = data["test-en"]
    assert ("script", ("ru",)) in checks(audit())


def test_a_file_that_cannot_be_read_is_a_finding(audit: Audit, data: Data) -> None:
    data["test-ru"] = [("Слова", "2")]
    report = audit()
    assert ("data", ("ru",)) in checks(report)
    assert report.languages == ("en", "de")


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
