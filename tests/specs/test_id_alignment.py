"""Ids of added languages are checked against the language that a parallel task pairs them with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, strategies as st

from harness.api import evaluate
from harness.checks.id_alignment import ItemIds, misalignment, pairing_order, stands_for_source
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig, data_options
from harness.running.auditor import audited_entry, open_auditor
from harness.running.manifest import task_summaries
from harness.running.session import Session, open_session, prepare
from harness.statistics import draw_codes
from tests.conftest import Cli

FRAGMENT = """\
extends: xnli
languages:
  yo: {{provenance: native, {further}test: {{local: yo.jsonl, reader: jsonl}}}}
"""


def _items(ids: Sequence[str]) -> str:
    rows = [{"id": name, "premise": "Ó ń sùn.", "hypothesis": "Kò sáré.", "label": "neutral"} for name in ids]
    return "".join(json.dumps(row) + "\n" for row in rows)


def _english(folder: Path, count: int) -> None:
    """Write English test items without ids, and training data."""
    (folder / "xnli").mkdir(parents=True, exist_ok=True)
    labels = ("entailment", "neutral", "contradiction")
    rows = "".join(f"He sleeps {number}.\tHe runs.\t{labels[number % 3]}\n" for number in range(count))
    for name in ("test-en", "train-en"):
        (folder / f"xnli/{name}.tsv").write_text(rows, encoding="utf-8")


def _plan(tmp_path: Path, ids: Sequence[str], *, further: str = "", english: int = 6) -> Plan:
    _english(tmp_path / "data", english)
    (tmp_path / "data/yo.jsonl").write_text(_items(ids), encoding="utf-8")
    (tmp_path / "yo.yaml").write_text(FRAGMENT.format(further=further), encoding="utf-8")
    config = RunConfig(
        tasks=("xnli:en+yo",),
        model="baseline:majority",
        tasks_from=(tmp_path / "yo.yaml",),
        data=data_options([tmp_path / "data"]),
    )
    return prepare(config).plan


SAME = [str(number) for number in range(1, 7)]


def test_a_language_with_other_ids_is_skipped_before_anything_is_trained(tmp_path: Path) -> None:
    plan = _plan(tmp_path, [*SAME[:2], "a", "b", "c", "d"])
    assert [cell.language.code for cell in plan.cells] == ["en"]
    [skip] = plan.skipped
    path = tmp_path / "yo.yaml"
    assert skip.reason == (
        f"task 'xnli' is parallel, and 'yo' ({path}:3) does not have the items of 'en': 4 of its 6 ids are not among "
        "the 6 of 'en' (first: 'a', 'b', 'c'; there: '1', '2', '3'). Give its items the ids of 'en', or write "
        f"'parallel: false' below 'yo' in {path}, which keeps it out of paired statistics"
    )


def test_where_a_file_has_no_ids_the_number_of_items_must_be_the_same(tmp_path: Path) -> None:
    """Those of English are numbers of lines, so that the second of three may be any of six."""
    [skip] = _plan(tmp_path, SAME[:3]).skipped
    assert (
        "it has 3 items and 'en' 6, and without ids in the files a number names the same item only"
        in skip.reason
    )
    assert _plan(tmp_path, SAME).skipped == ()


def test_a_language_that_says_so_is_paired_with_no_other(tmp_path: Path) -> None:
    plan = _plan(tmp_path, list("abcdef"), further="parallel: false, ")
    assert ([cell.language.code for cell in plan.cells], plan.skipped) == (["en", "yo"], ())
    assert task_summaries(plan)["xnli"].unpaired == ["yo"]
    spec = plan.cells[0].spec
    assert (spec.pairs("en"), spec.pairs("yo"), "yo" in spec.unpaired) == (True, False, True)


def test_the_first_language_that_is_there_is_what_others_are_compared_with(tmp_path: Path) -> None:
    """Without English items, those of Bulgarian; a file that cannot be read is reported by its own cell."""
    _plan(tmp_path, list("abcdef"))
    (tmp_path / "data/xnli/test-en.tsv").rename(tmp_path / "data/xnli/test-bg.tsv")
    (tmp_path / "data/xnli/test-ar.tsv").write_text("one column\n", encoding="utf-8")
    config = RunConfig(
        tasks=("xnli:yo",), model="baseline:majority", tasks_from=(tmp_path / "yo.yaml",),
        data=data_options([tmp_path / "data"]),
    )  # fmt: skip
    again = open_session([tmp_path / "yo.yaml"])
    order = pairing_order(again.catalog.task("xnli"))
    assert (order[:3], order[-1]) == (["en", "ar", "bg"], "yo")
    [skip] = prepare(config, again).plan.skipped
    assert "does not have the items of 'bg': 6 of its 6 ids are not among the 6 of 'bg'" in skip.reason


def test_validation_on_data_reports_the_same(tmp_path: Path, cli: Cli) -> None:
    _plan(tmp_path, list("abcdef"))
    status, out, err = cli("tasks", "validate", str(tmp_path / "yo.yaml"), "--data", str(tmp_path / "data"))
    assert (status, out.splitlines()[0]) == (1, "spec ok  extends xnli")
    assert (
        "xnli [yo]: expected the ids of 'en' in the test split, or 'parallel: false' below 'yo', found 6 of"
        in err
    )
    _plan(tmp_path, SAME)
    _, _, err = cli("tasks", "validate", str(tmp_path / "yo.yaml"), "--data", str(tmp_path / "data"))
    assert "the ids of" not in err


def test_shipped_samples_are_aligned(session: Session) -> None:
    auditor = open_auditor(session, ["sample"])
    for name in ("xnli", "xcopa", "pawsx"):
        entry = audited_entry(session.catalog, "task", name, session.catalog.task(name).document.source)
        assert entry is not None
        found = [item for item in auditor.audit(entry).findings if item.check == "parallel ids"]
        assert found == []


names = st.lists(st.sampled_from("abcdefghij"), min_size=1, unique=True)


@given(own=names, other=names, own_numbered=st.booleans(), other_numbered=st.booleans())
def test_ids_are_aligned_where_all_are_known_and_numbers_only_where_as_many(
    own: list[str], other: list[str], own_numbered: bool, other_numbered: bool
) -> None:
    found = misalignment(
        ItemIds(ids=own, numbered=own_numbered), ItemIds(ids=other, numbered=other_numbered), "en"
    )
    fine = set(own) <= set(other) and (len(own) == len(other) or not (own_numbered or other_numbered))
    assert (found is None) is fine
    if not set(own) <= set(other):
        assert found is not None
        assert found.startswith(
            f"{len(set(own) - set(other))} of its {len(own)} ids are not among the {len(other)}"
        )


def test_two_languages_that_are_not_the_source_need_one_common_item(session: Session) -> None:
    """MLQA has English items in four languages or more: two others may share few of them."""
    own, other = ItemIds(ids=["a", "b", "c"], numbered=False), ItemIds(ids=["c", "d"], numbered=False)
    assert misalignment(own, other, "es") is not None
    assert misalignment(own, other, "es", whole=False) is None
    assert misalignment(own, ItemIds(ids=["d"], numbered=False), "es", whole=False) is not None
    mlqa, xcopa = session.catalog.task("mlqa").spec, session.catalog.task("xcopa").spec
    assert (stands_for_source(mlqa, "en"), stands_for_source(mlqa, "es")) == (True, False)
    assert stands_for_source(xcopa, "et")  # it has no English


def test_items_of_an_unpaired_language_are_draws_of_their_own() -> None:
    parts = [(code, ["1", "2"], [None, None]) for code in ("en", "sw", "yo")]
    assert draw_codes(parts, linked=True).tolist() == [0, 1, 0, 1, 0, 1]
    assert draw_codes(parts, linked=True, unpaired=["yo"]).tolist() == [0, 1, 0, 1, 2, 3]


def test_the_interval_of_a_mean_does_not_pair_an_unpaired_language(tmp_path: Path) -> None:
    """The same scores: paired, the items are 6 draws; unpaired, 12."""
    widths = {}
    for further in ("", "parallel: false, "):
        _plan(tmp_path, SAME, further=further)
        run = evaluate(
            "xnli:en+yo", "baseline:majority", data=tmp_path / "data", recipe="quick", seeds=(1,),
            tasks_from=(tmp_path / "yo.yaml",), output=tmp_path / f"run{len(further)}",
        )  # fmt: skip
        [row] = [row for row in run.results.tasks if row.metric == "accuracy"]
        assert row.languages == 2
        widths[further] = row.se
    assert widths[""] != widths["parallel: false, "]


def test_a_limit_keeps_the_same_items_of_paired_languages_alone(tmp_path: Path) -> None:
    kept = {}
    for further in ("", "parallel: false, "):
        _plan(tmp_path, SAME, further=further)
        run = evaluate(
            "xnli:en+yo", "baseline:majority", data=tmp_path / "data", recipe="quick", limit=3,
            tasks_from=(tmp_path / "yo.yaml",), output=tmp_path / f"run{len(further)}",
        )  # fmt: skip
        kept[further] = [[record.id for record in run.records(cell)] for cell in run.cells]
    assert kept[""][0] == kept[""][1]
    assert kept["parallel: false, "][0] != kept["parallel: false, "][1]
