"""Names, options and readers of specs that do not exist are reported at their lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.checks.spec_checks import check_task, check_training
from harness.checks.spec_validation import validate_specs
from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, data_ref
from harness.errors import SpecError, UsageError
from harness.running.auditor import Auditor
from harness.running.session import Session, open_session
from harness.specs.schema import Source
from tests.conftest import Cli
from tests.specs.conftest import Problems

_HEAD = """\
task: mine
kind: sequence_classification
version: 1
description: x
citation: c
license: l
"""


def test_all_unknown_names_of_a_task_are_reported_with_their_lines(problems: Problems) -> None:
    found = problems(
        _HEAD
        + """\
inputs: [a, a]
labels: [x, y, x]
metrics: [acuracy, f1]
transfer: {stages: [mnlii], recipe: quik}
splits:
  test:
    local:
      - {path: a, reader: tvs}
      - {path: b, reader: jsonl, options: {header: "true"}, label_map: {a: z}}
    reader: csvv
    label_map: {q: w}
    hub: {path: x, split: y, reader: parqet, options: {colums: a}, label_map: {"0": v}}
languages:
  en:
  xx:
  qpf: {name: Palatine German}
  sw: {test: {local: c, reader: tsv, options: {hedaer: "true"}}}
"""
    )
    assert found == [
        "line 7: inputs.1: 'a' is given twice",
        "line 8: labels.2: 'x' is given twice",
        "line 9: metrics.0: No metric named 'acuracy'. "
        "Did you mean 'accuracy' or 'accuracy_pmi' or 'top1_accuracy'?",
        "line 9: metrics.1: the metric 'f1' scores span_extraction, and this task is sequence_classification",
        "line 10: transfer.stages.0: No training set named 'mnlii'. Did you mean 'mnli' or 'xnli' or 'multi_if'?",
        "line 10: transfer.recipe: No recipe named 'quik'. Did you mean 'quick'?",
        "line 14: splits.test.local.0.reader: No reader named 'tvs'. Did you mean 'tsv'?",
        "line 15: splits.test.local.1.options.header: "
        "No option of the reader 'jsonl' named 'header'. Known: columns, where.",
        "line 15: splits.test.local.1.label_map.a: No label named 'z'. Known: x, y.",
        "line 16: splits.test.reader: No reader named 'csvv'. Did you mean 'csv'?",
        "line 17: splits.test.label_map.q: No label named 'w'. Known: x, y.",
        "line 18: splits.test.hub.reader: No reader named 'parqet'. Did you mean 'parquet'?",
        "line 18: splits.test.hub.label_map.0: No label named 'v'. Known: x, y.",
        "line 21: languages.xx: the language table has no 'xx', so the entry needs 'name', 'script' and "
        "'family'; 'harness languages' shows the known codes",
        "line 22: languages.qpf: the language table has no 'qpf', so the entry needs 'name', 'script' and "
        "'family'; 'harness languages' shows the known codes",
        "line 23: languages.sw.test.options.hedaer: "
        "No option of the reader 'tsv' named 'hedaer'. Did you mean 'header'?",
    ]


def test_the_faults_of_a_training_set(problems: Problems) -> None:
    assert problems(
        "training: mine\nkind: token_taging\nversion: 1\ndescription: x\ncitation: c\nlicense: l\n"
        "labels: [a, a]\nlanguages:\n  sw:\n    train: {local: x, reader: y, label_map: {q: b}}\n"
    ) == [
        "line 2: kind: No task kind named 'token_taging'. Did you mean 'token_tagging'?",
        "line 7: labels.1: 'a' is given twice",
        "line 10: languages.sw.train.reader: No reader named 'y'. "
        "Known: answer_texts, bitext, bmlama, bracketed, checklist, checklist_templates, colorlessgreen, conllu, "
        "country_choices, csv, ifeval, json and 19 more.",
        "line 10: languages.sw.train.label_map.q: No label named 'b'. Known: a.",
    ]


def test_the_faults_of_candidates_variants_axes_and_releases(problems: Problems) -> None:
    assert problems(
        _HEAD.replace("sequence_classification", "ranked_retrieval")
        + """\
metrics: [map_at_20]
candidates: {local: a, reader: jsnl}
splits: {test: {local: "b-{language}-{question_language}", reader: jsonl}}
variants:
  repaired:
    description: d
    splits: {test: {local: c, reader: csv, options: {hedaer: "true"}}}
axes:
  question_language: [en]
  answer_language: [en]
releases:
  first: {counts: {sw: 3, de: 4}}
