"""Reports as HTML: one file without network, its own style, and a policy that lets nothing else in; and figures.

The templates escape every text; characters that are not seen, or that reorder others, are named. Texts of models and
data sets are text, never markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.errors import UsageError, require_extra
from harness.reporting.blocks.chart import Chart, number
from harness.reporting.blocks.model import (
    INVISIBLE,
    Block,
    Download,
    Ramp,
    Report,
    TileMap,
    anchor,
    as_field,
    visible,
)
from harness.reporting.blocks.number import CLASSES, SCALES
from harness.reporting.render.console import SAMPLE_WARNING

SHOWN = 400
"""Characters of a text of a model or data set that are shown before its "show all"."""
_UNSAFE = re.compile(r"</\s*(?:script|style)|<!--|<script|\]\]>", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_TEMPLATES = "harness.reporting"
FIGURE_FORMATS = ("svg", "pdf", "png")
"""Formats of `Figure.save`, which are the suffixes of their files."""
PNG_SCALE = 3
"""Dots of a PNG for every pixel of the figure."""
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
        "kind": lambda block: type(block).__name__.lower(),
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
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _checked(source: str) -> str:
    match = _UNSAFE.search(source)
    if match is not None:
        raise ValueError(f"A module or style of a page cannot hold {match[0]!r}.")
    # A parser turns CRLF into LF before it hashes.
    return source.replace("\r\n", "\n")


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Figure:
    """Charts on one sheet in the light colours of pages; a notebook shows it, and `save` writes it.

    Their entries of the legend are shown once, over all charts.
    """

    title: str
    rows: Sequence[str | Sequence[Chart | TileMap]]
    """Charts side by side, or the heading of the rows after it; a chart with the figure's title has none of its own."""
    notes: Sequence[str] = ()
    sample: bool = False
    """Whether it warns of the sample data."""

    def __repr__(self) -> str:
        return f"<Figure: {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg

    @property
    def charts(self) -> list[Chart | TileMap]:
        """All charts, in the order of the rows."""
        return [chart for row in self.rows if not isinstance(row, str) for chart in row]

    @property
    def svg(self) -> str:
        """The figure as the text of an SVG file."""
        notes = [*self.notes, *([SAMPLE_WARNING] if self.sample else [])]
        keys = list(dict.fromkeys(key for chart in self.charts for key in chart.keys))
        return template("figure.svg.j2", figure=self, keys=keys, notes=notes, sheet=_sheet()).strip()

    def save(self, path: str | Path, format_name: str = "") -> None:
        """Write the figure as ``svg``, ``pdf`` or ``png`` and make its folder; without a format, the suffix says which.

        Raises:
            MissingExtraError: vl-convert, which makes PDF and PNG of SVG, is not installed.
            UsageError: The suffix is another one, or the file cannot be written.
        """
        path = Path(path)
        format_name = format_name or path.suffix.lower().removeprefix(".")
        if format_name not in FIGURE_FORMATS:
            raise UsageError(
                f"A figure cannot be written as {path.name!r}.",
                hint="Give it a name that ends with .svg, .pdf or .png.",
            )
        content = self.svg.encode()
        if format_name != "svg":
            with require_extra(f"A figure as {format_name}", "plots", f"{__name__}:Figure"):
                import vl_convert
            pdf, png = vl_convert.svg_to_pdf, partial(vl_convert.svg_to_png, scale=PNG_SCALE)
            content = (pdf if format_name == "pdf" else png)(self.svg)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise UsageError(f"The file {str(path)!r} cannot be written: {error.strerror}.") from error


@cache
def _sheet() -> str:
    """Return the rules of charts, below the class of figures and with plain colours.

    A notebook may put a figure into its own page, and programs that show SVG know neither variables nor the dark theme.
    """
    light = style().partition("@media")[0]
    colours = dict(re.findall(r"--(\w+): (#\w+)", light))
    rules = re.sub(r"var\(--(\w+)\)", lambda match: colours[match[1]], style("charts") + style("figure"))
    return rules.replace("svg", ".harness-figure")
