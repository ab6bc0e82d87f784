"""Words that a fragment brings for the prompts of a task: one file for a language's data and words."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import DuplicateNameError, SpecError
from harness.planning.plan import Plan, PromptPlan
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import Session, open_session, prepare
from tests.builders import SPEC_PLUGIN
from tests.conftest import Cli, InstallPlugin
from tests.specs.conftest import Problems, SessionWith

WORDS = 'tag: ", àbí?", label.entailment: "Bẹ́ẹ̀ ni", label.neutral: "Bákan náà", label.contradiction: "Bẹ́ẹ̀ kọ́"'


def _fragment(words: str = WORDS, preset: str = "default", further: str = "") -> str:
    return f"""\
extends: xnli
languages:
  yo:
    provenance: human-translated
    prompts:
      {preset}:
        provenance: translated
        words: {{{words}}}
{further}"""


WITHOUT_WORDS = "extends: xnli\nlanguages:\n  yo: {provenance: human-translated}\n"


def test_a_prompt_speaks_the_added_language(session_with: SessionWith) -> None:
    entry = session_with(_fragment()).catalog.task("xnli")
    shipped = session_with().catalog.prompt("xnli", "default")
    assert "yo" not in shipped.literals
    words = entry.worded(shipped, "yo").literals["yo"]
    assert (words.provenance, words.words["label.neutral"]) == ("translated", "Bákan náà")
    # Of the other prompts of the task none changes, nor does a prompt of the preset of another task.
    for task, preset in (("xnli", "letters"), ("pawsx", "default")):
        other = session_with().catalog.prompt(task, preset)
        assert entry.worded(other) is other


def _digest(session: Session, code: str) -> str:
    entry = session.catalog.task("xnli")
    spec = entry.worded(session.catalog.prompt("xnli", "default"), code)
    return PromptPlan(spec=spec, inherited=None, policy="english", instruction=code).digest


def test_words_change_the_digest_of_their_own_language_alone(session_with: SessionWith) -> None:
    plain, worded, other = (
        session_with(text) for text in (WITHOUT_WORDS, _fragment(), _fragment(WORDS.replace("àbí", "ṣé")))
    )
    assert len({_digest(session, "yo") for session in (plain, worded, other)}) == 3
    assert len({_digest(session, "sw") for session in (plain, worded, other)}) == 1


def test_an_item_is_shown_with_the_words(cli: Cli) -> None:
    Path("yo.yaml").write_text(_fragment(further='    test: {sample: "xnli/sw.jsonl"}\n'), encoding="utf-8")
    sample = Path("sample/xnli/sw.jsonl")
    sample.parent.mkdir(parents=True)
    item = '{"id": "1-e", "premise": "Ó ń sùn.", "hypothesis": "Kò sáré.", "label": "entailment"}\n'
    sample.write_text(item, encoding="utf-8")
    assert cli("tasks", "validate", "yo.yaml") == (0, "ok  extends xnli\n", "")
    status, out, _ = cli("tasks", "show", "xnli", "--render", "yo", "--tasks-from", "yo.yaml")
    assert status == 0
    assert "words   yo (translated)\ncontext ⟦Ó ń sùn, àbí?⟧" in out
    assert "* entailment    ⟦ Bẹ́ẹ̀ ni, Kò sáré.⟧" in out
    status, out, _ = cli("tasks", "show", "xnli", "--tasks-from", "yo.yaml")
    shown = " ".join(out.split())
    assert "words in yo default (translated), English in hybrid, letters, lm_eval, lm_eval-bugcompat" in shown
    assert "yo.yaml:3, languages.yo.prompts.NAME" in shown


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        (_fragment(preset="defualt"), 6, "No prompt of 'xnli' named 'defualt'."),
        (
            _fragment(WORDS.replace("label.neutral", "label.nuetral")),
            8,
            "No word of the prompt 'xnli/default' named",
        ),
        (_fragment('tag: "?", label.neutral: "Bákan náà"'), 8, "'label.entailment', 'label.contradiction'"),
        (
            _fragment(further='        item: "{premis}{tag}"\n'),
            6,
            "No field or literal of the template named 'premis'.",
        ),
        (
            _fragment().replace("    provenance: human-translated\n", ""),
            5,
            "the task 'xnli' has no 'yo': give 'provenance' ",
        ),
    ],
)
def test_faults_of_words_are_reported_with_their_line(
    problems: Problems, text: str, line: int, shown: str
) -> None:
    found = [problem for problem in problems(text) if shown in problem]
    assert len(found) == 1
    assert found[0].startswith(f"line {line}: languages.yo.prompts.")


def test_faults_of_words_stop_a_run(session_with: SessionWith) -> None:
    session = session_with(_fragment(preset="defualt"))
    config = RunConfig(tasks=("xnli:sw",), model="baseline:majority", data=data_options(["sample"]))
    with pytest.raises(SpecError, match=r"0\.yaml has 1 fault:\n  line 6: languages\.yo\.prompts\.defualt"):
        prepare(config, session)


def test_a_prompt_without_words_takes_none(problems: Problems) -> None:
    text = _fragment('question: "Kedu"').replace("xnli", "wikiann").replace("  yo:", "  ig:")
    described = "    name: Igbo\n    script: Latn\n    family: Niger-Congo\n    provenance"
    text = text.replace("    provenance", described, 1)
    [problem] = problems(text)
    assert problem.endswith("the prompt 'wikiann/default' has no words: it is the same in all languages")


def test_words_alone_serve_a_language_that_the_task_has(
    session_with: SessionWith, problems: Problems
) -> None:
    """Quechua has no words in xcopa/default."""
    text = (
        "extends: xcopa\nlanguages:\n  qu:\n    prompts:\n      default:\n        provenance: native\n"
        "        words: {connective.cause: Imarayku, connective.effect: Chayrayku, answer_word: Kutichiy}\n"
    )
    assert problems(text) == []
    entry = session_with(text).catalog.task("xcopa")
    assert entry.added == {}
    spec = entry.worded(session_with(text).catalog.prompt("xcopa", "default"), "qu")
    assert spec.literals["qu"].words["connective.cause"] == "Imarayku"


def test_words_that_are_shipped_cannot_be_replaced(session_with: SessionWith) -> None:
    """Neither those of the prompt, nor those that it takes from another."""
    for preset in ("default", "hybrid"):
        text = (
            _fragment(preset=preset).replace("    provenance: human-translated\n", "").replace("yo:", "sw:")
        )
        with pytest.raises(DuplicateNameError) as caught:
            session_with(text).catalog.task("xnli")
        assert str(caught.value).startswith(
            f"The table of words in 'sw' for the prompt '{preset}' of task 'xnli' is registered by both plugin "
            "'task_specs' and file "
        )


def test_two_packages_that_bring_the_same_words_are_both_named(install_plugin: InstallPlugin) -> None:
    alone = _fragment().replace("    provenance: human-translated\n", "")
    install_plugin("one", {"one/__init__.py": SPEC_PLUGIN, "one/specs/yo.yaml": _fragment()})
    install_plugin("two", {"two/__init__.py": SPEC_PLUGIN, "two/specs/words.yaml": alone})
    catalog = open_session().catalog
    xnli = catalog.task("xnli")
    assert (xnli.words, set(xnli.added) - xnli.on_request) == ({}, set())
    [problem] = catalog.problems
    assert "is registered by both plugin 'one' and plugin 'two'" in str(problem)


def _plan(session: Session, tmp_path: Path, literals: str) -> Plan:
    """Return the plan of a prompted model."""
    (tmp_path / "data/xnli").mkdir(parents=True, exist_ok=True)
    for code in ("yo", "sw"):
        (tmp_path / f"data/xnli/test-{code}.tsv").write_text(
            "Ó ń sùn.\tKò sáré.\tentailment\n", encoding="utf-8"
        )
    config = RunConfig(
        tasks=("xnli:sw+yo",),
        model="asks:ranks",
        data=data_options([tmp_path / "data"]),
        literals="fail" if literals == "fail" else "english",
    )
    return prepare(config, session).plan


def test_missing_words_are_skipped_with_the_place_to_write_them(
    install_plugin: InstallPlugin, session_with: SessionWith, tmp_path: Path
) -> None:
    source = (Path(__file__).parents[1] / "running/asking_adapter.py").read_text(encoding="utf-8")
    install_plugin("asking_adapter", source)
    plan = _plan(session_with(WITHOUT_WORDS), tmp_path, "fail")
    assert [cell.language.code for cell in plan.cells] == ["sw"]
    [skip] = plan.skipped
    assert skip.reason.startswith("The prompt 'xnli/default' has no words in 'yo'; it has: ar, bg,")
    assert skip.reason.endswith("0.yaml:3, languages.yo.prompts.default.")
    # Where English words may replace them, the run says so.
    plan = _plan(session_with(WITHOUT_WORDS), tmp_path, "english")
    assert [cell.language.code for cell in plan.cells] == ["sw", "yo"]
    [note] = plan.notes
    assert note.startswith(
        "xnli:yo is asked with English words; write its own (tag, label.entailment, label.neutral, "
        "label.contradiction) in "
    )
    assert note.endswith("0.yaml:3, languages.yo.prompts.default")
    # With words there is nothing to report.
    plan = _plan(session_with(_fragment()), tmp_path, "fail")
    assert ([cell.language.code for cell in plan.cells], plan.notes, plan.skipped) == (["sw", "yo"], (), ())