languages: {sw: }
"""
    ) == [
        "line 8: candidates.reader: No reader named 'jsnl'. Did you mean 'jsonl' or 'json'?",
        "line 13: variants.repaired.splits.test.options.hedaer: "
        "No option of the reader 'csv' named 'hedaer'. Did you mean 'header'?",
        "line 16: axes.answer_language: no test source has {answer_language}, so all of its values would read the "
        "same file",
        "line 18: releases.first.counts.de: No language of 'mine' named 'de'. Known: sw.",
    ]


def test_options_that_no_metric_reads(problems: Problems) -> None:
    assert problems(
        _HEAD.replace("sequence_classification", "span_extraction")
        + """\
metrics: [mlqa_f1, "evaluate:bertscore"]
metric_options:
  answer_langage: de
  bleu_tokenizer: char
  "evaluate:bertscore": percent
  "evaluate:bertscore.lang": de
  "evaluate:bleurt": percent
languages: {hi: {test: {local: a, reader: jsonl}}}
"""
    ) == [
        "line 9: metric_options.answer_langage: "
        "No option of a metric named 'answer_langage'. Did you mean 'answer_language'?",
        "line 13: metric_options.evaluate:bleurt: "
        "No option of a metric named 'evaluate:bleurt'. Known: answer_language, bleu_tokenizer, tolerance.",
    ]


def test_paths_that_leave_the_data_folder(problems: Problems) -> None:
    found = problems(
        _HEAD
        + """\
inputs: [a]
labels: [x, y]
metrics: [accuracy]
languages:
  sw: {test: {local: [mine/sw.tsv, {path: [mine/a.tsv, ../b.tsv]}], sample: /etc/passwd, reader: jsonl}}
"""
    )
    kept = "must be relative to the data folder, without '..', '**', ':' or '\\'."
    assert found == [
        f"line 11: languages.sw.test.local: The data path '../b.tsv' {kept}",
        f"line 11: languages.sw.test.sample: The data path '/etc/passwd' {kept}",
    ]


def test_braces_that_nothing_fills(problems: Problems) -> None:
    found = problems(
        _HEAD
        + """\
inputs: [a]
labels: [x, y]
metrics: [accuracy]
axes: {genre: [news, law]}
splits:
  test:
    columns: [a, label]
    local: ["{language}/{genre}-{ud_name}.tsv", "{langage}.tsv"]
    hub: {path: a/b, config: "{genr}", split: test}
    sample: "{language.tsv"
languages: {en: {}}
"""
    )
    assert [line.partition("Did you mean")[0].partition("Known")[0].strip() for line in found] == [
        "line 14: splits.test.local: No language code or axis in '{langage}.tsv' named 'langage'.",
        "line 15: splits.test.hub: No language code or axis in '{genr}' named 'genr'.",
        "line 16: splits.test.sample: '{language.tsv' has a brace that is no {code}: "
        "expected '}' before end of string.",
    ]


def test_a_suite_of_unknown_tasks(problems: Problems) -> None:
    text = "suite: s\ndescription: d\ncitation: c\nprotocol: frozen\ntasks:\n  - xnli\n  - xquadd\n"
    assert problems(text) == ["line 7: tasks.1: No task named 'xquadd'. Did you mean 'xquad' or 'xquad_in'?"]


def test_a_faulty_task_or_training_set_cannot_be_used(session_with: Callable[..., Session]) -> None:
    training = "version: 1\ndescription: d\ncitation: c\nlicense: l\n"
    session = session_with(
        _HEAD + "inputs: [a]\nlabels: [x, y]\nmetrics: [f1]\nlanguages: {en: {test: {sample: s}}}\n",
        f"training: set\nkind: span_extraction\n{training}languages: {{en: {{train: {{reader: no}}}}}}\n",
    )
    with pytest.raises(SpecError, match=r"0\.yaml has 1 fault:\n  line 9: metrics\.0: the metric 'f1'"):
        check_task(session.catalog.task("mine"), session.registry, session.catalog)
    spec, entry = session.catalog.training("set")
    with pytest.raises(SpecError, match=r"1\.yaml has 1 fault:\n  line 7: .*No reader named 'no'"):
        check_training(spec, entry.document, session.registry)


def test_what_is_installed_is_valid(session: Session) -> None:
    rows = validate_specs(session.registry, session.catalog, [])
    assert len(rows) == len(session.catalog.entries)
    assert {row["name"]: row["problems"] for row in rows if row["problems"]} == {}


def test_a_target_is_a_name_or_a_file(session: Session, tmp_path: Path) -> None:
    [row] = validate_specs(session.registry, session.catalog, ["xnli"])
    assert (row["sort"], row["name"], row["problems"]) == ("task", "xnli", [])
    [again] = validate_specs(session.registry, session.catalog, [row["source"]])
    assert again == row
    with pytest.raises(UsageError, match=r"No task named 'xnly'\. Did you mean 'xnli'"):
        validate_specs(session.registry, session.catalog, ["xnly"])
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        validate_specs(session.registry, session.catalog, [str(tmp_path / "absent.yaml")])
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("task: caf\xe9".encode("latin-1"))
    [row] = validate_specs(session.registry, session.catalog, [str(latin)])
    assert "is not UTF-8" in row["problems"][0]


FRAGMENT = """extends: udpos
languages:
  qpf:
    name: Palatine German
    script: Latn
    family: Indo-European
    provenance: native
    test: {local: x.conllu%s}
