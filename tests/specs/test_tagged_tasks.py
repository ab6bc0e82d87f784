"""Items of the released files: their numbers for all tasks, names, tags, intents and slots of Masakhane and xSID."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import MissingDataError
from harness.running.session import Session, open_session
from tests.builders import read_items

pytestmark = pytest.mark.thorough


SAMPLED = {"clams", "mlqa", "turblimp", "udpos", "udpos_raw"}
"""Tasks of whose releases the folder has a part."""
CATALOG = open_session().catalog
SPECS = {task: CATALOG.task(task).spec for task in CATALOG.names("task")}
RELEASED = [task for task, spec in SPECS.items() if spec.releases and not spec.axes and task not in SAMPLED]


@pytest.mark.parametrize("task", RELEASED)
def test_items_are_those_of_the_release(session: Session, data_root: Path, task: str) -> None:
    spec = session.catalog.task(task).spec
    release = next(iter(spec.releases.values()))
    for language in spec.languages:
        if (count := release.count(language)) is None:
            continue
        try:
            assert len(read_items(session, task, language, data_root)) == count, language
        except MissingDataError:
            continue


def _spans(examples: Sequence[Any]) -> dict[str, int]:
    tags = Counter(tag for example in examples for tag in example.tags)
    return {tag[2:]: count for tag, count in tags.items() if tag.startswith("B-")}


@pytest.mark.parametrize(
    ("language", "begun", "stray"),
    [  # counted with awk in the files: B tags, and I tags that continue nothing and so begin an entity
        ("yo", {"PER": 766, "LOC": 528, "ORG": 402, "DATE": 312}, {"LOC": 1}),
        ("ha", {"PER": 1194, "LOC": 970, "ORG": 1187, "DATE": 757}, {"ORG": 1}),
        ("zu", {"PER": 888, "LOC": 337, "ORG": 373, "DATE": 318}, {"DATE": 3}),
    ],
)
def test_names_of_masakhaner2(
    session: Session, data_root: Path, language: str, begun: dict[str, int], stray: dict[str, int]
) -> None:
    tagged = read_items(session, "masakhaner2", language, data_root)
    assert _spans(tagged) == begun
    marked = read_items(session, "masakhaner_x", language, data_root)
    assert len(marked) == len(tagged)
    assert Counter(span.tag for item in marked for span in item.spans) == Counter(begun) + Counter(stray)


def test_tags_of_masakhapos(session: Session, data_root: Path) -> None:
    tags = Counter(tag for item in read_items(session, "masakhapos", "zu", data_root) for tag in item.tags)
    assert tags.total() == 9_226
    assert (tags["NOUN"], tags["VERB"], tags["X"], tags["INTJ"]) == (2_461, 2_388, 386, 1)


def test_intents_and_slots_of_xsid(session: Session, data_root: Path) -> None:
    items = read_items(session, "xsid_intent", "de", data_root)
    lines = (data_root / "xsid/de.test.conll").read_text(encoding="utf-8").splitlines()
    said = [line.partition(" = ")[2].strip() for line in lines if line.startswith("# intent")]
    assert [item.label for item in items] == said
    assert items[0].inputs["text"] == next(
        line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")
    )
    slots = read_items(session, "xsid_slots", "de", data_root)
    cells = [line.split("\t") for line in lines if line and not line.startswith("#")]
    assert [tag for item in slots for tag in item.tags] == [cell[3] for cell in cells]
    assert [word for item in slots for word in item.tokens] == [cell[1] for cell in cells]


def test_dialects_of_norwegian(session: Session, tmp_path: Path) -> None:
    """The layout of no.test.conll: ids of sentence and translator, and the group of dialects."""
    text = (
        "# id = 1/9\n# text = Ka e det?\n# intent = weather/find\n# dialect = V\n"
        "1\tKa\tweather/find\tO\n2\t\tweather/find\tO\n3\te\tweather/find\tO\n4\tdet?\tweather/find\tB-datetime\n"
    )
    (tmp_path / "xsid").mkdir()
    (tmp_path / "xsid" / "no.test.conll").write_text(text, encoding="utf-8")
    [intent] = read_items(session, "xsid_intent", "no", tmp_path)
    assert (intent.id, intent.group, intent.label) == ("1/9", "V", "weather/find")
    [slots] = read_items(session, "xsid_slots", "no", tmp_path)
    assert (slots.tokens, slots.tags) == (("Ka", "e", "det?"), ("O", "O", "B-datetime"))
    assert (slots.id, slots.group) == ("1/9", "V")
