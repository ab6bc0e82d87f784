"""Synthetic files in the layout of Mewsli-X (release 20220518_6), for tests and benchmarks.

Everything in them is invented: names, words, texts. Scores on them say nothing about a model on
Mewsli-X. They have structure that a model can learn: a mention and the description of its entity share the name,
the kind and the place; in another script the name is spelt with other letters, and each language has its own
words for kinds, so that same-language retrieval is easier than cross-language retrieval. Every fourth mention
has only the first word of the name.

Unlike the release, the descriptions are in 36 languages, those of XTREME-R's 50 that are written in one of five
scripts, and the pairs are about entities outside of the candidate set. Document and description addresses begin
with `ADDRESS`.

Source of the layout: google-research/google-research ``dense_representations_for_entity_retrieval/mel/mewsli_x``
(README and ``schema.py``).
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from harness import UnknownNameError, UsageError
from harness_xtreme_r.mewsli_x.world import LANGUAGES, Entity, Lexicon, World, open_world

__all__ = [
    "ADDRESS",
    "RELEASED_CANDIDATES",
    "RELEASED_MENTIONS",
    "RELEASED_PAIRS",
    "write_synthetic",
]

ADDRESS: Final = "https://synthetic.invalid"
RELEASED_CANDIDATES: Final = 1_003_893
RELEASED_MENTIONS: Final[Mapping[str, int]] = MappingProxyType(
    {"ar": 1501, "de": 1551, "en": 1490, "es": 1552, "fa": 458, "ja": 1519, "pl": 1562}
    | {"ro": 672, "ta": 1567, "tr": 1215, "uk": 1537}
)
"""Test mentions of the release by language; 14,624 in all."""
RELEASED_PAIRS: Final = 167_719
"""Training pairs of the release."""

_DEV_MENTIONS: Final = (2_991, 14_624)
_DEV_PAIRS: Final = (14_051, RELEASED_PAIRS)
_SAME_LANGUAGE: Final = 0.25
_SHORT_NAME: Final = 0.25

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mention:
    """A sentence with a mention from `start` to `end`."""

    sentence: str
    start: int
    end: int
    entity: Entity


def write_synthetic(
    folder: Path, *, candidates: int, mentions_per_language: Mapping[str, int], pairs: int, seed: int
) -> list[Path]:
    """Write the five files below ``folder/mewsli-x`` and return their paths.

    `mentions_per_language` counts the test mentions and `pairs` the training pairs; the dev files get as large
    a part of these as in the release, at least one item. The same arguments give the same bytes, and the first
    candidates do not depend on how many there are. Raises `UsageError` for counts that make no data, and where
    a file exists already or cannot be written.
    """
    _check_counts(candidates, mentions_per_language, pairs)
    world = open_world(seed)
    target = Path(folder) / "mewsli-x"
    development = _shares(mentions_per_language, *_DEV_MENTIONS)
    dev_pairs = max(1, pairs * _DEV_PAIRS[0] // _DEV_PAIRS[1])
    contents: dict[str, Iterable[Record]] = {
        "wikinews_mentions-dev.jsonl": _articles(world, "dev", development, candidates),
        "wikinews_mentions-test.jsonl": _articles(world, "test", mentions_per_language, candidates),
        "candidate_set_entities.jsonl": _candidates(world, candidates),
        "wikipedia_pairs-train.jsonl": _pairs(world, "train", range(candidates, candidates + pairs)),
        "wikipedia_pairs-dev.jsonl": _pairs(
            world, "dev", range(candidates + pairs, candidates + pairs + dev_pairs)
        ),
    }
    paths = [target / name for name in contents]
    for path in paths:
        if path.exists():
            raise UsageError(
                f"{str(path)!r} exists already.", hint="Choose another folder, or remove the file."
            )
    for path, records in zip(paths, contents.values(), strict=True):
        _write(path, records)
    return paths


def _check_counts(candidates: int, mentions: Mapping[str, int], pairs: int) -> None:
    for name, count in {"candidates": candidates, "pairs": pairs}.items():
        if not 1 <= count <= 10**8:
            raise UsageError(f"Expected from 1 to 100,000,000 {name}, found {count}.")
    if not mentions:
        raise UsageError("Expected mentions in at least one language, found none.")
    for language, count in mentions.items():
        if language not in RELEASED_MENTIONS:
            raise UnknownNameError("language with mentions in Mewsli-X", language, RELEASED_MENTIONS)
        if count < 1:
            raise UsageError(f"Expected at least 1 mention in {language!r}, found {count}.")


def _shares(counts: Mapping[str, int], part: int, whole: int) -> dict[str, int]:
    """Return `part` / `whole` of each count, rounded so that the sum is that part of the sum."""
    shares, before = {}, 0
    for key, count in counts.items():
        after = before + count
        shares[key] = max(1, after * part // whole - before * part // whole)
        before = after
    return shares


def _write(path: Path, records: Iterable[Record]) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("w", encoding="utf-8", newline="\n", buffering=1 << 20) as file:
            file.writelines(encode(record) + "\n" for record in records)
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(
            f"Cannot write {str(path)!r}: {error.strerror}.", hint="Choose a folder you can write to."
        ) from error


def _candidates(world: World, count: int) -> Iterator[Record]:
    for number in range(count):
        yield _description(world.entity(number), world.lexicons[world.described_in(number)])


def _description(entity: Entity, words: Lexicon) -> Record:
    """Return an entity with one to three sentences."""
    script = words.script
    first, second = _name(entity, words)
    title = f"{first}{script.name_space}{second}"
    kind, place = words.kinds[entity.kind], words.places[entity.place]
    particle, near = words.particles[:2]
    sentences = [script.sentence(title, particle, kind, near, place)]
    if entity.number % 3:
        other = words.places[entity.first[0]]
        sentences.append(script.sentence(words.particles[2], second, words.particles[3], other))
    if entity.number % 3 == 2:
        other = words.kinds[(entity.kind + 1) % len(words.kinds)]
        sentences.append(script.sentence(first, words.particles[4], other, words.particles[5]))
    text, spans = _joined(sentences, script.space)
    return {
        "entity_id": entity.id,
        "title": title,
        "description": text,
        "description_url": f"{ADDRESS}/{words.language}/entity/{entity.number}",
        "description_language": words.language,
        "sentence_spans": spans,
    }


def _name(entity: Entity, words: Lexicon) -> tuple[str, str]:
    return words.script.word(*entity.first).capitalize(), words.script.word(*entity.second).capitalize()


def _joined(sentences: Iterable[str], between: str) -> tuple[str, list[dict[str, int]]]:
    spans, start = [], 0
    parts = list(sentences)
    for sentence in parts:
        spans.append({"start": start, "end": start + len(sentence)})
        start += len(sentence) + len(between)
    return between.join(parts), spans


def _articles(world: World, split: str, counts: Mapping[str, int], candidates: int) -> Iterator[Record]:
    """Yield articles of one to three mentions, language after language."""
    for language, count in counts.items():
        draw = random.Random(f"{world.seed}:{split}:{language}")  # noqa: S311
        written = 0
        while written < count:
            size = min(draw.choice((1, 1, 1, 2, 2, 3)), count - written)
            entities = [world.entity(_drawn(draw, language, candidates)) for _ in range(size)]
            yield _article(world, split, language, written, entities, draw)
            written += size


def _drawn(draw: random.Random, language: str, candidates: int) -> int:
    own = range(LANGUAGES.index(language), candidates, len(LANGUAGES))
    if own and draw.random() < _SAME_LANGUAGE:
        return draw.choice(own)
    return draw.randrange(candidates)


def _article(
    world: World, split: str, language: str, first: int, entities: list[Entity], draw: random.Random
) -> Record:
    words = world.lexicons[language]
    mentions = [_mention(entity, words, draw) for entity in entities]
    title = words.script.space.join(draw.sample(words.particles, 3))
    body, spans = _joined([mention.sentence for mention in mentions], words.script.space)
    begin = len(title) + 2
    spans = [{name: offset + begin for name, offset in span.items()} for span in spans]
    document = f"{split}-{language}-{first}"
    return {
        "context": _context(
            words,
            document,
            title=title,
            text=f"{title}\n\n{body}",
            sentence_spans=[{"start": 0, "end": len(title)}, *spans],
        ),
        "mentions": [
            _mention_record(mention, f"{world.seed}:{document}:{number}", span["start"])
            for number, (mention, span) in enumerate(zip(mentions, spans, strict=True))
        ],
    }


def _context(
    words: Lexicon, document: str, *, title: str, text: str, sentence_spans: list[dict[str, int]]
) -> Record:
    return {
        "document_id": f"synthetic-{document}",
        "document_url": f"{ADDRESS}/{words.language}/document/{document}",
        "document_title": title,
        "section_title": "",
        "language": words.language,
        "text": text,
        "sentence_spans": sentence_spans,
    }


def _mention(entity: Entity, words: Lexicon, draw: random.Random) -> _Mention:
    script, particles = words.script, words.particles
    first, second = _name(entity, words)
    surface = first if draw.random() < _SHORT_NAME else f"{first}{script.name_space}{second}"
    kind, place = words.kinds[entity.kind], words.places[entity.place]
    before: tuple[str, ...] = draw.choice(((), (particles[6],), (particles[7], kind)))
    after = (particles[1], place) if draw.random() < 0.5 else (particles[4], kind, particles[1], place)
    start = len(script.space.join(before)) + (len(script.space) if before else 0)
    return _Mention(
        sentence=script.sentence(*before, surface, *after),
        start=start,
        end=start + len(surface),
        entity=entity,
    )


def _mention_record(mention: _Mention, key: str, begin: int) -> Record:
    return {
        "example_id": hashlib.blake2b(key.encode(), digest_size=16).hexdigest(),
        "mention_span": {
            "start": begin + mention.start,
            "end": begin + mention.end,
            "text": mention.sentence[mention.start : mention.end],
        },
        "entity_id": mention.entity.id,
        "metadata": {"bin_name": "synthetic"},
    }


def _pairs(world: World, split: str, numbers: Iterable[int]) -> Iterator[Record]:
    """Yield pairs of English mentions and English descriptions, each of another entity."""
    words = world.lexicons["en"]
    draw = random.Random(f"{world.seed}:{split}:pairs")  # noqa: S311
    for number in numbers:
        entity = world.entity(number)
        mention = _mention(entity, words, draw)
        filler = [words.script.sentence(*draw.sample(words.particles, 4)) for _ in range(draw.randrange(3))]
        focus = draw.randrange(len(filler) + 1)
        text, spans = _joined([*filler[:focus], mention.sentence, *filler[focus:]], " ")
        document = f"wikipedia-{split}-{number}"
        context = _context(words, document, title=document, text=text, sentence_spans=spans)
        yield {
            "contextual_mention": {
                "context": context,
                "mention": _mention_record(mention, f"{world.seed}:{document}", spans[focus]["start"]),
            },
            "entity": _description(entity, words),
        }
