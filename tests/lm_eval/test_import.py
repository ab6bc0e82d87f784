"""``harness tasks import lm_eval`` on task files written for this project in lm-eval's format, and on real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.data.records import Row
from harness.errors import SpecError, UsageError
from harness.kinds.kind import ReadContext, read_examples
from harness.prompts.preset import compile_prompt
from harness.running.session import open_session
from harness_lm_eval.conversion import import_task

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("HARNESS_TEST_PEERS") or HERE.parents[1] / ".venv-peers")
Cli = Callable[..., tuple[int, str, str]]

SHARED = """\
dataset_path: someone/weather
output_type: multiple_choice
training_split: train
validation_split: dev
test_split: test
doc_to_target: verdict
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
metadata: {version: 2.0}
"""
CLOZE = """\
include: shared_yaml
task: weather_sw
dataset_name: sw
doc_to_text: ""
doc_to_choice: "{{[claim + ', right? Yes, ' + reply, claim + ', right? No, ' + reply.strip()]}}"
""".replace(".strip()", "")
FIELDS = """\
include: shared_yaml
task: endings
doc_to_text: "Story {1}: {{[first, second]|join(' ')}}\\nEnd:"
doc_to_choice: "{{[endA, endB, endC]}}"
doc_to_target: "{{ (verdict|int) - 1 }}"
target_delimiter: ""
fewshot_delimiter: "\\n"
num_fewshot: 3
"""
LETTERS = """\
include: shared_yaml
task: exam
doc_to_text: "Q: {{question.strip()}} ({{ topic | trim }})\\nA: {{one}}\\nB. {{two}}\\nAnswer:"
doc_to_choice: [A, B]
doc_to_target: "{{['x', 'y'].index(verdict)}}"
description: "Choose a letter.\\n\\n"
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
GENERATED = """\
task: facts_fr
dataset_path: json
dataset_kwargs: {data_files: {test: facts/test.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "Passage : {{passage}}\\nQuestion : {{query}}\\nRéponse :"
doc_to_target: "{{answers['text'][0]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 16, do_sample: false}
filter_list: [{name: none, filter: [{function: remove_whitespace}, {function: take_first}]}]
metric_list: [{metric: exact_match}]
"""


Requests = list[list[str]]


def ours(
    folder: Path, task: str, documents: Sequence[Mapping[str, Any]]
) -> list[tuple[Requests, str | None]]:
    """Return context and continuation of every choice, and the gold label, of documents with lm-eval's columns."""

    session = open_session([folder])
    spec = session.catalog.task(task).spec
    [code] = spec.languages
    source = spec.source(code, "test")
    assert source is not None
    assert source.hub is not None
    assert isinstance(source.hub.columns, dict)
    rows = [
        Row(fields={mine: item[theirs] for mine, theirs in source.hub.columns.items()}, path="d", line=line)
        for line, item in enumerate(documents, start=1)
    ]
    context = ReadContext(
        owner=task,
        language=code,
        split="test",
        inputs=spec.input_names,
        labels=spec.label_names,
        label_map=source.hub.label_map or {},
    )
    kind = session.registry.kinds.get(spec.kind)
    prompt = compile_prompt(session.catalog.prompt(task, "lm_eval"), code)
    assert kind.prompt_item is not None
    items = [kind.prompt_item(example) for example in read_examples(kind, rows, context)]
    asked = [(prompt.system(item), prompt.ranking(item)) for item in items]
    return [
        ([[before + ranked.context, text] for text in ranked.continuations], item.gold)
        for item, (before, ranked) in zip(items, asked, strict=True)
    ]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a task file next to the one that others include."""

    def written(text: str, name: str = "task.yaml") -> Path:
        (tmp_path / "shared_yaml").write_text(SHARED, encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return written


@pytest.fixture
def imported(cli: Cli, write: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Import a task through the command line; the folder of its documents."""

    def run(text: str) -> Path:
        folder = tmp_path / "made"
        arguments = () if "_sw" in text or "_fr" in text else ("--language", "en")
        status, out, err = cli("tasks", "import", "lm_eval", write(text), "--output", folder, *arguments)
        assert (status, err) == (0, ""), out
        files = sorted(folder.iterdir())
        assert cli("tasks", "validate", *files, "--tasks-from", folder)[0] == 0
        return folder

    return run


