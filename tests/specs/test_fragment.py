"""Languages that other packages, or files given with ``--tasks-from``, add to a task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.api import evaluate
from harness.checks.spec_checks import check_task
from harness.errors import DuplicateNameError, SpecError, UsageError
from harness.running.session import open_session
from harness.specs.task_entry import TaskEntry
from tests.builders import SPEC_PLUGIN
from tests.conftest import Cli, InstallPlugin
from tests.specs.conftest import SessionWith

_ITEMS = [
    {
        "id": str(number),
        "premise": f"Das isch de Satz {number}.",
        "hypothesis": "Es git en Satz.",
        "label": label,
    }
    for number, label in enumerate(["entailment", "neutral", "contradiction"] * 2)
]
_PFL = """
extends: xnli
languages:
  qpf:
    name: Palatine German
    script: Latn
    family: Indo-European
    provenance: human-translated
    parallel: false
    test: {sample: "xnli/{language}.jsonl"}
    train: {sample: "xnli/{language}.jsonl"}
"""


def _package(fragment: str) -> dict[str, str]:
    return {
        "swiss/__init__.py": SPEC_PLUGIN,
        "swiss/specs/xnli.yaml": fragment,
        "swiss/specs/sample/xnli/qpf.jsonl": "".join(json.dumps(item) + "\n" for item in _ITEMS),
    }


def _others(entry: TaskEntry) -> dict[str, str]:
    """Return the added languages but those that are only run on request."""
    return {code: plugin for code, plugin in entry.added.items() if code not in entry.on_request}


def test_a_package_adds_a_new_language_that_the_baseline_scores(
    install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    install_plugin("swiss", _package(_PFL))
    entry = open_session().catalog.task("xnli")
    assert _others(entry) == {"qpf": "swiss"}
    assert (entry.languages.get("qpf").name, entry.languages.get("de").name) == ("Palatine German", "German")
    run = evaluate(
        ["xnli", "xquad"],
        "baseline:char-ngram",
        languages=["qpf", "de"],
        data="sample",
        recipe="quick",
        train_limit=30,
        limit=4,
        output=tmp_path / "run",
    )
    cells = {(cell.task, cell.language): cell for cell in run.cells}
    assert cells["xnli", "qpf"].status == "ok"
    assert cells["xnli", "qpf"].n == 4
    assert 0 <= cells["xnli", "qpf"].metrics["accuracy"].value <= 1
    assert cells["xnli", "de"].status == "ok"
    assert cells["xquad", "qpf"].reason == "task 'xquad' has no 'qpf'"
    [row] = [row for row in run.results.tasks if row.task == "xnli"]
    assert row.by_family.keys() == {"Indo-European"}
    assert row.languages == 2


def test_a_new_language_can_be_trained_on(install_plugin: InstallPlugin, cli: Cli) -> None:
    install_plugin("swiss", _package(_PFL.replace("xnli\n", "pawsx\n")))
    # pawsx trains on its own training split, so a language that is added with one can be trained on.
    specs = open_session().catalog.task("pawsx").spec
    assert specs.source("qpf", "train") is not None
    status, out, err = cli(
        *("plan", "--tasks", "pawsx:de", "--model", "baseline:majority", "--data", "sample"),
        *("--train-languages", "qpf"),
    )
    assert (status, err) == (0, "")
    assert "seed 42: pawsx (qpf)" in out


def test_two_packages_that_add_one_language_are_both_named(
    install_plugin: InstallPlugin, session_with: SessionWith
) -> None:
    install_plugin("swiss", _package(_PFL))
    install_plugin("swiss_too", {"swiss_too/__init__.py": SPEC_PLUGIN, "swiss_too/specs/more.yaml": _PFL})
    session = open_session()
    entry = session.catalog.task("xnli")
    [problem] = session.catalog.problems
    assert "is registered by both plugin 'swiss' and plugin 'swiss_too'" in str(problem)
    assert _others(entry) == {}, "neither is taken, and the other languages still work"
    assert "sw" in entry.spec.languages
    assert session.catalog.languages_of("xnli").count("qpf") == 1


def test_a_language_that_the_task_has_cannot_be_replaced(session_with: SessionWith) -> None:
    session = session_with("extends: xnli\nlanguages: {sw: {test: {local: a}, provenance: native}}\n")
    with pytest.raises(DuplicateNameError, match=r"plugin 'task_specs' and file '.*yaml'") as caught:
        session.catalog.task("xnli")
    assert (caught.value.kind, caught.value.name) == ("language 'sw' of task", "xnli")
    assert "HARNESS_DISABLE_PLUGINS" not in str(caught.value)
    # Of two files that add one language, one is to be omitted.
    text = "extends: xnli\nlanguages: {yo: {test: {local: a}, provenance: native}}\n"
    with pytest.raises(DuplicateNameError, match="--tasks-from") as caught:
        session_with(text, text).catalog.task("xnli")
    assert (caught.value.kind, caught.value.name) == ("language 'yo' of task", "xnli")
    assert [Path(file).name for file in caught.value.both] == ["0.yaml", "1.yaml"]
    assert "ninstall" not in str(caught.value)


def test_a_file_adds_a_known_language(session_with: SessionWith) -> None:
    session = session_with("extends: xnli\nlanguages: {yo: {test: {local: a}, provenance: native}}\n")
    entry = session.catalog.task("xnli")
    assert list(_others(entry)) == ["yo"]
    assert entry.added["yo"].endswith("0.yaml")
    assert entry.document_of("yo").source == entry.added["yo"]
    assert "yo" in session.catalog.languages_of("xnli")
    # What is common to the task's languages also holds for those that are added.
    assert entry.spec.source("yo", "validation") == entry.spec.splits["validation"]


@pytest.mark.parametrize("given", ["", "name: Palatine German, ", "name: Palatine German, script: Latn, "])
def test_a_new_language_needs_name_script_and_family(session_with: SessionWith, given: str) -> None:
    session = session_with(
        f"extends: xnli\nlanguages:\n  qpf: {{{given}test: {{local: a, reader: jsonl}}, provenance: native}}\n"
    )
    with pytest.raises(SpecError, match=r"0\.yaml has 1 fault:\n  line 3: languages\.qpf: .*needs 'name'"):
        check_task(session.catalog.task("xnli"), session.registry, session.catalog)


def test_faults_of_a_fragment_are_reported_with_its_own_file_and_lines(
    install_plugin: InstallPlugin, session_with: SessionWith, cli: Cli
) -> None:
    text = "extends: xnli\nlanguages:\n  yo:\n    provenance: native\n    test:\n      local: a\n      reader: tvs\n"
    session = session_with(text)
    with pytest.raises(
        SpecError, match=r"0\.yaml has 1 fault:\n  line 7: languages\.yo\.test\.reader: No re"
    ):
        check_task(session.catalog.task("xnli"), session.registry, session.catalog)
    Path("mine.yaml").write_text(text, encoding="utf-8")
    status, out, err = cli("tasks", "validate", "mine.yaml")
    assert (status, out) == (2, "")
    assert err.startswith("mine.yaml: 1 fault\n  line 7: languages.yo.test.reader: No reader named 'tvs'.")
    Path("mine.yaml").write_text(text.replace("xnli", "xnly"), encoding="utf-8")
    plan = ("plan", "--tasks", "xnli", "--model", "baseline:majority", "--data", "sample")
    for command in (("tasks", "validate", "mine.yaml"), (*plan, "--tasks-from", "mine.yaml")):
        status, _, err = cli(*command)
        assert (status, "line 1: extends: No task named 'xnly'." in err) == (2, True)
    install_plugin("swiss", _package(_PFL.replace("xnli\n", "xnil\n")))
    assert cli("tasks", "list", "xnli")[0] == 0
    status, _, err = cli("plugins")
    assert (status, "line 2: extends: No task named 'xnil'." in err) == (1, True)


@pytest.mark.parametrize("code", ["YO", "q", "Gsw", "zh_Hant"])
def test_what_is_no_language_code_is_reported(session_with: SessionWith, code: str) -> None:
    session = session_with(
        f"extends: xnli\nlanguages: {{{code}: {{test: {{local: a}}, provenance: native}}}}\n"
    )
    with pytest.raises(SpecError, match=f"'{code}' is no language code: expected two or three small letters"):
        session.catalog.task("xnli")


def test_a_language_that_the_metric_has_no_rules_for_is_reported(session_with: SessionWith, cli: Cli) -> None:
    session = session_with("extends: mlqa\nlanguages: {pt: {test: {local: a}, provenance: native}}\n")
    entry = session.catalog.task("mlqa")
    with pytest.raises(SpecError, match=r"line 2: languages.pt: the metric 'mlqa_f1' has no rules for 'pt'"):
        check_task(entry, session.registry, session.catalog)
    status, _, err = cli("new", "language", "pt", "--task", "mlqa", "--from", "es")
    assert status == 2
    assert (
        "The task 'mlqa' cannot take 'pt': its metric 'mlqa_f1' has no rules for it, only for en, es," in err
    )
    check_task(session.catalog.task("xquad"), session.registry, session.catalog)


def test_what_is_given_with_tasks_from_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="given with --tasks-from does not exist"):
        open_session([tmp_path / "absent"])
    with pytest.raises(UsageError, match="holds no YAML spec"):
        open_session([tmp_path])
    (tmp_path / "a.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(SpecError, match=r"a\.yaml has 1 fault"):
        open_session([tmp_path])


@pytest.mark.parametrize(
    ("entry", "line", "message"),
    [
        *((entry, 3, "'provenance' is missing") for entry in (" {test: {local: a}}", "", " {}")),
        ("\n    provenance: google", 4, "or 'post-edited', found 'google'"),
        ("\n    provenance: native\n    flores: yoruba", 5, "found 'yoruba'"),
        ("\n    provenance: native\n    flores: ibo_Latn", 5, "says 'yor_Latn' for 'yo', found 'ibo_Latn'"),
        ("\n    provenance: native\n    promts: {}", 5, "unknown key 'promts'"),
    ],
)
def test_a_fragment_says_how_its_items_were_made(cli: Cli, entry: str, line: int, message: str) -> None:
    Path("mine.yaml").write_text(f"extends: xnli\nlanguages:\n  yo:{entry}\n", encoding="utf-8")
    status, out, err = cli("tasks", "validate", "mine.yaml")
    assert (status, out) == (2, "")
    lines = err.splitlines()
    assert lines[0] == "mine.yaml: 1 fault"
    assert lines[1].startswith(f"  line {line}: languages.yo")
    assert message in lines[1]


def test_a_language_missing_in_the_table_brings_its_codes(session_with: SessionWith) -> None:
    text = _PFL.replace("family:", "flores: pfl_Latn\n    segmentation: character\n    family:")
    session = session_with(text)
    language = session.catalog.task("xnli").languages.get("qpf")
    assert (language.flores, language.segmentation) == ("pfl_Latn", "character")
    assert session.catalog.languages.get("qpf") == language
    check_task(session.catalog.task("xnli"), session.registry, session.catalog)


def test_the_right_folder_of_a_fragment_is_reported(cli: Cli) -> None:
    Path("wo").mkdir()
    Path("wo/xquad.yaml").write_text(
        "extends: xquad\nlanguages:\n  wo: {provenance: native, test: {local: wo.json, reader: squad}}\n",
        encoding="utf-8",
    )
    for name in ("wo", "./wo", "wo/"):
        status, out, err = cli("tasks", "validate", name)
        assert (status, out) == (0, "ok  extends xquad\n"), err
    run = ("--model", "baseline:majority", "--data", "sample")
    for name, what in (("wo", "folder"), ("wo/xquad.yaml", "file")):
        status, _, err = cli("eval", "--tasks", name, *run)
        assert status == 2
        assert err.startswith(
            f"Error: {name!r} is a {what}, not a task. Give it with --tasks-from {name}, and "
        )
    status, _, err = cli("eval", "--tasks", "xquad:wo", *run)
    assert status == 2
    assert "If a file adds it, give that file or its folder with --tasks-from. Run 'harness new " in err
    Path("empty").mkdir()
    assert cli("tasks", "validate", "empty")[2] == "Error: The folder 'empty' holds no YAML spec.\n"


def test_a_file_with_a_language_of_the_task_shows_where_items_go(cli: Cli) -> None:
    text = (
        "extends: udpos\nlanguages:\n  wo: {provenance: native, test: {local: wo.conllu, reader: conllu}}\n"
    )
    Path("mine.yaml").write_text(text, encoding="utf-8")
    run = ("--model", "baseline:majority", "--data", "sample", "--tasks-from", "mine.yaml")
    status, _, err = cli("eval", "--tasks", "udpos:wo", *run)
    assert status == 2
    assert "registered by both plugin 'task_specs' and file 'mine.yaml'. The task has 'wo' already. " in err
    assert "'mine.yaml', and put your items where those of the task are looked for: " in err
    assert "ud/UD_Wolof-*/wo_*-ud-test.conllu" in err
    assert "rename" not in err
