"""Small training sets and unusual texts in many scripts, written for the contract suites.

They show that the machinery of an adapter works, and say nothing about its quality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from harness.data.records import (
    Answer,
    ClassificationExample,
    Example,
    MultipleChoiceExample,
    RetrievalPair,
    SpanExample,
    TaggedSentence,
    TextPair,
)
from harness.models.capabilities import Head, HeadSpec

SENTENCES: tuple[str, ...] = (
    "The cat sleeps on the warm roof.",
    "Anna bought two red apples yesterday.",
    "Der Zug nach Bremen fährt um acht Uhr ab.",
    "Мой брат читает старую книгу.",
    "القطة تنام تحت الشجرة.",
    "आज बारिश हो रही है।",
    "我明天去北京。",
    "วันนี้อากาศดีมาก",
    "ዛሬ ጥሩ ቀን ነው።",
)
"""Plain sentences of different lengths in seven scripts."""

UNUSUAL_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "empty": "",
        "blank": " \t\n ",
        "decomposed (NFD)": "Cafe\u0301 ou\u0300 l\u2019on e\u0301crit",
        "composed (NFC)": "Caf\u00e9 o\u00f9 l\u2019on \u00e9crit",
        "right to left": "שָׁלוֹם עֲלֵיכֶם \u200fمرحبًا بكم\u200e 123",
        "emoji": "👩\u200d👩\u200d👧\u200d👦 👍🏽 🇹🇿 ok",
        "stacked combining marks": "Z\u0351\u036b\u0343a\u0329\u0300\u0301l\u0334g\u0337o\u0300\u0301",
        "zero-width characters": "na\u200bme \u200cمی\u200cخواهم \ufeff\u2060end",
        "beyond the basic plane": "𝔘𝔫𝔦 𐌰𐌱𐌲 𠀋",
        "Devanagari conjuncts": "क्षत्रिय स्त्री ज्ञान",
        "unspaced": "ภาษาไทยไม่มีช่องว่าง日本語も同じ",
        "punctuation only": "?!… —",
        "very long": "word слово 词 " * 300,
    }
)
"""Texts that break careless adapters, by what is unusual about them."""

_PAIRS: tuple[tuple[str, str, str], ...] = (
    ("The cat sleeps.", "The cat is asleep.", "yes"),
    ("The cat sleeps.", "The cat runs.", "no"),
    ("Anna has a dog.", "Anna has an animal.", "yes"),
    ("Anna has a dog.", "Anna has no pet.", "no"),
    ("Das Haus ist alt.", "Das Haus ist nicht neu.", "yes"),
    ("Das Haus ist alt.", "Das Haus ist neu.", "no"),
    ("Он дома.", "Он не на улице.", "yes"),
    ("Он дома.", "Он на улице.", "no"),
    ("आज बारिश है।", "आज मौसम गीला है।", "yes"),
    ("आज बारिश है।", "आज धूप है।", "no"),
    ("他在北京。", "他在中国。", "yes"),
    ("他在北京。", "他在法国。", "no"),
)

_CHOICES: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("It rained. What was the effect?", ("The street got wet.", "The sun rose."), 0),
    ("He was hungry. What was the effect?", ("He slept.", "He ate some bread."), 1),
    ("Das Glas fiel. Was war die Folge?", ("Es zerbrach.", "Es lachte."), 0),
    ("Она устала. Что было потом?", ("Она побежала.", "Она легла спать."), 1),
    ("वह बीमार था। फिर क्या हुआ?", ("वह डॉक्टर के पास गया।", "वह नाचा।"), 0),
    ("天黑了。结果怎样？", ("他种了树。", "他开了灯。"), 1),
)

_TAGGED: tuple[str, ...] = (
    "The/DET cat/NOUN sleeps/VERB ./PUNCT",
    "Anna/PROPN bought/VERB two/NUM red/ADJ apples/NOUN ./PUNCT",
    "Birds/NOUN sing/VERB",
    "Der/DET alte/ADJ Hund/NOUN schläft/VERB ./PUNCT",
    "Мой/DET брат/NOUN читает/VERB книгу/NOUN ./PUNCT",
    "القطة/NOUN تنام/VERB ./PUNCT",
    "राम/PROPN किताब/NOUN पढ़ता/VERB है/AUX ।/PUNCT",
    "我/PRON 看/VERB 书/NOUN 。/PUNCT",
)

_QUESTIONS: tuple[tuple[str, str, str], ...] = (
    ("Where does Anna live?", "Anna lives in Lagos. Her brother lives in Nairobi.", "Lagos"),
    ("When was the bridge built?", "The bridge was built in 1932 by the city.", "1932"),
    ("Who wrote the letter?", "The old letter was written by Maria Costa in June.", "Maria Costa"),
    ("Wo wohnt Peter?", "Peter wohnt seit zwei Jahren in Köln.", "Köln"),
    ("Где живёт Иван?", "Иван живёт в Казани. Он учитель.", "Казани"),
    ("أين تعيش ليلى؟", "تعيش ليلى في تونس منذ عام 2010.", "تونس"),
    ("राम कहाँ रहता है?", "राम दिल्ली में रहता है।", "दिल्ली"),
    ("小王住在哪里？", "小王住在上海，他是医生。", "上海"),
)


def head_spec(head: Head) -> HeadSpec:
    """Return the specification of a head that fits `training_examples`."""
    if head is Head.CLASSIFICATION:
        return HeadSpec(head=head, labels=("no", "yes"), inputs=("premise", "hypothesis"))
    if head is Head.TAGGING:
        return HeadSpec(head=head, labels=tuple(sorted({tag for line in _TAGGED for tag in _tags(line)})))
    return HeadSpec(head=head)


def training_examples(head: Head) -> Sequence[Example]:
    """Return labelled examples for a head."""
    match head:
        case Head.CLASSIFICATION:
            return [
                ClassificationExample(
                    id=f"pair-{number}", inputs={"premise": premise, "hypothesis": hypothesis}, label=label
                )
                for number, (premise, hypothesis, label) in enumerate(_PAIRS)
            ]
        case Head.MULTIPLE_CHOICE:
            return [
                MultipleChoiceExample(id=f"choice-{number}", context=context, choices=choices, label=label)
                for number, (context, choices, label) in enumerate(_CHOICES)
            ]
        case Head.TAGGING:
            return [
                TaggedSentence(id=f"sentence-{number}", tokens=_tokens(line), tags=_tags(line))
                for number, line in enumerate(_TAGGED)
            ]
        case Head.SPAN_EXTRACTION:
            return [
                SpanExample(
                    id=f"question-{number}",
                    question=question,
                    context=context,
                    answers=(Answer(text=answer, start=context.index(answer)),),
                )
                for number, (question, context, answer) in enumerate(_QUESTIONS)
            ]
        case Head.DUAL_ENCODER:
            return [
                RetrievalPair(id=f"retrieval-{number}", query=question, passage=context)
                for number, (question, context, _) in enumerate(_QUESTIONS)
            ]
        case Head.TEXT_TO_TEXT:
            return [
                TextPair(
                    id=f"text-{number}", source=f"question: {question} context: {context}", target=answer
                )
                for number, (question, context, answer) in enumerate(_QUESTIONS)
            ]


def _tokens(line: str) -> tuple[str, ...]:
    return tuple(item.rpartition("/")[0] for item in line.split())


def _tags(line: str) -> tuple[str, ...]:
    return tuple(item.rpartition("/")[2] for item in line.split())
