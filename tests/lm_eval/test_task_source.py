"""Tasks and results of lm-eval."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.api import evaluate
from harness.errors import DataError, SpecError, UnknownNameError, UsageError
from harness.metrics.metric import MetricContext
from harness.models.requests import GenerateOptions
from harness.running.session import open_session
from harness.specs.selection import select
from harness.storage.run_folder import Run
from harness_lm_eval.readers import VOTED_ANSWERS
from harness_lm_eval.result_file import render, write
from harness_lm_eval.task_document import read_language
from harness_lm_eval.task_kind import LmEvalSpec, generate_options, likelihood_request

Cli = Callable[..., tuple[int, str, str]]

CHOICE = """\
dataset_path: someone/weather
output_type: multiple_choice
validation_split: dev
doc_to_text: "{{claim}}"
doc_to_choice: ["no", "yes"]
doc_to_target: verdict
metadata: {version: 2.5}
"""
WRITTEN = """\
task: write_down
dataset_path: someone/weather
test_split: test
doc_to_text: "{{claim}}"
doc_to_target: reply
num_fewshot: 3
generation_kwargs: {until: ["."], max_gen_toks: 5}
filter_list:
  - {name: strict, filter: [{function: take_first}]}
  - {name: loose, filter: [{function: take_first}]}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
  - {metric: ter, aggregation: ter, higher_is_better: false}
"""
FILES = {
    "weather/_shared": CHOICE,
    "weather/weather_sw.yaml": "include: _shared\ntask: weather_sw\ntag: skies\n",
    "weather/weather_hi.yaml": "include: _shared\ntask: weather_hi\ntag: [skies, more]\nnum_fewshot: 0\n",
    "weather/all.yaml": "group: weather\ntask: [weather_sw, weather_hi]\nmetadata: {version: 1}\n",
    "weather/changed.yaml": "group: changed\ntask: [{task: weather_sw, num_fewshot: 5}]\nnum_fewshot: 2\n",
    "clouds/_tagged": f"tag: clouds\n{CHOICE}",
    "clouds/cloud_fr.yaml": '"include": "_tagged"\n"task": "cloud_fr"\n',
    "clouds/cloud_de.yaml": "include:\n  - _tagged\n'task' : cloud_de\n",
    "clouds/all.yaml": '"group": "all_clouds"\n"task":\n  - "clouds"\n',
    "write.yaml": WRITTEN,
    "rolling.yaml": "task: rolling\noutput_type: loglikelihood_rolling\ntest_split: test\n",
    "own_code.yaml": f"task: own_code\nprocess_docs: !function utils.clean\n{CHOICE}",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An lm-eval that cannot be imported: what is found out, is found out without running it."""
    site = tmp_path / "site"
    files = {f"lm_eval/tasks/{name}": text for name, text in FILES.items()}
    files["lm_eval/__init__.py"] = "raise RuntimeError('lm-eval was imported')\n"
    files["lm_eval-0.4.13.dist-info/METADATA"] = "Metadata-Version: 2.1\nName: lm-eval\nVersion: 0.4.13\n"
    _write(site, files)
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    for name in ("HARNESS_LM_EVAL_INCLUDE", "HARNESS_LM_EVAL_ALLOW_CODE"):
        monkeypatch.delenv(name, raising=False)
    return site


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_without_lm_eval_its_package_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    status, _, error = cli("tasks", "show", "lm_eval:xnli_sw")
    assert status == 2
    assert "'lm_eval:xnli_sw'" in error and 'pip install "lm-eval>=' in error


def test_a_task_is_described_by_its_file_alone(installed: Path) -> None:
    spec = open_session().catalog.task("lm_eval:weather_sw").spec.model_dump()
    assert (spec["task"], spec["kind"]) == ("lm_eval:weather_sw", "lm_eval_likelihood")
    assert spec["metrics"] == ("lm_eval:acc", "lm_eval:acc_norm")
    assert (spec["task_version"], spec["shots"], spec["axes"]) == ("2.5", 0, {})
    assert list(spec["languages"]) == ["sw"]
    assert "Its language 'sw' was read off task (weather_sw)" in spec["description"]
    hub = spec["languages"]["sw"]["test"]["hub"]
    assert (hub["path"], hub["split"]) == ("lm_eval:weather_sw", "dev")