def test_choices_that_differ_in_words_become_a_classification(imported: Callable[[str], Path]) -> None:
    documents = [{"claim": "It {rains}", "reply": "it is wet", "verdict": index} for index in (0, 1)]
    asked = ours(imported(CLOZE), "weather_sw", documents)
    choices = [" It {rains}, right? Yes, it is wet", " It {rains}, right? No, it is wet"]
    assert asked == [([["", text] for text in choices], label) for label in ("yes", "no")]


def test_choices_that_are_fields_become_a_multiple_choice(imported: Callable[[str], Path]) -> None:
    document = {"first": "a", "second": "b", "endA": "x", "endB": "y", "endC": "z", "verdict": "3"}
    [(requests, gold)] = ours(imported(FIELDS), "endings", [document])
    assert requests == [["Story {1}: a b\nEnd:", text] for text in "xyz"]
    assert gold == "endC"


def test_letters_before_fields_are_ranked_as_letters(imported: Callable[[str], Path]) -> None:
    document = {"question": " Who? ", "topic": "t ", "one": "I", "two": "you", "verdict": "y"}
    [(requests, gold)] = ours(imported(LETTERS), "exam", [document])
    context = "Choose a letter.\n\nQ: Who? (t)\nA: I\nB. you\nAnswer:"
    assert (requests, gold) == ([[context, " A"], [context, " B"]], "two")


