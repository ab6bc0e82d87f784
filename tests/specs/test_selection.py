"""Tasks that patterns select, also those that a plugin's source makes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import UnknownNameError, UsageError
from harness.running.session import Session, open_session
from harness.specs.catalog import Catalog
from harness.specs.selection import SelectedTask, select, split_names
from tests.conftest import Cli, InstallPlugin
from tests.specs.conftest import SessionWith

SUITE = """
suite: pair
description: d
citation: c
protocol: zero_shot_transfer
tasks: [xquad, xnli]
"""

TASK = """
task: mine
kind: sequence_classification
version: 1
description: d
citation: c
license: l
inputs: [text]
labels: [a, b]
metrics: [accuracy]
languages:
  sn: {name: Shona, script: Latn, family: Niger-Congo, test: {local: mine.tsv}}
"""


def _chosen(selected: list[SelectedTask]) -> dict[str, tuple[str, ...]]:
    return {item.entry.spec.task: item.languages for item in selected}


def test_tasks_come_as_named_and_languages_as_in_the_spec(session: Session) -> None:
    chosen = _chosen(select(session.catalog, ["xquad,xnli", "udpos", "xnli"]))
    assert list(chosen) == ["xquad", "xnli", "udpos"]
    [xnli] = select(session.catalog, ["xnli"])
    assert xnli.languages == tuple(code for code in xnli.entry.spec.languages if code not in xnli.entry.added)
    assert len(xnli.languages) == 15
    assert xnli.missing == ()


def test_languages_behind_a_colon(session: Session) -> None:
    assert _chosen(select(session.catalog, ["xnli:sw+hi+sw", "xquad:de"])) == {
        "xnli": ("sw", "hi"),
        "xquad": ("de",),
    }
    assert _chosen(select(session.catalog, ["xnli:sw", "xnli:hi"])) == {"xnli": ("sw", "hi")}
    assert len(_chosen(select(session.catalog, ["xnli:sw", "xnli"]))["xnli"]) == 15
    assert len(_chosen(select(session.catalog, ["xnli:"]))["xnli"]) == 15


def test_languages_that_restrict_all_tasks(session: Session) -> None:
    chosen = _chosen(select(session.catalog, ["xnli:sw+hi", "xquad"], ["hi", "de"]))
    assert chosen == {"xnli": ("hi",), "xquad": ("hi", "de")}


@pytest.mark.parametrize(
    ("patterns", "languages", "left"),
    [
        (["xnli:!en"], None, 14),
        (["xnli:!en+!zh-CN"], None, 13),
        (["xnli"], ["!en"], 14),
        (["xnli"], ["!en", "!de", "!yo"], 13),
        (["xnli:en+de+hi"], ["!en"], 2),
        (["xnli:!en"], ["en", "sw"], 1),
        (["xnli:!en", "xnli:en"], None, 15),
        (["xtreme_r:!en"], None, 14),
        (["xn*:!en"], ["!sw"], 13),
        (["xnli:en"], ["!en"], 0),
    ],
)
def test_excluded_languages(
    session: Session, patterns: list[str], languages: list[str] | None, left: int
) -> None:
    chosen = _chosen(select(session.catalog, patterns, languages))
    assert len(chosen["xnli"]) == left
    if "xtreme_r:!en" in patterns:
        assert all("en" not in codes for codes in chosen.values())
        assert len(chosen["wikiann"]) == 47


def test_a_known_language_missing_in_a_task_is_listed(session: Session) -> None:
    [xquad] = select(session.catalog, ["xquad"], ["sw", "de"])
    assert (xquad.languages, xquad.missing) == (("de",), ("sw",))
    [xquad] = select(session.catalog, ["xquad:yo+ar"])
    assert (xquad.languages, xquad.missing) == (("ar",), ("yo",))


def test_globs(session: Session) -> None:
    assert list(_chosen(select(session.catalog, ["x[cnq]*"]))) == ["xcopa", "xnli", "xquad", "xquad_in"]
    assert _chosen(select(session.catalog, ["x[cnq]*:de"])) == {
        "xcopa": (),
        "xnli": ("de",),
        "xquad": ("de",),
        "xquad_in": (),
    }
    assert set(_chosen(select(session.catalog, ["*"]))) == set(session.catalog.names("task"))
    assert list(_chosen(select(session.catalog, ["[pu]*s*"]))) == ["pawsx", "udpos", "udpos_raw"]


def test_all_tasks_that_have_a_language(session: Session) -> None:
    catalog = session.catalog
    wanted = {name for name in catalog.names("task") if "sw" in catalog.task(name).spec.languages}
    assert len(wanted) > 5
    assert _chosen(select(catalog, ["@sw"])) == dict.fromkeys(sorted(wanted), ("sw",))
    assert _chosen(select(catalog, ["@sw,@yo"]))["wikiann"] == ("sw", "yo")
    with_others = _chosen(select(catalog, ["xquad", "@sw", "xnli:de"]))
    assert with_others["xnli"] == ("sw", "de")
    assert next(iter(with_others)) == "xquad"
    assert len(_chosen(select(catalog, ["xnli,@sw"]))["xnli"]) == 15
    assert set(_chosen(select(catalog, ["@sw"], ["de"])).values()) == {()}


def test_a_language_of_a_fragment_and_of_a_task_that_is_given(session_with: SessionWith) -> None:
    catalog = session_with("extends: xnli\nlanguages: {yo: {provenance: native}}\n", TASK).catalog
    assert "xnli" in _chosen(select(catalog, ["@yo"]))
    assert _chosen(select(catalog, ["@sn"]))["mine"] == ("sn",)


def test_a_language_that_no_task_has(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Catalog, "languages_of", lambda *_: ["en"])
    with pytest.raises(
        UsageError, match=r"No task has the language 'yo'.*harness new language yo --task TASK"
    ):
        select(session.catalog, ["@yo"])


def test_a_suite_is_its_tasks(session_with: SessionWith) -> None:
    catalog = session_with(SUITE).catalog
    selected = select(catalog, ["pair", "udpos"])
    assert list(_chosen(selected)) == ["xquad", "xnli", "udpos"]
    assert [item.suites for item in selected] == [("pair",), ("pair",), ()]
    assert _chosen(select(catalog, ["pair:de+sw"])) == {"xquad": ("de",), "xnli": ("de", "sw")}


@pytest.mark.parametrize(
    ("patterns", "languages", "message"),
    [
        (
            ["xnly"],
            None,
            "No task or suite named 'xnly'. Did you mean 'xnli'?",
        ),
        (["XNLI"], None, "No task or suite named 'XNLI'. Did you mean 'xnli'?"),
        (["q*"], None, "No task or suite named 'q*'. Known: "),
        (["pare"], None, "No task or suite named 'pare'. Did you mean 'pair' or 'lareqa'?"),
        (["xnli:sx"], None, "No language named 'sx'."),
        (["xnli"], ["qqq"], "No language named 'qqq'. Known: "),
        (["@sx"], None, "No language named 'sx'."),
        (["@qqq"], None, "No language named 'qqq'. Known: "),
        (["xnli"], ["!xq"], "No language named 'xq'"),
        (["xnli:!en+sw"], None, "got sw and !en"),
        (["xnli"], ["sw", "!en"], "got sw and !en"),
        ([], None, "No task was named."),
        ([" , "], None, "No task was named."),
    ],
)
def test_faulty_selections_are_reported(
    session_with: SessionWith, patterns: list[str], languages: list[str] | None, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        select(session_with(SUITE).catalog, patterns, languages)
    assert message in str(caught.value)


def test_a_suite_of_an_unknown_task_is_reported(session_with: SessionWith) -> None:
    catalog = session_with(SUITE.replace("xquad", "xquadd")).catalog
    with pytest.raises(UnknownNameError, match="No task named 'xquadd'"):
        select(catalog, ["pair"])


def test_names_are_split_at_commas_and_listed_once() -> None:
    assert split_names(["a, b", "c", "a,,b"]) == ["a", "b", "c"]


def test_a_language_that_only_the_task_itself_describes_is_known(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that a source makes, as lm-eval's, have languages that no document has: ``und``."""
    entry = session.catalog.task("xnli")
    spec = entry.spec.model_copy(update={"languages": {"und": entry.spec.languages["en"]}})
    monkeypatch.setattr(session.catalog, "task", lambda name: replace(entry, spec=spec))
    [selected] = select(session.catalog, ["xnli"])
    assert (selected.languages, selected.missing) == (("und",), ())