def test_filters_shots_and_other_metrics(installed: Path) -> None:
    entry = open_session().catalog.task("lm_eval:write_down")
    spec = entry.spec.model_dump()
    assert spec["kind"] == "lm_eval_generation"
    assert spec["metrics"] == ("lm_eval:exact_match,strict", "lm_eval:exact_match,loose")
    assert spec["further"] == {"ter,strict": "ter", "ter,loose": "ter"}
    assert spec["axes"] == {"shots": ("3",)}
    assert list(spec["languages"]) == ["und"]  # no key of the file says it
    assert entry.languages.get("und").name == "Undetermined"


def test_the_number_of_shots_is_the_users_unless_the_task_forbids_it(installed: Path) -> None:
    catalog = open_session().catalog
    assert catalog.make("lm_eval:weather_sw", shots=2) == {"lm_eval:weather_sw": None}
    assert catalog.task("lm_eval:weather_sw").spec.axes == {"shots": ("2",)}
    with pytest.raises(UsageError, match="num_fewshot: 0"):
        catalog.make("lm_eval:weather_hi", shots=2)


@pytest.mark.parametrize("pattern", ["weather", "skies", "weather_*"])
def test_groups_tags_and_globs_expand_to_their_tasks(installed: Path, pattern: str, cli: Cli) -> None:
    catalog = open_session().catalog
    assert sorted(catalog.names_made(f"lm_eval:{pattern}")) == ["lm_eval:weather_hi", "lm_eval:weather_sw"]
    with pytest.raises(UnknownNameError, match="'weather_sw'"):
        catalog.task("lm_eval:weather_sv")
    for option in ("--chat", "--constrained"):
        command = "plan --tasks lm_eval:weather_sw --model baseline:random --data sample"
        status, _, error = cli(*command.split(), option)
        assert status == 2 and option in error, "the option would change the prompts"


@pytest.mark.parametrize("pattern", ["clouds", "all_clouds", "cloud_*"])
def test_names_with_quoted_keys_and_tags_of_included_files_are_found(installed: Path, pattern: str) -> None:
    """A seventh of lm-eval's files write ``"task": "NAME"``; a member of a group may be a tag."""
    catalog = open_session().catalog
    assert catalog.names_made(f"lm_eval:{pattern}") == {"lm_eval:cloud": None}
    assert catalog.task("lm_eval:cloud").spec.languages.keys() == {"de", "fr"}


LANGUAGES = {
    "bele/_shared": CHOICE,
    "bele/all.yaml": "group: bele\ntask: [bele_eng_Latn, bele_swh_Latn, bele_hin_Latn]\n",
    **{
        f"bele/bele_{code}.yaml": f"include: _shared\ntask: bele_{code}\ndataset_name: {code}\n"
        for code in ("eng_Latn", "swh_Latn", "hin_Latn")
    },
    "story/_shared": CHOICE,
    **{
        f"story/{code}.yaml": f"include: _shared\ntask: story_{code}\ndataset_name: {code}\n"
        for code in ("en", "sw")
    },
    "other_bench/story_ca.yaml": f"task: story_ca\n{CHOICE}",
    **{
        f"afri/{way}/{code}.yaml": f"task: afri_{code}_prompt_{way}\ndataset_name: {code}\n{CHOICE}"
        for way in (1, 2)
        for code in ("eng", "swa", "amh")
    },
    "maths/_shared": WRITTEN.partition("\n")[2],
    **{f"maths/{code}.yaml": f"include: _shared\ntask: maths_{code}\n" for code in ("en", "de")},
    "maths/te.yaml": "include: _shared\ntask: maths_te\nnum_fewshot: 8\n",
}


def afri(way: int) -> dict[str, str]:
    return {code[:2]: f"afri_{code}_prompt_{way}" for code in ("eng", "swa", "amh")}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("bele", {"bele": {"en": "bele_eng_Latn", "sw": "bele_swh_Latn", "hi-Latn": "bele_hin_Latn"}}),
        ("bele_*_Latn", {"bele": {"en": "bele_eng_Latn", "sw": "bele_swh_Latn", "hi-Latn": "bele_hin_Latn"}}),
        ("story_*", {"story": {"en": "story_en", "sw": "story_sw"}, "story_ca": {"ca": "story_ca"}}),
        ("afri_*", {f"afri_prompt_{way}": afri(way) for way in (1, 2)}),
        ("maths_*", {"maths": {"en": "maths_en", "de": "maths_de"}, "maths_te": {"te": "maths_te"}}),
    ],
)
def test_tasks_that_differ_in_their_language_are_one_task(
    installed: Path, pattern: str, found: dict[str, dict[str, str]]
) -> None:
    """Files of another benchmark, and other numbers of shots, stay tasks of their own."""
    _write(installed / "lm_eval" / "tasks", LANGUAGES)
    catalog = open_session().catalog
    assert catalog.make(f"lm_eval:{pattern}") == {f"lm_eval:{name}": None for name in found}
    for name, members in found.items():
        spec = catalog.task(f"lm_eval:{name}").spec
        assert isinstance(spec, LmEvalSpec)
        assert {code: spec.lm_eval_name(code) for code in spec.languages} == members
        assert spec.gap_source == ("en" if "en" in members else None)
    for selection in ("lm_eval:bele_[es]*", "lm_eval:bele:en+sw"):
        [chosen] = select(open_session().catalog, [selection])
        assert (chosen.entry.spec.task, set(chosen.languages)) == ("lm_eval:bele", {"en", "sw"})