def test_a_generated_answer_is_read_from_local_files(imported: Callable[[str], Path], cli: Cli) -> None:
    folder = imported(GENERATED)
    data = Path("data/facts")
    data.mkdir(parents=True)
    rows = [
        {"passage": "Il pleut.", "query": "Quoi ?", "answers": {"text": ["Il pleut"]}},
        {"passage": "-", "query": "Où ?", "answers": {"text": ["à Paris", "Paris"]}},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (data / "test.jsonl").write_text(text, encoding="utf-8")
    shown = ("--render", "fr", "--prompt", "lm_eval", "--data", "data", "--tasks-from", folder)
    status, out, err = cli("tasks", "show", "facts_fr", *shown)
    assert (status, err) == (0, "")
    assert "⟦Passage : Il pleut.\nQuestion : Quoi ?\nRéponse :⟧" in out
    assert "answer  ⟦ Il pleut⟧" in out


def test_bleu_is_that_of_the_whole_set_with_lm_evals_tokens(write: Callable[[str], Path]) -> None:
    """Their ``aggregation: bleu`` is corpus BLEU with tokens 13a in every language, Chinese as well."""
    metrics = "[{metric: bleu, aggregation: bleu}, {metric: chrf, aggregation: chrf}]"
    text = GENERATED.replace("[{metric: exact_match}]", metrics)
    made = import_task(str(write(text)), "zh").files["facts_fr.yaml"]
    assert "metrics:\n- bleu\n- chrf\n" in made
    assert 'metric_options:\n  bleu_tokenizer: "13a"\n' in made
    with pytest.raises(SpecError, match="the aggregation 'mean' of the metric 'bleu'; ours is 'bleu'"):
        import_task(str(write(text.replace("aggregation: bleu", "aggregation: mean"))), "zh")
    with pytest.raises(
        SpecError, match="'f1' of generate_until"
    ):  # theirs compares labels, and fails on texts
        import_task(str(write(GENERATED.replace("exact_match", "f1"))), "fr")


def test_white_space_next_to_a_gold_answer_is_in_shots(write: Callable[[str], Path]) -> None:
    target = "\"{{answers['text'][0]}}\""
    text = GENERATED.replace(target, "\" {{answers['text'][0]}}\"\ntarget_delimiter: ''")
    assert 'answer: " {gold}"' in import_task(str(write(text)), "fr").files["facts_fr.prompt.yaml"]


@pytest.mark.parametrize(("until", "reported"), [('["\\n"]', False), ('["\\n\\n"]', True), ('["."]', True)])
def test_answers_of_several_lines_are_reported(
    write: Callable[[str], Path], until: str, reported: bool
) -> None:
    made = import_task(str(write(GENERATED.replace('["\\n"]', until))), "fr")
    assert any("first line" in note for note in made.notes) is reported


def test_assumptions_are_reported(write: Callable[[str], Path]) -> None:
    made = import_task(str(write(FIELDS)), "en")
    assert any("--shots 3" in note for note in made.notes)
    assert all(
        note in " ".join(made.files["endings.yaml"].replace("#  ", "").split("\n# ")) for note in made.notes
    )
    assert any("dataset_name (sw)" in note for note in import_task(str(write(CLOZE)), None).notes)
    assert any("accuracy_char" in note for note in import_task(str(write(LETTERS)), "en").notes)
    with pytest.raises(UsageError, match="--language"):
        import_task(str(write(FIELDS)), None)


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("process_docs: !function utils.load", "process_docs: !function utils.load: Python is never run"),
        ("doc_to_text: '{% if a %}b{% endif %}'", "the Jinja statement '{% if a %}'"),
        ("doc_to_text: '{{a.lstrip()}}'", "'lstrip'"),
        ("doc_to_text: '{{a.__class__}}'", "a value inside a field"),
        ("doc_to_text: '{{a if b else c}}'", "'if' in the expression"),
        ("doc_to_text: '{{a'", "never closed"),
        ("doc_to_text: '{{- a}}'", "whitespace control"),
        ("doc_to_text: '{{a}} {{b}} {{c}}'", "3 fields"),
        ("doc_to_target: 1", "the constant 1"),
        ("doc_to_target: '{{a * 2}}'", "'*' in the expression"),
        ("doc_to_target: \"{{['x'].index(v)}}\"", "a list of 1 values for 2 choices"),
        ("doc_to_choice: '{{choices.text}}'", "'{{choices.text}}'"),
        ("doc_to_choice: [yes, no]", "quote yes, no"),
        ("doc_to_choice: [same, same]", "two choices that are the same"),
        ("metric_list: [{metric: f1}]", "the metric 'f1' of multiple_choice"),
        ("metric_list: [{metric: acc, weights: 2}]", "'weights' of the metric 'acc'"),
        ("filter_list: [{filter: [{function: regex}]}]", "the filter 'regex'"),
        ("output_type: loglikelihood_rolling", "'loglikelihood_rolling'"),
        ("repeats: 4", "repeats: 4 answers"),
        ("dataset_name: no", "found False; quote it"),
        ("dataset_path: csv", "of local files only json"),
        ("doc_to_txt: a", "did you mean 'doc_to_text'?"),
        ("gen_prefix: So", "a beginning of the answer"),
        ("include: nowhere", "does not exist"),
        ("include: task.yaml", "includes itself"),
        ("group: g", "is a group, not a task"),
        ("a: b: c", "mapping values are not allowed here"),
    ],
)
def test_unsupported_keys_are_reported_with_line(
    write: Callable[[str], Path], line: str, reported: str
) -> None:
    key = line.split(":", maxsplit=1)[0]
    base = ["task: t", "doc_to_text: '{{a}}'", "doc_to_choice: ['no', 'yes']", "include: shared_yaml"]
    kept = [item for item in base if not item.startswith(f"{key}:")]
    path = write("\n".join([*kept, line]) + "\n")
    with pytest.raises(SpecError) as caught:
        import_task(str(path), "en")
    assert reported in str(caught.value)
    assert f"line {len(kept) + 1}" in str(caught.value)


def test_all_faults_are_reported_at_once_and_nothing_is_written(
    cli: Cli, write: Callable[[str], Path], tmp_path: Path
) -> None:
    text = CLOZE + "process_results: !function utils.score\nmetric_list: [{metric: !function utils.mine}]\n"
    status, out, err = cli("tasks", "import", "lm_eval", write(text), "--output", tmp_path / "made")
    assert (status, out) == (2, "")
    assert "has 2 faults" in err
    assert "line 6: process_results: !function utils.score" in err
    assert "line 7: metric_list: !function utils.mine" in err
    assert not (tmp_path / "made").exists()


