"""XTREME-R as the Hub and the web have it: made of local files of the same data, in the layouts that specs name.

A language without local files has the items of another one, so that every language that a spec names has data. No
file is a published one, but those of LAReQA in five languages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.data.origin import Origin
from harness.data.resolve import DataOptions, DataRef, HubFiles
from harness.data.sources import DataFinder, data_ref
from harness.errors import HarnessError
from harness.running.session import Session
from harness.specs.schema import Source, Split
from harness.specs.selection import select
from tests.harness_hub.web_stand_in import tarred, zipped

ITEMS = 40
UD = "lindat.mff.cuni.cz/repository/xmlui/bitstream/handle/11234"
LAREQA = "raw.githubusercontent.com/google-research-datasets/lareqa"
COMMIT = "9bc8c7fb6dd8d01d72a05a93c2cb96882b0d299c"
MEWSLI = "storage.googleapis.com/gresearch/mewsli/mewsli-x_20220518_6.zip"
SQUAD = "rajpurkar.github.io/SQuAD-explorer/dataset"
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@dataclass(slots=True)
class Downloads:
    """What two servers on loopback serve."""

    hub: dict[str, bytes] = field(default_factory=dict)
    """``datasets/OWNER/NAME/FILE`` -> content."""
    web: dict[str, bytes] = field(default_factory=dict)
    """Address without ``https://`` -> content."""
    checksums: dict[str, str] = field(default_factory=dict)
    """Checksum in the shipped specs -> that of the file which replaces the published one."""


def make_downloads(session: Session, data: Path) -> Downloads:
    """Return all that ``--tasks xtreme_r --data hub`` reads."""
    made = Downloads()
    _add_web(made, session, data)
    cards: dict[str, dict[str, dict[str, str]]] = {}
    finder = DataFinder(
        DataOptions(mode="local", folders=(data / "substitute", data)), session.registry, data / "no-cache"
    )
    for ref, source, others in _hub_splits(session):
        assert ref.hub is not None
        own = _local_rows(finder, source, ref)
        stand_ins = (rows for other in others if (rows := _local_rows(finder, source, other)))
        rows = own or next(stand_ins, []) or _other_split_rows(finder, session, ref)
        lines = "".join(json.dumps(_record(row, ref.hub), ensure_ascii=False) + "\n" for row in rows)
        config, split = ref.hub.config or "default", ref.hub.split
        [name] = ref.hub.files or (f"{config}/{split}.jsonl",)
        path = f"datasets/{ref.hub.path}/{name}"
        made.hub[path] = made.hub.get(path, b"") + lines.encode() if ref.hub.options else lines.encode()
        cards.setdefault(ref.hub.path, {}).setdefault(config, {})[split] = name
    for path, configs in cards.items():
        made.hub[f"datasets/{path}/README.md"] = _card(configs).encode()
    return made


def _hub_splits(session: Session) -> Iterator[tuple[DataRef, Source, list[DataRef]]]:
    """Yield every split of the suite that the Hub has, with the same split in the other languages."""
    tasks = [item.entry.spec for item in select(session.catalog, ["xtreme_r"])]
    stages = [stage for spec in tasks if spec.transfer for stage in spec.transfer.stages]
    for name in dict.fromkeys([*(spec.task for spec in tasks), *stages]):
        origin = Origin.named(name, session.catalog)
        for split in SPLITS:
            refs = []
            for code in origin.spec.languages:
                source = origin.source(code, split)
                if source is not None and source.hub is not None:
                    language = origin.languages.get(code)
                    ref = data_ref(source, owner=name, language=language, split=split, folder=None)
                    refs.append((ref, source))
            for ref, source in refs:
                yield ref, source, [other for other, _ in refs if other is not ref]