def test_listing_a_glob_shows_its_tasks_and_unsupported_ones(installed: Path, cli: Cli) -> None:
    status, shown, error = cli("tasks", "list", "lm_eval:*")
    assert status == 0
    assert "lm_eval:weather_sw" in shown
    assert "lm_eval:write_down" in shown
    assert "'loglikelihood_rolling'" in error
    status, shown, _ = cli("tasks", "list")
    assert status == 0
    assert "lm_eval:" not in shown


def test_a_group_that_changes_its_tasks_is_rejected(installed: Path) -> None:
    with pytest.raises(SpecError) as caught:
        open_session().catalog.make("lm_eval:changed")
    assert len(caught.value.problems) == 2
    assert "task, num_fewshot" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("output_type: loglikelihood_rolling\n", "'loglikelihood_rolling'"),
        ("unsafe_code: true\n", "the task runs what a model writes"),
        ("doc_to_image: picture\n", "doc_to_image"),
        ("generation_kwargs: {num_beams: 4}\n", "'num_beams'"),
        ("generation_kwargs: {temprature: 1}\n", "did you mean 'temperature'"),
        ("metric_list: [{metric: perplexity}]\n", "metric_list"),
        ("process_docs: !function utils.clean\n", "!function utils.clean is Python of this folder"),
        ("metric_list: [{metric: acc, aggregation: !function utils.agg}]\n", "HARNESS_LM_EVAL_ALLOW_CODE=1"),
        ("metric_list: [{metric: rouge}]\n", "'rouge' is no metric of lm-eval"),
        ("dataset_kwargs: {trust_remote_code: true}\n", "runs a program of the dataset"),
    ],
)
def test_unsupported_keys_in_a_folder_of_the_user(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reported: str
) -> None:
    keys = {line.partition(":")[0] for line in text.splitlines()}
    rest = "".join(line for line in CHOICE.splitlines(keepends=True) if line.partition(":")[0] not in keys)
    _write(tmp_path / "mine", {"mine.yaml": f"task: mine\n{text}{rest}"})
    monkeypatch.setenv("HARNESS_LM_EVAL_INCLUDE", str(tmp_path / "mine"))
    with pytest.raises(SpecError) as caught:
        open_session().catalog.task("lm_eval:mine")
    assert reported in str(caught.value)
    assert "line 2" in str(caught.value)