def test_a_fault_of_an_included_file_names_that_file(write: Callable[[str], Path]) -> None:
    path = write("task: t\ninclude: inner.yaml\n")
    inner = path.with_name("inner.yaml")
    inner.write_text(SHARED + "use_prompt: all\n", encoding="utf-8")
    with pytest.raises(SpecError, match=r"line 12: use_prompt: .*included file .*inner\.yaml"):
        import_task(str(path), "en")
    path.write_text(
        "task: t\ninclude: inner.yaml\nuse_prompt: null\ndoc_to_text: '{{a}}'\ndoc_to_choice: [a, b]\n"
    )
    assert import_task(str(path), "en").files.keys() == {"t.yaml", "t.prompt.yaml"}


def test_numbers_as_choices_are_ambiguous(write: Callable[[str], Path]) -> None:
    path = write("task: t\ninclude: shared_yaml\ndoc_to_text: '{{a}}'\ndoc_to_choice: ['1', '2']\n")
    with pytest.raises(SpecError, match="doc_to_target: 'verdict': the choices are numbers"):
        import_task(str(path), "en")


def test_a_group_lists_its_members(write: Callable[[str], Path]) -> None:
    path = write("group: g\ntask:\n  - one\n  - {group: two, task: [three]}\n")
    with pytest.raises(SpecError, match=r"line 1: group: .* one by one: one, two"):
        import_task(str(path), "en")


def test_a_name_is_looked_up_and_files_are_not_overwritten(
    cli: Cli, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_LM_EVAL_TASKS", str(write(CLOZE).parent))
    command = ("tasks", "import", "lm_eval", "weather_sw", "--output", "made")
    assert cli(*command)[0] == 0
    assert "exists already" in cli(*command)[2]
    write(CLOZE.replace("task: weather_sw", '"task": "rain_sw"'), "quoted.yaml")
    assert cli("tasks", "import", "lm_eval", "rain_sw", "--output", "made")[0] == 0
    assert "Did you mean 'weather_sw'?" in cli("tasks", "import", "lm_eval", "weather_sv", "--output", "b")[2]
    assert "No format of tasks named 'lmeval'" in cli("tasks", "import", "lmeval", "x", "--output", "b")[2]


@pytest.mark.parametrize(("name", "labels"), [("xnli_sw", 3), ("social_iqa", 3)])
def test_real_tasks_ask_what_lm_eval_asks(name: str, labels: int, tmp_path: Path, cli: Cli) -> None:
    """Where `HARNESS_TEST_PEERS` names an environment with lm-eval, or the repository has one."""
    found = sorted(PEERS.glob("lib/python3*/site-packages/lm_eval/tasks"))
    if not found:
        pytest.skip("no lm-eval: make .venv-peers/bin/lm-eval, or set HARNESS_TEST_PEERS")
    [path] = found[0].glob(f"*/{name}.yaml") if name == "xnli_sw" else found[0].glob("s*/*iqa.yaml")
    assert cli("tasks", "import", "lm_eval", path, "--output", "made", "--language", "sw")[0] == 0
    texts = ["premise", "hypothesis", "context", "question", "answerA", "answerB", "answerC"]
    first = 0 if name == "xnli_sw" else 1
    documents: list[dict[str, Any]] = [
        {**{text: f" {text} {{}} ({index}). " for text in texts}, "label": index + first}
        for index in range(labels)
    ]
    environment = {"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [str(PEERS / "bin" / "python"), str(HERE / "peer_requests.py")],
        input=json.dumps({"path": str(path), "documents": documents}),
        capture_output=True,
        encoding="utf-8",
        env={**environment, "OMP_NUM_THREADS": "1"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    asked = [json.loads(line) for line in done.stdout.splitlines()]
    rendered = ours(Path("made"), name, documents)
    assert [requests for requests, _ in rendered] == [item["requests"] for item in asked]
    assert [item["gold"] for item in asked] == list(range(labels))
    assert len({gold for _, gold in rendered}) == labels


def test_lm_eval_is_never_imported() -> None:
    assert "lm_eval" not in sys.modules