IMPORTS = "from harness import hookimpl\n"


def test_a_source_makes_tasks_when_they_are_named(install_plugin: InstallPlugin, cli: Cli) -> None:
    """They are shown, a glob finds them, and have metrics of their own."""
    source = IMPORTS + (
        "import json\n"
        "from harness.specs.task_entry import MadeTask, TaskSource\n"
        "class Source:\n"
        "    def names(self, pattern): return ['one', 'two'] if pattern == '*' else [pattern]\n"
        "    def document(self, name, shots):\n"
        "        hub = {'path': f'made:{name}', 'split': 'test'}\n"
        "        head = {'task': f'made:{name}', 'description': f'with {shots} shots', 'version': 1}\n"
        "        head |= dict(kind='multiple_choice', citation='c', license='l', metrics=['accuracy', 'made:m'])\n"
        "        head |= dict(inputs=['question'], labels=['a', 'b'], languages={'sw': {'test': {'hub': hub}}})\n"
        "        return MadeTask(text=json.dumps(head), source='/from/somewhere.yaml')\n"
        "def metric(name):\n"
        "    from dataclasses import replace\n"
        "    from harness.metrics.catalog import METRICS\n"
        "    [own] = [metric for metric in METRICS if metric.name == 'accuracy']\n"
        "    return replace(own, name=name)\n"
        "SOURCE = Source()\n"
        "@hookimpl\n"
        "def harness_register_task_sources():\n"
        "    return [TaskSource(name='made', target='with_source:SOURCE', metric='with_source:metric')]\n"
    )
    install_plugin("with_source", source)
    session = open_session()
    assert session.registry.metrics.get("made:m").name == "made:m"
    assert session.catalog.make("made:x", shots=2) == {"made:x": None}
    assert session.catalog.task("made:x").spec.description == "with 2 shots"
    assert session.catalog.task("made:x").plugin == "with_source"
    assert [item.entry.spec.task for item in select(session.catalog, ["made:*"])] == ["made:one", "made:two"]
    status, shown, _ = cli("tasks", "show", "made:three")
    assert status == 0
    assert "made:three" in shown
    assert "/from/somewhere.yaml" in shown
    _, plan, _ = cli("plan", "--tasks", "made:three", "--model", "baseline:majority", "--data", "sample")
    assert "--data sample" in " ".join(plan.split())