def test_python_of_a_folder_runs_only_where_the_user_says_so(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_session().catalog.task("lm_eval:own_code").spec.task == "lm_eval:own_code"  # lm-eval's own
    _write(tmp_path / "mine", {"mine.yaml": FILES["own_code.yaml"]})
    monkeypatch.setenv("HARNESS_LM_EVAL_INCLUDE", str(tmp_path / "mine"))
    with pytest.raises(SpecError, match=r"!function utils\.clean"):
        open_session().catalog.task("lm_eval:own_code")
    monkeypatch.setenv("HARNESS_LM_EVAL_ALLOW_CODE", "1")
    assert open_session().catalog.task("lm_eval:own_code").document.source.startswith(str(tmp_path / "mine"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"max_tokens": 256}),
        ({"until": "\n", "max_new_tokens": 7, "max_gen_toks": 5}, {"max_tokens": 5, "stop": ("\n",)}),
        ({"until": ["a", ""], "do_sample": False, "temperature": 0.7}, {"max_tokens": 256, "stop": ("a",)}),
        (
            {"do_sample": True, "temperature": 0.7, "top_p": 0.9},
            {"max_tokens": 256, "temperature": 0.7, "top_p": 0.9},
        ),
    ],
)
def test_options_are_read_as_lm_eval_reads_them(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert generate_options(given, 0) == GenerateOptions(**expected)
    assert generate_options(given, 3).seed == 3


@pytest.mark.parametrize(
    ("context", "continuation", "expected"),
    [("a b", " c", ("a b", " c")), ("a b\n\n", "c", ("a b", "\n\nc")), ("", "c", ("", "c"))],
)
def test_white_space_before_a_continuation_is_scored_with_it(
    context: str, continuation: str, expected: tuple[str, str]
) -> None:
    asked = likelihood_request(context, continuation)
    assert (asked.context, asked.continuation) == expected


def test_a_mean_has_items_and_other_values_are_rejected() -> None:
    metric = open_session().registry.metrics.get("lm_eval:acc")
    context = MetricContext(language="sw", options={"lm_eval:acc": "mean"})
    predictions = [{"metrics": {"acc,none": value}} for value in (1.0, 0.0, 1.0, 1.0)]
    result = metric.compute(predictions, [{}] * 4, context)
    assert result.value == 0.75
    assert result.items is not None
    assert result.items.tolist() == [1.0, 0.0, 1.0, 1.0]
    some = [{"metrics": {}}, *predictions[1:]]
    assert metric.compute(some, [{}] * 4, context).items is None
    with pytest.raises(ValueError, match="no item"):
        metric.compute([{"metrics": {}}], [{}], context)
    with pytest.raises(ValueError, match="no share of the items"):
        metric.compute([{"metrics": {"acc,none": 35.5}}], [{}], context)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"task": "xnli_sw"}, ("sw", "task")),
        ({"task": "belebele_swh_Latn"}, ("sw", "task")),
        ({"task": "t", "dataset_name": "hi"}, ("hi", "dataset_name")),
        ({"task": "hellaswag", "dataset_name": None}, None),
        ({"task": "mmmlu_hi_in_law", "dataset_name": "HI_IN"}, ("hi", "dataset_name")),
        ({"task": "xlsum_thai", "dataset_name": "thai"}, ("th", "dataset_name")),
        ({"task": "afrimgsm_wol_prompt_1", "dataset_name": "wol"}, ("wo", "dataset_name")),
        ({"task": "translate_ca-de", "dataset_name": "all"}, ("de", "task")),
        (
            {"task": "mlqa_de_ar", "dataset_name": "mlqa.de.ar"},
            None,
        ),  # passages in one, questions in the other
        ({"task": "mlqa_ar_ar", "dataset_name": "mlqa.ar.ar"}, ("ar", "dataset_name")),
        ({"task": "blimp_nl__om_te", "dataset_name": "om_te"}, None),
        ({"task": "physics_gre", "dataset_name": "physics_gre"}, None),
        ({"task": "polemo2_in"}, None),
        ({"task": "alghafa_msa", "dataset_name": "meta_ar_msa"}, None),
    ],
)
def test_languages_come_from_names(data: dict[str, Any], found: tuple[str, str] | None) -> None:
    assert read_language(data) == found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run: two tasks, two languages, no prompts."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    tasks = ["xnli:en+sw", "xquad:de", "tatoeba:de"]
    return evaluate(tasks, "baseline:char-ngram", data="sample", output=folder)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_files_are_named_as_lm_eval_names_them(run: Run, tmp_path: Path) -> None:
    files = write([run], tmp_path)
    date = files[-1].name.removeprefix("results_").removesuffix(".json")
    assert {path.parent.name for path in files} == {"char-ngram"}
    names = [path.name.removesuffix(f"_{date}.jsonl") for path in files[:-1]]
    assert names[:3] == ["samples_xnli_en", "samples_xnli_sw", "samples_xquad_de"]
    # Two protocols serve Tatoeba, so its cells have what they differ in, in their names.
    assert names[3:] == ["samples_tatoeba_de_zero_shot_transfer", "samples_tatoeba_de_frozen"]
    assert "_" not in date
    before = [path.read_bytes() for path in files]
    assert [path.read_bytes() for path in write([run], tmp_path)] == before