def _local_rows(finder: DataFinder, source: Source, ref: DataRef) -> list[dict[str, Any]]:
    """Return some labelled rows of a split in a data folder, with the task's labels; none where it is not there."""
    try:
        found = finder.find(source, ref)
        rows = list(islice(finder.rows(found), 400))
    except HarnessError:
        return []
    kept = []
    for row in rows:
        fields = dict(row.fields)
        for key in ("label", "tags"):
            value = fields.get(key)
            if isinstance(value, tuple):
                fields[key] = [found.label_map.get(item, item) for item in value]
            elif value is not None:
                fields[key] = found.label_map.get(str(value), value)
        if fields.get("answers", True) and fields.get("label", True) is not None and fields.get("tags", True):
            kept.append(fields)
    return kept[:ITEMS]


def _other_split_rows(finder: DataFinder, session: Session, ref: DataRef) -> list[dict[str, Any]]:
    """Return rows of another split, where no language has this one; of Mewsli-X, its format example."""
    if ref.owner == "mewslix":
        return [dict(row) for row in _mentions(finder._declared, ref.language)]
    origin = Origin.named(ref.owner, session.catalog)
    for split in SPLITS:
        for code in origin.spec.languages:
            source = origin.source(code, split)
            if source is not None:
                language = origin.languages.get(code)
                other = data_ref(source, owner=ref.owner, language=language, split=split, folder=None)
                if rows := _local_rows(finder, source, other):
                    return rows
    raise AssertionError(f"no local data for {ref}")


def _record(row: Mapping[str, Any], hub: HubFiles) -> dict[str, Any]:
    """Return a row with the columns and the label numbers of the Hub."""
    if hub.reader == "squad_records":
        answers = row["answers"]
        texts = {
            "text": [answer["text"] for answer in answers],
            "answer_start": [answer["start"] for answer in answers],
        }
        name = hub.options.get("id_prefix", "") + str(row["id"])
        return {"id": name, "context": row["context"], "question": row["question"], "answers": texts}
    numbers: dict[str, Any] = {label: int(raw) for raw, label in hub.label_map.items()}
    if hub.path == "lighteval/siqa":
        numbers = {label: raw for raw, label in hub.label_map.items()}
    columns = (
        dict(pair.split("=") for pair in hub.columns.split(","))
        if hub.columns
        else {name: name for name in row}
    )
    record = {columns[name]: value for name, value in row.items() if name in columns}
    for name, column in columns.items():
        if name == "label":
            record[column] = numbers[row[name]]
        elif name == "tags":
            record[column] = [numbers[tag] for tag in row[name]]
        elif column == "idx":
            record[column] = int(row[name])
    return record


def _card(configs: Mapping[str, Mapping[str, str]]) -> str:
    listed = [
        {"config_name": name, "data_files": [{"split": split, "path": path} for split, path in files.items()]}
        for name, files in configs.items()
    ]
    return f"---\nconfigs: {json.dumps(listed)}\n---\n"


# The web ----------------------------------------------------------------------------------------------


def _add_web(made: Downloads, session: Session, data: Path) -> None:
    folder = data / "lareqa" / "xquad-r"
    for code in session.catalog.task("lareqa").spec.languages:
        path = folder / f"{code}.json"
        content = (path if path.is_file() else folder / "en.json").read_bytes()
        made.web[f"{LAREQA}/{COMMIT}/xquad-r/{code}.json"] = content
    squad = _squad(data)
    named: dict[str, Split] = {"train": "train", "dev": "validation"}
    for name, split in named.items():
        made.web[f"{SQUAD}/{name}-v1.1.json"] = squad
        _replace(made, session, "squad_sentences", "en", split, squad)
    releases = {"2.5": f"{UD}/1-3105", "2.7": f"{UD}/1-3424"}
    for release, place in releases.items():
        content = tarred(_treebanks(session, data, release))
        made.web[f"{place}/ud-treebanks-v{release}.tgz"] = content
        code = {"2.5": "de", "2.7": "pl"}[release]
        _replace(made, session, "udpos", code, "test", content)
    made.web[MEWSLI] = content = zipped(_mewsli(data))
    _replace(made, session, "mewsli_x_pairs", "en", "train", content)


