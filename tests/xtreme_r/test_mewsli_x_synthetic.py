from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnknownNameError, UsageError
from harness_xtreme_r.mewsli_x.script import POOL_LANGUAGES, SCRIPTS, SYLLABLES
from harness_xtreme_r.mewsli_x.synthetic import (
    ADDRESS,
    RELEASED_CANDIDATES,
    RELEASED_MENTIONS,
    RELEASED_PAIRS,
    write_synthetic,
)
from harness_xtreme_r.mewsli_x.world import open_world
from harness_xtreme_r.readers.mewsli_x_entities import MEWSLI_X_ENTITIES
from harness_xtreme_r.readers.mewsli_x_mentions import MEWSLI_X_MENTIONS
from harness_xtreme_r.readers.mewsli_x_pairs import MEWSLI_X_PAIRS

COUNTS = dict.fromkeys(RELEASED_MENTIONS, 40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synthetic")
    write_synthetic(folder, candidates=720, mentions_per_language=COUNTS, pairs=120, seed=5)
    return folder / "mewsli-x"


def records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_files_of_the_release(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "candidate_set_entities.jsonl",
        "wikinews_mentions-dev.jsonl",
        "wikinews_mentions-test.jsonl",
        "wikipedia_pairs-dev.jsonl",
        "wikipedia_pairs-train.jsonl",
    ]


def test_every_mention_is_read_and_its_entity_is_in_the_pool(folder: Path) -> None:
    pool = {
        row.fields["id"]: row.fields
        for row in MEWSLI_X_ENTITIES.read([folder / "candidate_set_entities.jsonl"], {})
    }
    assert len(pool) == 720
    assert Counter(row["language"] for row in pool.values()) == dict.fromkeys(POOL_LANGUAGES, 20)
    seen: set[str] = set()
    for split, count in (("test", 40), ("dev", 8)):
        path = folder / f"wikinews_mentions-{split}.jsonl"
        for language in RELEASED_MENTIONS:
            rows = list(MEWSLI_X_MENTIONS.read([path], {"language": language}))
            assert abs(len(rows) - count) <= (split == "dev")
            assert {row.fields["target"] for row in rows} <= set(pool)
            seen.update(row.fields["id"] for row in rows)
            own = sum(pool[row.fields["target"]]["language"] == language for row in rows)
            assert split == "dev" or 3 <= own <= 24
    assert len(seen) == 440 + 440 * 2991 // 14624


def test_mentions_share_names_with_descriptions_of_their_script(folder: Path) -> None:
    pool = records(folder / "candidate_set_entities.jsonl")
    titles = {record["entity_id"]: record for record in pool}
    shared = Counter[tuple[bool, bool]]()
    for article in records(folder / "wikinews_mentions-test.jsonl"):
        script = POOL_LANGUAGES[article["context"]["language"]]
        for mention in article["mentions"]:
            entity = titles[mention["entity_id"]]
            same_script = POOL_LANGUAGES[entity["description_language"]] == script
            shared[same_script, mention["mention_span"]["text"] in entity["title"]] += 1
    assert shared[True, False] == shared[False, True] == 0
    assert min(shared[True, True], shared[False, False]) > 100


def test_pairs_are_english_and_of_other_entities(folder: Path) -> None:
    pool = {record["entity_id"] for record in records(folder / "candidate_set_entities.jsonl")}
    for split, count in (("train", 120), ("dev", 10)):
        path = folder / f"wikipedia_pairs-{split}.jsonl"
        assert len(list(MEWSLI_X_PAIRS.read([path], {}))) == count
        for record in records(path):
            assert record["entity"]["entity_id"] not in pool
            assert record["entity"]["description_language"] == "en"
            assert record["contextual_mention"]["context"]["language"] == "en"
            assert len(record["contextual_mention"]["context"]["sentence_spans"]) <= 5


def test_addresses_say_that_the_files_are_synthetic(folder: Path) -> None:
    for path in folder.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            assert f'"{ADDRESS}/' in line
            assert unicodedata.is_normalized("NFC", line)


def test_the_layout_is_that_of_the_release(folder: Path) -> None:
    article = records(folder / "wikinews_mentions-test.jsonl")[0]
    assert set(article["context"]) == {
        *("document_id", "document_url", "document_title", "section_title", "language", "text"),
        "sentence_spans",
    }
    assert set(article["mentions"][0]) == {"example_id", "entity_id", "mention_span", "metadata"}
    entity = records(folder / "candidate_set_entities.jsonl")[0]
    assert set(entity) == {
        *("entity_id", "title", "description", "description_url", "description_language"),
        "sentence_spans",
    }


def test_the_same_seed_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    same = write_synthetic(tmp_path / "a", candidates=720, mentions_per_language=COUNTS, pairs=120, seed=5)
    assert [path.read_bytes() for path in same] == [(folder / path.name).read_bytes() for path in same]
    other = write_synthetic(tmp_path / "b", candidates=720, mentions_per_language=COUNTS, pairs=120, seed=6)
    assert all(path.read_bytes() != (folder / path.name).read_bytes() for path in other)


def test_the_first_candidates_do_not_depend_on_how_many_there_are(folder: Path, tmp_path: Path) -> None:
    write_synthetic(tmp_path, candidates=100, mentions_per_language={"ta": 1}, pairs=1, seed=5)
    few = records(tmp_path / "mewsli-x" / "candidate_set_entities.jsonl")
    assert few == records(folder / "candidate_set_entities.jsonl")[:100]


def test_names_are_unique_and_the_tables_spell_every_syllable_differently() -> None:
    world = open_world(1)
    names = {(entity.first, entity.second) for entity in map(world.entity, range(20_000))}
    assert len(names) == 20_000
    for script in SCRIPTS.values():
        assert len(script.syllables) == len(set(script.syllables)) == SYLLABLES


def test_the_released_sizes() -> None:
    assert sum(RELEASED_MENTIONS.values()) == 14_624
    assert (RELEASED_CANDIDATES, RELEASED_PAIRS) == (1_003_893, 167_719)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"candidates": 0}, "Expected from 1 to 100,000,000 candidates, found 0"),
        ({"pairs": -1}, "Expected from 1 to 100,000,000 pairs, found -1"),
        ({"mentions_per_language": {}}, "Expected mentions in at least one language, found none"),
        ({"mentions_per_language": {"ta": 0}}, "Expected at least 1 mention in 'ta', found 0"),
    ],
)
def test_rejects_sizes_that_make_no_data(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"candidates": 10, "mentions_per_language": {"ta": 2}, "pairs": 2, "seed": 1}
    with pytest.raises(UsageError, match=message):
        write_synthetic(tmp_path, **{**sizes, **given})
    assert list(tmp_path.iterdir()) == []