def test_results_have_lm_evals_keys_and_our_numbers(run: Run) -> None:
    found = json.loads(render([run]))
    cell = run.cells[1]
    own = cell.metrics["accuracy"]
    assert found["results"]["xnli_sw"] == {
        "name": "xnli_sw",
        "alias": "xnli_sw",
        "sample_len": cell.n,
        "acc,none": own.value,
        "acc_stderr,none": own.se,
    }
    assert found["group_subtasks"] == {"xnli": ["xnli_en", "xnli_sw"]}
    [row] = [row for row in run.results.tasks if row.task == "xnli"]
    assert found["groups"]["xnli"]["acc,none"] == row.value
    assert found["results"]["xnli"] == found["groups"]["xnli"]
    assert found["n-samples"]["xnli_sw"] == {"original": 24, "effective": 24}
    assert found["higher_is_better"]["xquad_de"] == {"f1": True, "exact_match": True}
    assert found["n-shot"] == {}  # nothing was prompted
    assert "output_type" not in found["configs"]["xnli_sw"]
    assert found["configs"]["xnli_sw"]["metadata"]["harness"]["language"] == "sw"
    assert found["git_hash"] is None
    assert found["harness_data"] == "sample"
    assert "lm_eval_version" not in found


def test_samples_have_what_the_records_hold_and_null_for_the_rest(run: Run, tmp_path: Path) -> None:
    [path] = [path for path in write([run], tmp_path) if "xnli_sw" in path.name]
    records = list(run.records(run.cells[1]))
    lines = _lines(path)
    assert [line["doc_id"] for line in lines] == [record.id for record in records]
    for line, record in zip(lines, records, strict=True):
        assert line["target"] == record.reference
        assert line["resps"] == [[record.prediction["label"]]]
        assert line["filtered_resps"] == [record.prediction["label"]]
        assert line["acc"] == record.scores["accuracy"]
        assert line["metrics"] == ["acc"]
        assert (line["arguments"], line["prompt_hash"]) == (None, None)
        assert record.reference not in json.dumps(line["doc"])
        assert line["target_hash"] == hashlib.sha256(record.reference.encode()).hexdigest()


def test_the_command_writes_a_folder_or_prints_the_results(run: Run, cli: Cli, tmp_path: Path) -> None:
    status, shown, _ = cli("report", run.path, "--format", "lm_eval")
    assert status == 0
    assert json.loads(shown) == json.loads(render([run]))
    status, shown, _ = cli("report", run.path, "--format", "lm_eval", "--output", tmp_path / "theirs")
    assert status == 0
    assert shown.count("wrote ") == 6
    status, shown, error = cli("report", run.path, run.path, "--format", "lm_eval")
    assert (status, shown) == (2, "")
    assert "--output FOLDER" in error
    (tmp_path / "taken").write_text("", encoding="utf-8")
    status, _, error = cli("report", run.path, "--format", "lm_eval", "--output", tmp_path / "taken")
    assert status == 2
    assert "cannot be written" in error


def question(
    *answers: list[str], idk: int = 0, no_answer: int = 0, not_applicable: int = 0
) -> dict[str, Any]:
    votes = {"idk": idk, "no-answer": no_answer, "not-applicable": not_applicable}
    annotations = [{"answers": texts, "en_answers": ["rice"], "count": 1} for texts in answers]
    return {"question": "Was?", "en_question": "What?", "annotations": annotations, "idks": votes}


def written(folder: Path, records: Any) -> list[Path]:
    path = folder / "UK_data.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return [path]


def test_all_answers_of_a_question_count_once_and_blank_ones_never(tmp_path: Path) -> None:
    paths = written(tmp_path, {"a-1": question(["Reis", "Bohnen"], ["Reis", " ", ""])})
    [row] = VOTED_ANSWERS.read(paths, {})
    answers = [{"text": "Reis", "start": -1}, {"text": "Bohnen", "start": -1}]
    assert row.fields == {"id": "a-1", "context": "", "question": "Was?", "answers": answers}
    [english] = VOTED_ANSWERS.read(paths, {"question": "en_question"})
    assert english.fields["question"] == "What?"


def test_questions_that_too_many_could_not_answer_are_skipped(tmp_path: Path) -> None:
    records = {
        "kept": question(["Reis"], idk=4, no_answer=1, not_applicable=1),
        "unknown": question(["Reis"], idk=5),
        "unusable": question(["Reis"], no_answer=1, not_applicable=2),
        "none": question(),
        "blank": question([""]),
    }
    assert [row.fields["id"] for row in VOTED_ANSWERS.read(written(tmp_path, records), {})] == ["kept"]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "expected an object whose keys are ids of questions"),
        ({"a": 1}, "record 1: expected an object"),
        ({"a": {"annotations": [{"answers": ["x"]}]}}, "record 1: expected a column 'idks'"),
    ],
)
def test_a_fault_names_the_record(records: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        list(VOTED_ANSWERS.read(written(tmp_path, records), {}))
