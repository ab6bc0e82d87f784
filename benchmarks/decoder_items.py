"""The items of the decoder benchmarks, published or made up: in our folders, and as lm-eval's documents."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

XNLI, XCOPA, XQUAD = "en", "it", "en"
LANGUAGES = {"xnli": XNLI, "xcopa": XCOPA, "xquad": XQUAD}
"""The languages that are taken."""
LABELS = ("entailment", "neutral", "contradiction")
"""In the order of lm-eval's choices, and of the hub's class ids."""
WORDS = (
    "the a this that old new river bridge house teacher child doctor city village winter summer market train paper "
    "water fire stone garden music picture letter number morning night week year friend brother sister story answer "
    "question reason result road field was were has had made took gave found lost opened closed built broke moved "
    "stayed left came went said asked saw heard knew thought wanted needed began ended and but because while after "
    "before near under over with without into from about slowly quickly often never always again together alone"
).split()


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderItems:
    """Items of three tasks."""

    xnli: tuple[tuple[str, str, str], ...]
    """Premise, hypothesis, label."""
    xcopa: tuple[Mapping[str, Any], ...]
    """Lines of the published files."""
    xquad: tuple[Mapping[str, Any], ...]
    """``id``, ``context``, ``question``, ``answers`` (a list with ``text`` and ``answer_start``)."""

    def write(self, folder: Path) -> None:
        """Write the items as the published files are laid out."""
        lines = ["\t".join(item) for item in self.xnli]
        _write(folder / "xnli" / f"test-{XNLI}.tsv", "\n".join(lines) + "\n")
        rows = [json.dumps(dict(item), ensure_ascii=False) for item in self.xcopa]
        _write(folder / "xcopa" / "data" / XCOPA / f"test.{XCOPA}.jsonl", "\n".join(rows) + "\n")
        paragraphs = [
            {
                "context": item["context"],
                "qas": [{key: item[key] for key in ("id", "question", "answers")}],
            }
            for item in self.xquad
        ]
        content = {"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}
        _write(folder / "xquad" / f"xquad.{XQUAD}.json", json.dumps(content, ensure_ascii=False))

    def documents(self) -> dict[str, dict[str, Any]]:
        """Return language and documents of every task as lm-eval's task files expect them."""
        xnli = [
            {"premise": premise, "hypothesis": hypothesis, "label": LABELS.index(label)}
            for premise, hypothesis, label in self.xnli
        ]
        xquad = [
            {
                **item,
                "answers": {
                    key: [answer[key] for answer in item["answers"]] for key in ("text", "answer_start")
                },
            }
            for item in self.xquad
        ]
        return {
            "xnli": {"language": XNLI, "documents": xnli},
            "xcopa": {"language": XCOPA, "documents": [dict(item) for item in self.xcopa]},
            "xquad": {"language": XQUAD, "documents": xquad},
        }


def published(folder: Path, xnli: int, xcopa: int, xquad: int) -> DecoderItems:
    """Return the first so many items of the published test files; of XQuAD, one question per paragraph."""
    lines = (folder / "xnli" / f"test-{XNLI}.tsv").read_text(encoding="utf-8").splitlines()[:xnli]
    rows = (
        (folder / "xcopa" / "data" / XCOPA / f"test.{XCOPA}.jsonl").read_text(encoding="utf-8").splitlines()
    )
    articles = json.loads((folder / "xquad" / f"xquad.{XQUAD}.json").read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    return DecoderItems(
        xnli=tuple((first, second, label) for first, second, label in (line.split("\t") for line in lines)),
        xcopa=tuple(json.loads(row) for row in rows[:xcopa]),
        xquad=tuple(
            {
                "context": paragraph["context"],
                **{key: paragraph["qas"][0][key] for key in ("id", "question", "answers")},
            }
            for paragraph in paragraphs[:xquad]
        ),
    )


def made_up(xnli: int, xcopa: int, xquad: int, *, seed: int = 0) -> DecoderItems:
    """Return items of random English words, of about the published lengths; three hypotheses follow a premise."""
    generator = random.Random(seed)

    def sentence(least: int, most: int) -> str:
        words = generator.choices(WORDS, k=generator.randint(least, most))
        return " ".join([words[0].capitalize(), *words[1:]]) + "."

    pairs, premise = [], ""
    for number in range(xnli):
        premise = sentence(10, 30) if number % 3 == 0 else premise
        pairs.append((premise, sentence(5, 15), LABELS[number % 3]))
    rows = [
        {
            "premise": sentence(5, 9),
            "choice1": sentence(3, 7),
            "choice2": sentence(3, 7),
            "question": generator.choice(["cause", "effect"]),
            "label": generator.randrange(2),
            "idx": number,
            "changed": False,
        }
        for number in range(xcopa)
    ]
    questions = []
    for number in range(xquad):
        context = " ".join(sentence(10, 25) for _ in range(6))
        answer = context.split()[generator.randrange(60)].rstrip(".")
        found = [{"text": answer, "answer_start": context.find(answer)}]
        questions.append(
            {"id": f"q{number}", "context": context, "question": sentence(6, 10), "answers": found}
        )
    return DecoderItems(xnli=tuple(pairs), xcopa=tuple(rows), xquad=tuple(questions))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