"""
FAULT = (
    "line 8: languages.qpf.test%s: The reader 'tsv' needs the option 'columns' when there is no header, "
    "such as 'premise,hypothesis,label'.%s"
)


@pytest.fixture
def fragment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/x.conllu").write_text("# sent_id = 1\n1\tJo\t_\tINTJ\t_\t_\t0\t_\t_\t_\n\n", encoding="utf-8")
    path = Path("qpf.yaml")
    path.write_text(FRAGMENT % ", reader: tsv", encoding="utf-8")
    return path


def test_a_reader_without_its_options_is_a_fault_of_the_spec(cli: Cli, fragment: Path) -> None:
    fault = FAULT % ("", " For 'x.conllu' write 'reader: conllu'.")
    status, out, err = cli("tasks", "validate", fragment, "tatoeba", "--data", "sample")
    assert status == 2
    assert err.startswith(f"qpf.yaml: 1 fault\n  {fault}\n")
    assert "tatoeba: " in out  # the other task is audited all the same
    command = ("eval", "--tasks", "udpos:qpf", "--tasks-from", fragment, "--data", "data", "--model")
    status, _, err = cli(*command, "baseline:majority")
    assert status == 2
    assert fault in err


@pytest.mark.parametrize("given", ["conllu", 'tsv, options: {header: "true"}', "tsv, columns: [tokens]"])
def test_readers_that_have_what_they_need(cli: Cli, fragment: Path, given: str) -> None:
    fragment.write_text(FRAGMENT % f", reader: {given}", encoding="utf-8")
    assert cli("tasks", "validate", fragment)[0] == 0


def test_every_alternative_is_looked_at(cli: Cli, fragment: Path) -> None:
    text = FRAGMENT.replace(
        "local: x.conllu%s",
        "local: [x.tsv, {path: y.jsonl, columns: [a]}, {path: z.jsonl}], reader: tsv, options: {header: 'no'}",
    )
    fragment.write_text(text, encoding="utf-8")
    status, _, err = cli("tasks", "validate", fragment)
    assert status == 2
    shown = "The reader option 'header' must be 'false' or 'true', found 'no'."
    assert f"languages.qpf.test.local.0: {shown}\n" in err
    assert f"languages.qpf.test.local.1: {shown} For 'y.jsonl' write 'reader: jsonl'.\n" in err


def test_what_a_reader_rejects_later_is_reported_with_its_data(fragment: Path) -> None:
    session = open_session()
    finder = DataFinder(DataOptions(mode="local", folders=(Path("data"),)), session.registry, Path("cache"))
    language = session.catalog.task("udpos").languages.get("de")
    source = Source(local="x.conllu", reader="bitext")
    ref = data_ref(source, owner="udpos", language=language, split="test", folder=None)
    with pytest.raises(UsageError) as found:
        list(finder.rows(finder.find(source, ref)))
    assert str(found.value).startswith(
        "'udpos' in 'de' (test), x.conllu in data: The reader 'bitext' needs two"
    )
    assert found.value.hint == "For 'x.conllu' write 'reader: conllu'."


def test_an_error_of_one_task_leaves_the_others_proved(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = Auditor.audit

    def broken(self: Auditor, entry: Any, **options: Any) -> Any:
        if entry.spec.task == "xquad":
            raise UsageError("It cannot be read.")
        return audit(self, entry, **options)

    monkeypatch.setattr(Auditor, "audit", broken)
    status, out, err = cli("tasks", "validate", "xquad", "tatoeba", "--data", "sample")
    assert status == 1
    assert err == "  fault    xquad: It cannot be read.\n"
    assert "tatoeba: " in out
