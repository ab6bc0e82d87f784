"""Names, parts of speech, intents and slots of Masakhane and xSID keep the contract, and are read as published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, data_ref
from harness.errors import MissingDataError
from harness.kinds.kind import ReadContext, read_examples
from harness.running.session import Session
from harness.testing.spec_contract import SpecContract

pytestmark = pytest.mark.thorough


class TestSamples(SpecContract):
    sample_languages = 4
    sample_scripts = 1
    sample_items = 6

    @pytest.fixture(params=["masakhaner2", "masakhaner_x", "masakhapos", "xsid_intent", "xsid_slots"])
    def task(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


def _examples(session: Session, root: Path, task: str, language: str, split: str = "test") -> list[Any]:
    entry = session.catalog.task(task)
    source = entry.spec.source(language, cast("Any", split))
    assert source is not None
    ref = data_ref(source, owner=task, language=entry.languages.get(language), split=split, folder=None)
    finder = DataFinder(DataOptions(mode="local", folders=(root,)), session.registry, root / "cache")
    found = finder.find(source, ref)
    context = ReadContext.of_test(entry.spec, language, found.label_map)
    return read_examples(session.registry.kinds.get(entry.spec.kind), finder.rows(found), context)


def _spans(examples: Sequence[Any]) -> dict[str, int]:
    tags = Counter(tag for example in examples for tag in example.tags)
    return {tag[2:]: count for tag, count in tags.items() if tag.startswith("B-")}


@pytest.mark.parametrize("task", ["masakhaner2", "masakhapos", "xsid_intent", "xsid_slots"])
def test_items_are_those_of_the_release(session: Session, data_root: Path, task: str) -> None:
    [release] = session.catalog.task(task).spec.releases.values()
    seen = 0
    assert isinstance(release.counts, dict)
    for language, count in release.counts.items():
        try:
            examples = _examples(session, data_root, task, language)
        except MissingDataError:
            continue
        assert len(examples) == count, language
        seen += 1
    assert seen == {"masakhaner2": 6, "masakhapos": 5}.get(task, 13)


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
    tagged = _examples(session, data_root, "masakhaner2", language)
    assert _spans(tagged) == begun
    marked = _examples(session, data_root, "masakhaner_x", language)
    assert len(marked) == len(tagged)
    assert Counter(span.tag for item in marked for span in item.spans) == Counter(begun) + Counter(stray)


def test_tags_of_masakhapos(session: Session, data_root: Path) -> None:
    tags = Counter(tag for item in _examples(session, data_root, "masakhapos", "zu") for tag in item.tags)
    assert tags.total() == 9_226
    assert (tags["NOUN"], tags["VERB"], tags["X"], tags["INTJ"]) == (2_461, 2_388, 386, 1)


def test_intents_and_slots_of_xsid(session: Session, data_root: Path) -> None:
    items = _examples(session, data_root, "xsid_intent", "de")
    lines = (data_root / "xsid/de.test.conll").read_text(encoding="utf-8").splitlines()
    said = [line.partition(" = ")[2].strip() for line in lines if line.startswith("# intent")]
    assert [item.label for item in items] == said
    assert items[0].inputs["text"] == next(
        line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")
    )
    slots = _examples(session, data_root, "xsid_slots", "de")
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
    [intent] = _examples(session, tmp_path, "xsid_intent", "no")
    assert (intent.id, intent.group, intent.label) == ("1/9", "V", "weather/find")
    [slots] = _examples(session, tmp_path, "xsid_slots", "no")
    assert (slots.tokens, slots.tags) == (("Ka", "e", "det?"), ("O", "O", "B-datetime"))
    assert (slots.id, slots.group) == ("1/9", "V")