def _squad(data: Path) -> bytes:
    """Return the first articles of the sample at hand; an id that a paragraph has twice only once."""
    content = json.loads((data / "squad" / "train-v1.1.sample5500.json").read_text("utf-8"))
    del content["data"][200:]
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            paragraph["qas"] = list({item["id"]: item for item in paragraph["qas"]}.values())
    return json.dumps(content).encode()


def _replace(made: Downloads, session: Session, owner: str, code: str, split: Split, content: bytes) -> None:
    """Remember that a stand-in has another checksum than the published file that the spec names."""
    origin = Origin.named(owner, session.catalog)
    source = origin.source(code, split)
    assert source is not None
    ref = data_ref(source, owner=owner, language=origin.languages.get(code), split=split, folder=None)
    assert ref.web is not None
    assert ref.web.checksum is not None
    name, _, digest = ref.web.checksum.partition(":")
    made.checksums[digest] = hashlib.new(name, content, usedforsecurity=False).hexdigest()


def _treebanks(session: Session, data: Path, release: str) -> dict[str, bytes]:
    """Return a release with a treebank for every language: those at hand, and English under another name."""
    spec = session.catalog.task("udpos").spec
    english = data / "ud" / "UD_English-EWT" / "en_ewt-ud-test.conllu"
    members = {}
    for code in spec.languages:
        language = Origin.of(session.catalog.task("udpos")).languages.get(code)
        if (code in {"lt", "pl", "ro", "uk", "wo"}) != (release == "2.7"):
            continue
        found = sorted((data / "ud").glob(f"UD_{language.ud_name}-*/{language.ud_prefix}*-ud-test.conllu"))
        for path in found or [english]:
            own = path.parent.name if found else f"UD_{language.ud_name}-Made"
            stem = path.name.partition("-ud-")[0] if found else f"{language.ud_prefix}made"
            text = "\n\n".join(path.read_text("utf-8").split("\n\n")[:ITEMS]) + "\n\n"
            for split in ("train", "dev", "test"):
                members[f"ud-treebanks-v{release}/{own}/{stem}-ud-{split}.conllu"] = text.encode()
    members[f"ud-treebanks-v{release}/UD_German-LIT/de_lit-ud-test.conllu"] = b"1\tnot\tread\n\n"
    return members


def _articles(data: Path) -> list[dict[str, Any]]:
    lines = (data / "mewsli-x" / "example_mentions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _mewsli(data: Path) -> dict[str, bytes]:
    """Return the archive of Mewsli-X with the entities of the format example, each described by its own article."""
    entities, pairs = {}, []
    for article in _articles(data):
        context = article["context"]
        for mention in article["mentions"]:
            entity = {
                "entity_id": mention["entity_id"],
                "title": mention["mention_span"]["text"],
                "description": context["text"],
                "description_url": context["document_url"],
                "description_language": context["language"],
                "sentence_spans": context["sentence_spans"][:3],
            }
            entities[mention["entity_id"]] = entity
            pairs.append({"contextual_mention": {"context": context, "mention": mention}, "entity": entity})
    return {
        "candidate_set_entities.jsonl": _lines(entities.values()),
        "wikipedia_pairs-train.jsonl": _lines(pairs),
        "wikipedia_pairs-dev.jsonl": _lines(pairs),
        "wikinews_mentions_no_text-test.jsonl": b"never unpacked",
    }


def _mentions(registry: Any, code: str) -> Iterator[Mapping[str, Any]]:
    from tests.builders import released_data

    path = released_data() / "mewsli-x" / "example_mentions.jsonl"
    reader = registry.readers.get("mewsli_x_mentions")
    for row in reader.read([path], {"language": code if code == "ar" else "en"}):
        # No two languages may have the same file.
        yield {**row.fields, "query": f"{row.fields['query']} ({code})", "document": row.fields["target"]}


def _lines(records: Any) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
