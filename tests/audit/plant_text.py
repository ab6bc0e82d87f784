"""Faults of texts and tags: another language's, broken ones, a machine's remarks, labels in them, cut answers."""

from __future__ import annotations

from tests.audit.bench import Bench
from tests.audit.plant import PlantList

PLANTS = PlantList()
planted = PLANTS.planted

REMARK = "As an AI language model, I cannot translate this text."
REFUSAL = "Es tut mir leid, dabei kann ich nicht helfen."


@planted("xnli", "file of a third language under the name of another", "copied", "sw")
def third_language(bench: Bench) -> None:
    bench.write("xnli/sw", bench.rows("xnli/de"))


@planted("wikiann", "file of one language under the name of another, not parallel", "copied", "sw")
def other_language(bench: Bench) -> None:
    bench.write("wikiann/sw", bench.rows("wikiann/de"))


@planted("xnli", "three items of a third language", "copied", "sw", note=True)
def third_items(bench: Bench) -> None:
    bench.write("xnli/sw", bench.rows("xnli/de")[:3] + bench.rows("xnli/sw")[3:])


@planted("tatoeba", "sentences that were not translated", "not translated", "sw")
def one_side(bench: Bench) -> None:
    bench.change("tatoeba/sw", lambda row: {**row, "target": row["query"]})


@planted("pawsx", "file of one language with missing items", "parallel ids", "de", note=True)
def fewer(bench: Bench) -> None:
    bench.write("pawsx/de", bench.rows("pawsx/de")[2:])


@planted("xnli", "name of the label in the text", "label in text", "de")
def named_label(bench: Bench) -> None:
    bench.change("xnli/de", lambda row: {**row, "hypothesis": f"{row['hypothesis']} ({row['label']})"})


@planted("xnli", "UTF-8 that was read as Latin-1", "characters", "de", seen="XQuAD in ar", note=True)
def latin(bench: Bench) -> None:
    bench.change("xnli/de", lambda row: {**row, "premise": row["premise"].encode().decode("latin-1")})


@planted("xnli", "character that could not be read", "characters", "de", seen="XNLI", note=True)
def unreadable(bench: Bench) -> None:
    bench.change("xnli/de", lambda row: {**row, "premise": row["premise"].replace("ü", "\ufffd")})


@planted("xnli", "entity of HTML", "characters", "de", seen="XNLI in en, de, sw", note=True)
def entity(bench: Bench) -> None:
    bench.change("xnli/de", lambda row: {**row, "premise": row["premise"].replace("ü", "&uuml;")})


@planted("xnli", "remark of a machine in the place of a translation", "remark", "sw", note=True)
def remark(bench: Bench) -> None:
    [first, *rows] = bench.rows("xnli/sw")
    bench.write("xnli/sw", [{**first, "hypothesis": REMARK}, *rows])


@planted("xnli", "refusal in the place of many translations", "repeated", "de", note=True)
def refusals(bench: Bench) -> None:
    rows = bench.rows("xnli/de")
    bench.write("xnli/de", [{**row, "hypothesis": REFUSAL} for row in rows[:6]] + rows[6:])


@planted("xnli", "space without width in the place of a text", "placeholder", "de", note=True)
def unseen(bench: Bench) -> None:
    [first, *rows] = bench.rows("xnli/de")
    bench.write("xnli/de", [{**first, "hypothesis": " \u200b"}, *rows])


@planted("wikiann", "tags in IOB1, where an entity begins with `I-`", "tags", "de")
def other_scheme(bench: Bench) -> None:
    bench.change("wikiann/de", lambda row: {**row, "tags": [tag.replace("B-", "I-") for tag in row["tags"]]})


@planted("wikiann", "two entities that begin with `I-`", "tags", "de", note=True)
def some_of_scheme(bench: Bench) -> None:
    [first, *rows] = bench.rows("wikiann/de")
    tags = [tag.replace("B-", "I-") for tag in first["tags"]]
    bench.write("wikiann/de", [{**first, "tags": tags}, *rows])


@planted("wikiann", "file without tags other than `O`", "tags", "de")
def untagged(bench: Bench) -> None:
    bench.change("wikiann/de", lambda row: {**row, "tags": ["O" for _ in row["tags"]]})


@planted("xquad", "offsets and answers one character late", "answers", "de")
def late(bench: Bench) -> None:
    def moved(row: dict[str, object], context: str, start: int, size: int) -> dict[str, object]:
        return {**row, "answers": [{"text": context[start + 1 : start + 1 + size], "start": start + 1}]}

    bench.change(
        "xquad/de",
        lambda row: moved(row, row["context"], row["answers"][0]["start"], len(row["answers"][0]["text"])),
    )


@planted("xquad", "gold answer that is not in the context", "data", "de")
def no_span(bench: Bench) -> None:
    [first, *rows] = bench.rows("xquad/de")
    bench.write("xquad/de", [{**first, "answers": [{"text": "niemand", "start": 3}]}, *rows])


@planted("pawsx", "id that two items have", "data", "de")
def twice(bench: Bench) -> None:
    [first, second, *rows] = bench.rows("pawsx/de")
    bench.write("pawsx/de", [first, {**second, "id": first["id"]}, *rows])
