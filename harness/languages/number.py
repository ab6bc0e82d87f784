r"""Numbers as languages write them: digits of any script, separators, signs, currencies, fractions and LaTeX.

A number with one separator and three digits after it ("2.125", "2,125") is read by its language's convention: that of
Unicode CLDR 46 for Latin digits. Where the language groups digits with another mark, or its convention is not known, it
could be either number: then its value is None, and nothing is guessed. A minus in words and powers of ten are read (
"minus 5", ``1e6``), numbers in words are not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

from harness.languages.answer_words import answer_words, pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenNumber:
    """A number in a text."""

    text: str
    """Its digits and marks, digits as ASCII."""
    value: Fraction | None
    """None where the language's convention leaves two numbers open."""
    start: int
    """Where it begins in the text, after `plain_number` of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    decimal: str
    group: str


_STYLES: Final = {
    _Style(
        decimal=".", group=","
    ): """ab ak am ann apc ar arn as asa ba bal bem bew bez bgc bho bm bn bo brx ccp ceb
    cch cgg cho chr cic co cop cu cy dav dv dz ebu ee en fa fil fur ga gaa gd gez gn gu gv guz ha haw hi hnj ig ii io iu
    ja jbo jmc kaa kaj kam kcg kde ken ki kln km kn ko kok kpe ks ksb ksh kw la lag lg lkt lmo ltg luo luy mai mas mer
    mg mhn mi mic ml mn mni moh mr ms mt mus my myv mzn naq nd ne nqo nus nv ny nyn oc om or os osa pa pap pcm pi pis
    prg qu quc raj rhg rif rof rwk sa saq sat sbp sd shn si skr sma smj sms sn so st sw syr szl ta te teo th ti tig tl
    to tpi trv trw tw ty tyv ug ur vai vmw vo vun wa wae wal wbp xnr xog yi yo yue za zh zu""",
    _Style(decimal=".", group=" "): "dje gsw khq mfe nso rm ses tn twq xh",
    _Style(
        decimal=",", group="."
    ): """ast az bs ca da de dsb el es eu fo fy gl hr hsb ia id is it jgo jv kgp kkj kl ku
    lb lij lld ln lo lu mgh mk mua nl nnh ps pt rn ro rw sc seh sg sl sr su tr vi wo yrl""",
    _Style(
        decimal=",", group=" "
    ): """af agq bas be bg blo br cs cv dua dyo eo et ewo ff fi fr ht hu hy ie ka kab kea
    kk ksf ky lt lv nb nmg nn no pl ru sah se shi sk smn sq ss sv tg tk tok ts tt tzm uk uz ve vec yav zgh""",
}
_BY_LANGUAGE: Final = {code: style for style, codes in _STYLES.items() for code in codes.split()}
_UNKNOWN: Final = _Style(decimal="", group="")
_CURRENCY: Final = (
    r"(?:(?:US|HK|NT|[RAC])?\$|[€£¥₹৳฿₦₽₫₪₩₱₺₴]|(?<![A-Za-z])(?:Rs|Tk|RM|KSh|TSh|USD|EUR|GBP|INR)\.?)"
)
_NUMBER: Final = re.compile(
    rf"(?P<sign>(?<![0-9A-Za-z)\]%])-)?(?:{_CURRENCY}\s?|(?<![A-Za-z^_\d]))(?P<inner>-(?=\d))?"
    r"(?P<body>\d+(?:[.,'\u066b\u066c]\d+)*|(?<!\d)\.\d+)"
    r"(?:[eE](?P<exponent>[+-]?\d{1,3})(?![\w.]\w)(?!\w)"
    r"|\s?(?:[*x\u00d7\u00b7\u22c5]|\\times|\\cdot)\s?10\s?\^\s?\{?(?P<power>[+-]?\d{1,3})(?!\d)\}?"
    r"|(?<=\b10)\^\{?(?P<ten>[+-]?\d{1,3})(?!\d)\}?)?"
    r"(?:(?:[ \u00a0](?P<numerator>\d+))?\s?/\s?(?P<denominator>\d+)(?![\d/]))?"
)
_TIMES: Final = {
    **dict.fromkeys("千천", 10**3),
    **dict.fromkeys("万萬만", 10**4),
    **dict.fromkeys("亿億억", 10**8),
}
"""Powers of ten that Chinese, Japanese and Korean write after digits: 3万, 1.5億, 3万5千."""
LONGEST: Final = 300
"""Characters of the longest number that is read: models repeat digits without end, and integers of them are slow."""
_REMOVED: Final = dict.fromkeys(map(ord, "\u200b\u200e\u200f\u061c\u2066\u2067\u2068\u2069\ufeff"))
_REPLACED: Final = {
    **dict.fromkeys(map(ord, "\u202f\u2009\u2007\u2008"), "\u00a0"),
    **dict.fromkeys(map(ord, "\u2212\ufe63\uff0d\u2010\u2011\u2013"), "-"),
    **dict.fromkeys(map(ord, "\u2019\uff07"), "'"),
    **{0xFF0C: ",", 0xFF0E: ".", 0xFF04: "$", 0xFF0F: "/", 0xFF05: "%", 0x2044: "/"},
}
_THREES: Final = re.compile(r"\d{1,3}(?:[^\d]\d{3})+")
_INDIAN: Final = re.compile(r"\d{1,2}(?:[^\d]\d{2})*[^\d]\d{3}")


def written_numbers(text: str, language: str) -> list[WrittenNumber]:
    """Return the numbers of a text that `plain_number` made, in their order, as a language writes them."""
    style = _BY_LANGUAGE.get(language) or _BY_LANGUAGE.get(language.split("-", maxsplit=1)[0], _UNKNOWN)
    return list(_numbers(text, style))


def plain_number(text: str, language: str) -> str:
    """Return a text in which numbers have ASCII digits and marks, and no spaces or LaTeX within them."""
    text = re.sub(r"(?<=10)[\u207b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+", _plain_power, text)
    text = "".join(map(_plain_digit, text.translate(_REMOVED).translate(_REPLACED)))
    text = _minus(language).sub(lambda found: found.group() if found["before"] else "-", text)
    text = re.sub(r"\\([$%])", r"\1", text.replace("\\!", "").replace("{,}", ","))
    text = re.sub(r"(?<=\d)\\[,;: ](?=\d)", "\u00a0", text)
    text = re.sub(r"(\d?)\\[dt]?frac\s*(?:\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}|(\d)(\d))", _plain_fraction, text)
    style = _BY_LANGUAGE.get(language.split("-", maxsplit=1)[0], _UNKNOWN)
    spaces = "\u00a0 " if style.decimal == "," or style.group == " " else "\u00a0"
    # The digits before must not be a number of their own: 12 345 678 is one number, 1234 567 is two.
    grouped = rf"(?<![\d.,])(?<!\d[{spaces}])\d{{1,3}}(?:[{spaces}]\d{{3}})+(?![\d{spaces}]*\d)"
    return re.sub(grouped, lambda found: re.sub(rf"[{spaces}]", "", found.group()), text)


def number_text(value: Fraction) -> str:
    """Return a value as a decimal, ``2125`` or ``0.75``; as a fraction where its decimals never end: ``1/3``."""
    cofactor = value.denominator
    for prime in (2, 5):
        while cofactor % prime == 0:
            cofactor //= prime
    if cofactor != 1:
        return str(value)
    decimals = 0
    while (value * 10**decimals).denominator != 1:
        decimals += 1
    digits = f"{abs(int(value * 10**decimals)):0{decimals + 1}d}"
    integer, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
    return f"{'-' if value < 0 else ''}{integer}{'.' if fraction else ''}{fraction}"


@cache
def _minus(language: str) -> re.Pattern[str]:
    """Return an expression for a minus in words before a number; `before` is what it is subtracted from."""
    words = pattern(answer_words((language,)).minus)
    return re.compile(
        rf"(?P<before>[\d)\]][\s)%]*(?:\w+\s+)?)?{words}\s*(?=(?:{_CURRENCY}\s?)?\d)", re.IGNORECASE
    )


def _plain_power(found: re.Match[str]) -> str:
    return "^" + unicodedata.normalize("NFKC", found.group()).replace("\u2212", "-")


def _plain_digit(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    if unicodedata.category(character) == "No" and "/" in (
        fraction := unicodedata.normalize("NFKC", character).replace("\u2044", "/")
    ):
        return f" {fraction}"
    return character


def _plain_fraction(found: re.Match[str]) -> str:
    before, top, bottom, short_top, short_bottom = found.groups()
    return f"{before}{' ' if before else ''}{top or short_top}/{bottom or short_bottom}"


def _numbers(text: str, style: _Style) -> Iterator[WrittenNumber]:
    end = 0
    while (match := _NUMBER.search(text, end)) is not None:
        negative = bool(match["sign"] or match["inner"])
        body, start, end = match["body"], match.start("body"), match.end("body")
        if len(match.group()) > LONGEST:
            yield WrittenNumber(text=body[:LONGEST], value=None, start=start)
            continue
        numbers = _parts(body, style)
        exponent = match["exponent"] or match["power"] or match["ten"]
        if exponent and len(numbers) == 1 and numbers[0][1] is not None:
            end = match.end()
            numbers = [
                (text[start:end], numbers[0][1] * Fraction(10) ** (int(exponent) - bool(match["ten"])))
            ]
        elif match["denominator"] and body.isdecimal():
            value = _fraction(int(body), match["numerator"], int(match["denominator"]))
            if value is not None:
                end = match.end()
                numbers = [(text[start:end], value)]
        elif len(numbers) == 1 and numbers[0][1] is not None:
            value, end = _multiplied(numbers[0][1], text, end, style)
            numbers = [(text[start:end], value)]
        for index, (written, value) in enumerate(numbers):
            sign = negative and index == 0
            signed = None if value is None else (-value if sign else value)
            yield WrittenNumber(text=f"{'-' if sign else ''}{written}", value=signed, start=start)


def _fraction(first: int, numerator: str | None, denominator: int) -> Fraction | None:
    """Return ``first numerator/denominator``, or ``first/denominator``; None for what is no such fraction."""
    if not denominator:
        return None
    if numerator is None:
        return Fraction(first, denominator)
    fraction = Fraction(int(numerator), denominator)
    return first + fraction if fraction < 1 else None


def _multiplied(value: Fraction, text: str, end: int, style: _Style) -> tuple[Fraction, int]:
    """Return a number with the powers of ten after it, and where it ends: 3万5千 is 35000."""
    total, coefficient, last = Fraction(0), value, 10**12
    while end < len(text) and (times := _TIMES.get(text[end])) is not None and times < last:
        total, last, end = total + coefficient * times, times, end + 1
        coefficient = Fraction(0)
        following = re.compile(r"\d+").match(text, end)
        if following is not None and len(following.group()) < len(str(times)):
            coefficient, end = Fraction(int(following.group())), following.end()
    return total + coefficient, end


def _parts(body: str, style: _Style) -> list[tuple[str, Fraction | None]]:
    """Return the numbers that digits with marks between them are: one, or several where they are a list or a date."""
    plain = body.replace("\u066c", "").replace("'", "")
    marks = [mark for mark in plain if not mark.isdecimal()]
    kinds = set(marks)
    if "\u066b" in kinds and marks.count("\u066b") == 1:
        integer, fraction = plain.split("\u066b")
        return (
            [(body, _decimal(re.sub(r"\D", "", integer), fraction))]
            if fraction.isdecimal()
            else _split(body, style)
        )
    if len(marks) <= 1:
        return [(body, _single(plain, style))]
    if len(kinds) == 1:
        return [(body, Fraction(re.sub(r"\D", "", plain)))] if _is_grouped(plain) else _split(body, style)
    integer, fraction = plain.rsplit(marks[-1], 1)
    if marks.count(marks[-1]) == 1 and _is_grouped(integer):
        return [(body, _decimal(re.sub(r"\D", "", integer), fraction))]
    return _split(body, style)


def _is_grouped(digits: str) -> bool:
    return bool(_THREES.fullmatch(digits) or _INDIAN.fullmatch(digits))


def _split(body: str, style: _Style) -> list[tuple[str, Fraction | None]]:
    """Return the numbers of a list such as ``1,2,3``; of its marks the one for decimals stays in them."""
    kinds = {mark for mark in body if not mark.isdecimal()}
    at = kinds - {style.decimal} if len(kinds) > 1 else kinds
    pieces = [piece for piece in re.split(f"[{re.escape(''.join(sorted(at)))}]", body) if piece]
    if len(pieces) == 1:
        return [(body, None)]
    return [number for piece in pieces for number in _parts(piece, style)]


def _single(digits: str, style: _Style) -> Fraction | None:
    """Return the value of digits with at most one mark between them."""
    mark = next((character for character in digits if not character.isdecimal()), "")
    if not mark:
        return Fraction(digits)
    integer, fraction = digits.split(mark)
    could_group = len(fraction) == 3 and 1 <= len(integer) <= 3 and not integer.startswith("0")
    if not could_group or mark == style.decimal:
        return _decimal(integer, fraction)
    return Fraction(integer + fraction) if mark == style.group else None


def _decimal(integer: str, fraction: str) -> Fraction:
    return Fraction(f"{integer or '0'}.{fraction}")
