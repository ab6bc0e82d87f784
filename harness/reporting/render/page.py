"""Reports as HTML: one file without network, its own style, and a policy that lets nothing else in.

The templates escape every text; characters that are not seen, or that reorder others, are named. Texts of models and
data sets are text, never markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.reporting.blocks.chart import number
from harness.reporting.blocks.heat import CLASSES, SCALES
from harness.reporting.blocks.model import Block, Download, Ramp, Report, anchor, as_field
from harness.reporting.blocks.visible import INVISIBLE, visible

SHOWN = 400
"""Characters of a text of a model or data set that are shown before its "show all"."""
_UNSAFE = re.compile(r"</\s*(?:script|style)|<!--|<script|\]\]>", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_TEMPLATES = "harness.reporting"
UNQUOTED = ",;:/?@!$'()*[]{}|= "
"""Characters that an address in an attribute may hold as they are, next to letters and digits."""


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, _TEMPLATES))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {
        "anchor": lambda names: anchor(*names),
        "as_field": as_field,
        "beginning": _beginning,
        "data_link": _data_link,
        "language_tag": lambda code: code if code and _LANGUAGE.fullmatch(code) else None,
        "lines": lambda text: Markup("<br>").join(visible(line) for line in text.split("\n")),
        "marks": _marks,
        "number": number,
        "ramp_ends": _ramp_ends,
        "text_width": text_width,
        "tab_id": lambda title: anchor("tab", title.lower().replace(" ", "-")),
    }
    return environment


def text_width(text: str) -> float:
    """Return how many pixels a text takes at most in the letters of charts (12 pixels); wide letters count twice."""
    return 6.6 * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _marks(text: str) -> Markup:
    """Return a text in which each character that is not seen is named."""
    pieces, at = [], 0
    for match in INVISIBLE.finditer(text):
        name = unicodedata.name(match[0], "control character").lower()
        mark = Markup('<bdi class="mark" title="{}">U+{:04X}</bdi>').format(name, ord(match[0]))
        pieces += [escape(text[at : match.start()]), mark]
        at = match.end()
    return Markup("").join([*pieces, escape(text[at:])])


def _beginning(text: str) -> str:
    """Return the part of a text that is shown at once; it ends neither within a letter nor between it and its marks."""
    if len(text) <= SHOWN:
        return text
    end = SHOWN
    while end < min(len(text), SHOWN + 20) and (
        unicodedata.category(text[end]).startswith("M") or text[end] in "\u200c\u200d"
    ):
        end += 1
    return text[:end]


def _ramp_ends(ramp: Ramp) -> tuple[str, str, str]:
    """Return the labels of the ends of a ramp, and the letter of its classes."""
    low, high = (f"{end * 100:{'+' if ramp == 'difference' else ''}g}" for end in SCALES[ramp])
    if ramp == "difference":
        low, high = f"{low} and less", f"{high} and more"
    return low, high, CLASSES[ramp]


def _data_link(file: Download) -> str:
    """Return a file as an address that holds it."""
    return f"data:{file.media};charset=utf-8,{quote(file.text, safe=UNQUOTED)}"


@cache
def style(name: str = "style") -> str:
    """Return a style sheet: that of all pages (light and dark, narrow, on paper), or a further one by its name."""
    folder = resources.files(_TEMPLATES) / "templates"
    return folder.joinpath(f"{name}.css").read_text(encoding="utf-8")


@cache
def script(name: str) -> str:
    """Return a script of this package by its name: ``tabs`` turns the parts of a report into tabs."""
    return resources.files(_TEMPLATES).joinpath(f"templates/{name}.mjs").read_text(encoding="utf-8")


def html_blocks(blocks: Iterable[Block]) -> Markup:
    """Return blocks as markup for the template of a page."""
    module: Any = _environment(_TEMPLATES).get_template("blocks.html.j2").module
    return Markup(module.blocks(list(blocks)))  # noqa: S704  the template escapes


def template(name: str, package: str = _TEMPLATES, **values: Any) -> Markup:
    """Return a template filled with values, which are escaped unless they are `Markup`.

    Args:
        name: ``board.html.j2``; it may import those of this package.
        package: Whose folder ``templates`` has it.
        values: What it shows.
    """
    return Markup(_environment(package).get_template(name).render(**values))  # noqa: S704  the template escapes


def render_html(report: Report) -> str:
    """Return a report as one HTML file without network; its only script turns its parts into tabs."""
    body = template("report.html.j2", report=report)
    scripts = [script("tabs")] if report.tabs else []
    return page(report.title, body, styles=[style("report")], modules=scripts, description=report.title)


def page(
    title: str,
    *body: Markup,
    language: str = "en",
    modules: Iterable[str] = (),
    styles: Iterable[str] = (),
    data: Mapping[str, Any] | None = None,
    description: str = "",
) -> str:
    """Return a page as one HTML file without network.

    Args:
        title: Plain text.
        body: Its content; a page should have one ``main`` element and one ``h1``.
        language: Of the page's own words.
        modules: Sources of ES modules of ours, written into the page in this order; their hashes are in its policy.
        styles: Style sheets that follow the shared one.
        data: A JSON value by the id of the ``application/json`` element that will hold it.
        description: One sentence for lists of pages.

    Raises:
        ValueError: for a module or style that holds a script or style tag.
    """
    scripts = [_checked(source) for source in modules]
    sheet = _checked("\n".join([style(), style("charts"), *styles]))
    allowed = " ".join(_hash(source) for source in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(sheet)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return template(
        "page.html.j2",
        title=title,
        body=Markup("\n").join(body),
        language=language,
        policy=Markup(policy),  # noqa: S704  it holds hashes of ours alone
        sheet=Markup(sheet),  # noqa: S704
        scripts=[Markup(source) for source in scripts],  # noqa: S704
        data=[(name, Markup(json_text(value))) for name, value in (data or {}).items()],  # noqa: S704
        description=description,
    )


def json_text(value: Any) -> str:
    """Return JSON that cannot end the element around it: ``<`` is written as an escape.

    Raises `ValueError` for NaN and infinity, which are no JSON.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _checked(source: str) -> str:
    match = _UNSAFE.search(source)
    if match is not None:
        raise ValueError(f"A module or style of a page cannot hold {match[0]!r}.")
    # A parser turns CRLF into LF before it hashes.
    return source.replace("\r\n", "\n")


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