def test_rejects_other_languages_and_present_files(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="No language with mentions in Mewsli-X named 'sw'"):
        write_synthetic(tmp_path, candidates=10, mentions_per_language={"sw": 2}, pairs=2, seed=1)
    (tmp_path / "mewsli-x").mkdir()
    kept = tmp_path / "mewsli-x" / "wikipedia_pairs-dev.jsonl"
    kept.write_text("kept", encoding="utf-8")
    with pytest.raises(UsageError, match=r"wikipedia_pairs-dev.jsonl' exists already. Choose another folder"):
        write_synthetic(tmp_path, candidates=10, mentions_per_language={"ta": 2}, pairs=2, seed=1)
    assert [path.name for path in (tmp_path / "mewsli-x").iterdir()] == [kept.name]
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"Cannot write .*: Not a directory"):
        write_synthetic(tmp_path / "file", candidates=1, mentions_per_language={"ta": 1}, pairs=1, seed=1)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness_xtreme_r.mewsli_x", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command(tmp_path: Path) -> None:
    sizes = ("--candidates", "40", "--mentions", "2", "--pairs", "3", "--seed", "1")
    done = command("--output", str(tmp_path), *sizes)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 5
    assert len(records(tmp_path / "mewsli-x" / "candidate_set_entities.jsonl")) == 40
    again = command("--output", str(tmp_path), *sizes)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("Error: ") and "exists already" in again.stderr
    both = command("--output", str(tmp_path / "x"), "--full", "--pairs", "3")
    assert both.returncode == 2
    assert "--full" in both.stderr and "--pairs" in both.stderr
