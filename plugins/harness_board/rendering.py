"""A board as a page: the table as real HTML, its controls, its data, and the script that brings them to life."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from harness.reporting.markup.character import visible
from harness.reporting.markup.element import Element, element
from harness.reporting.markup.heatmap import heat_class, heat_legend, levels
from harness.reporting.markup.page import page
from harness.reporting.number import INTERVAL_LEGEND
from harness_board.addition import LEGEND, extension_table
from harness_board.document import Board
from harness_board.equity import equity_section
from harness_board.metadata import UNITS
from harness_board.standing import Field, Row, Standing, Z, standing

__all__ = ["board_page", "board_style", "script"]

MODULES = ("compute.mjs", "draw.mjs", "drill.mjs", "main.mjs")
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const|async|class)", re.MULTILINE)
FORMULAS = (
    ("paper", "paper: mean of category means"),
    ("flat", "flat: mean of tasks"),
    ("category", "by category"),
    ("worst", "worst language"),
    ("gap", "transfer gap"),
)
PANELS = (("data", "Dataset bias"), ("single", "Single analysis"), ("pairwise", "Pairwise analysis"))
DEEDS = (("csv", "CSV"), ("json", "JSON"), ("link", "Copy link"), ("reset", "Reset"))
SWITCHES = (
    ("shared", "only languages that every shown system has"),
    ("ci", "show intervals"),
    ("plain", "no colours"),
)
FACT_HEADS = {
    "setting": "Setting",
    "method": "Method",
    "adapter": "Adapter",
    "year": "Year",
    "parameters": "Parameters",
    "active": "Active parameters",
    "monolingual": "Monolingual data",
    "parallel": "Parallel data",
    "languages_seen": "Languages seen",
    "transfer": "Transfer",
    "fine_tuning": "Fine-tuning data",
    "licence": "Licence",
    "paper": "Paper",
    "contamination": "Contamination",
    "reported": "Reported",
}
BANDS = "Fields of one column that do not differ measurably from the best of their colour have the same one."
LONG = 30
"""Characters of a fact that fit in one line."""
BACK = "← all tasks and languages"
OVERALL = (
    "mean of the category means; a category is the mean of its tasks, a task the mean over its languages"
)


@cache
def script() -> str:
    """Return the modules of the page as one: an inline module cannot import another from a file."""
    folder = resources.files("harness_board") / "static"
    sources = [(folder / name).read_text(encoding="utf-8") for name in MODULES]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)


@cache
def board_style() -> str:
    """Return the style of the page, which follows the one that all pages share."""
    return resources.files("harness_board").joinpath("static/board.css").read_text(encoding="utf-8")


def board_page(
    board: Board,
    *,
    task: str | None = None,
    language: str | None = None,
    address: Callable[[str, str], str] | None = None,
) -> str:
    """Return a page of the board.

    Args:
        board: What it holds.
        task: The task that the page is about; by default the address bar decides.
        language: The language that the page is about.
        address: ("task" or "language", name) -> where its page lies; by default within this page.
    """
    link = address or (lambda kind, name: f"#/{kind}/{name}" if kind else "#/")
    route = {key: value for key, value in (("task", task), ("language", language)) if value is not None}
    content = {**board.content(), "route": route}
    shown = standing(content, task=task, language=language)
    names = {item["code"]: item["name"] for item in content["languages"]}
    place = f"Task {task}" if task else f"Language {names[language]}" if language else board.title
    main = element(
        "main",
        element("h1", place, id="place"),
        element("p", element("a", BACK, href=link("", "")), id="back", hidden=not (address and route)),
        element("p", f"Overall: {_formula(task)}.", id="formula", class_="note"),
        _controls(content, task, language),
        element(
            "p", f"{len(shown.rows)} of {len(content['systems'])} systems shown, {_hidden(content, shown)}.",
            id="count", role="status",
        ),
        _legends(),
        _table(shown, place, _formula(task)),
        element(
            "p",
            "~ over fewer languages than the task has, so not ranked; - no score (hover for the reason). Where runs "
            f"have errors, rank intervals and tie groups come from unpaired 95 % comparisons; a system without a known "
            f"error is separable from no other one. "
            f"{INTERVAL_LEGEND}.{_marks(board)}",
            class_="note",
        ),
        extension_table(board.extensions) if not route else None,
        element("section", id="drill", hidden=True, aria_label="Analysis"),
        element("section", id="scatter", aria_label="Score against parameters"),
        [part for parts in board.checklists.values() for part in parts],
        None if board.equity is None else equity_section(board.equity, task=task, language=language),
        _index(content, link),
        id="main",
    )  # fmt: skip
    return page(
        place if place == board.title else f"{place}: {board.title}",
        main,
        modules=[script()],
        styles=[board_style()],
        data={"board-data": content},
        description=f"{len(content['systems'])} systems on {len(content['tasks'])} tasks.",
    )


def _marks(board: Board) -> str:
    """Return the legend of the marks that languages of the board have."""
    marks = {mark for task in board.tasks for own in task.marks.values() for mark in own}
    shown = [f"{mark} {meaning}" for mark, meaning in LEGEND.items() if mark in marks]
    return f" {', '.join(shown)}." if shown else ""


def _formula(task: str | None) -> str:
    return OVERALL if task is None else "the task's mean over its languages"


def _hidden(content: Mapping[str, Any], shown: Standing) -> str:
    count = len(content["systems"]) - len(shown.rows)
    return f"{count} hidden by filters or without a score here" if count else "none hidden"


# The table ----------------------------------------------------------------------------------------------


def _table(shown: Standing, caption: str, formula: str) -> Element:
    heads = [element("th", "Rank", scope="col", class_="n")]
    if shown.has_errors:
        heads.append(element("th", "Rank interval", scope="col", class_="n"))
    heads.append(_head("label", "System", "", is_number=False))
    heads += [_head(name, FACT_HEADS[name], "", is_number=False) for name in shown.facts]
    heads.append(_head("total", "Overall", formula, is_number=True, order="descending"))
    heads += [_head(column.id, column.head, column.title, is_number=True) for column in shown.columns]
    heads.append(_head("coverage", "Known", "share of the columns with a score", is_number=True))
    shades = list(zip(*(_shades(shown, place) for place in range(len(shown.columns))), strict=True))
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", heads), id="board-head"),
            element(
                "tbody",
                [
                    _row(row, shown, own)
                    for row, own in zip(shown.rows, shades or [()] * len(shown.rows), strict=True)
                ],
                id="board-rows",
            ),
            id="board",
        ),
        class_="board-scroll",
        tabindex=0,
        role="region",
        aria_label="Systems and their scores",
    )


def _head(name: str, text: str, title: str, *, is_number: bool, order: str | None = None) -> Element:
    button = element("button", text, type="button", data_sort=name, title=title or None)
    return element("th", button, scope="col", class_="n" if is_number else None, aria_sort=order)


def _row(row: Row, shown: Standing, shades: Sequence[str]) -> Element:
    total = row.total
    unranked = total.title if total.value is None else f"not ranked: {total.title}"
    cells = [element("td", row.rank or "-", class_="n", title=None if row.rank else unranked)]
    if shown.has_errors:
        group = f"tie group {row.group}" if row.group else None
        cells.append(element("td", f"{row.range} {row.group}" if row.range else "-", class_="n", title=group))
    cells.append(element("th", row.label, scope="row"))
    cells += [element("td", text, class_="wide" if len(visible(text)) > LONG else None) for text in row.facts]
    cells.append(
        element(
            "td",
            total.text,
            class_="n absent" if total.value is None else "n total",
            title=total.description or None,
        )
    )
    cells += [_field(field, shade) for field, shade in zip(row.fields, shades, strict=True)]
    cells.append(element("td", f"{int(row.coverage + 0.5)} %", class_="n"))
    return element("tr", cells)


def _field(field: Field, shade: str) -> Element:
    return element("td", field.text, class_=f"n {shade}", title=field.description or None)


def _shades(shown: Standing, place: int) -> list[str]:
    """Return the classes of a column's fields: from chance (or 0) to 100, no colour apart by noise alone."""
    fields = [row.fields[place] for row in shown.rows]
    reaches = [None if (error := field.error) is None else Z * error for field in fields]
    found = levels([field.value for field in fields], reaches)
    return [heat_class(level, shown.columns[place].low, 100.0) for level in found]


def _legends() -> Element:
    """Return the colours of scores and those of gaps, one of which is shown."""
    return element(
        "div",
        element(
            "div",
            heat_legend("Colours: chance, or 0 where it is not known", f"100. {BANDS}"),
            id="legend-score",
        ),
        element(
            "div",
            heat_legend("Colours: gap of 0", f"100. {BANDS}", ramp="error"),
            id="legend-gap",
            hidden=True,
        ),
        id="legends",
    )


# The controls -------------------------------------------------------------------------------------------


def _controls(content: Mapping[str, Any], task: str | None, language: str | None) -> Element:
    systems, languages = content["systems"], content["languages"]
    codes = [(item["code"], f"{item['name']} ({item['code']})") for item in languages]
    tasks = [(item["task"], item["task"]) for item in content["tasks"]]
    metrics = dict.fromkeys(metric for item in content["tasks"] for metric in item["metrics"])
    scope = [
        None if task or language else _select("only", "Task", tasks),
        _select("metric", "Metric", [(name, name) for name in metrics], "each task's own"),
        None if language else _select("lang", "Language", codes),
        None if language else _select("family", "Family", _values(languages, "family")),
        None if language else _select("script", "Script", _values(languages, "script")),
    ]  # fmt: skip
    about = [
        _select(key, label, options)
        for key, label in (
            ("protocol", "Setting"), ("method", "Method"), ("adapter", "Adapter"), ("year", "Year"),
            ("transfer", "Transfer"), ("origin", "Origin"), ("reported", "Reported"),
        )
        if len(options := _values(systems, key)) > 1
    ]  # fmt: skip
    sizes = [
        _input("pmin", "Parameters from (millions)", "number"),
        _input("pmax", "Parameters to (millions)", "number"),
        _select("unit", "Pre-training data in", [(unit, unit.replace("_", " ")) for unit in UNITS]),
        _input("dmin", "at least (of that unit)", "number"),
        _input("cov", "Known columns, at least %", "number"),
    ]
    facts = [
        element("label", element("input", type="checkbox", data_fact=name), head, class_="check")
        for name, head in FACT_HEADS.items()
    ]
    return element(
        "div",
        element(
            "div", _input("q", "Search systems", "search"), element("label", "Aggregation", _aggregations()), scope,
            class_="row",
        ),
        element(
            "details",
            element("summary", "More filters and columns"),
            element("div", about, sizes, class_="row"),
            element("div", [_check(key, text) for key, text in SWITCHES], class_="row"),
            element("fieldset", element("legend", "Columns"), facts),
            class_="filters",
        ),
        _buttons(),
        class_="controls", data_live="1", hidden=True,
    )  # fmt: skip


def _aggregations() -> Element:
    options = [element("option", text, value="" if name == "paper" else name) for name, text in FORMULAS]
    return element("select", options, data_key="agg", aria_describedby="formula")


def _buttons() -> Element:
    return element(
        "div",
        [
            element("button", text, type="button", data_panel=kind, aria_pressed="false")
            for kind, text in PANELS
        ],
        [element("button", text, type="button", data_deed=deed) for deed, text in DEEDS],
        element("span", id="said", role="status", class_="note"),
        element("input", id="link", type="text", readonly=True, hidden=True, aria_label="Link to this view"),
        class_="row",
    )


def _values(items: Iterable[Mapping[str, Any]], key: str) -> list[tuple[str, str]]:
    found = sorted({str(item[key]) for item in items if item.get(key) not in (None, "")})
    return [(value, value.replace("_", " ")) for value in found]


def _select(key: str, label: str, options: Sequence[tuple[str, str]], every: str = "all") -> Element:
    rows = [
        element("option", every, value=""),
        *(element("option", text, value=value) for value, text in options),
    ]
    return element("label", label, element("select", rows, data_key=key))


def _input(key: str, label: str, kind: str) -> Element:
    return element(
        "label", label, element("input", type=kind, data_key=key, min="0" if kind == "number" else None)
    )


def _check(key: str, label: str) -> Element:
    return element("label", element("input", type="checkbox", data_key=key), label, class_="check")


def _index(content: Mapping[str, Any], link: Callable[[str, str], str]) -> Element:
    tasks = [
        element("li", element("a", item["task"], href=link("task", item["task"])))
        for item in content["tasks"]
    ]
    languages = [
        element("li", element("a", f"{item['name']} ({item['code']})", href=link("language", item["code"])))
        for item in content["languages"]
    ]
    return element(
        "nav",
        element("h2", "By task"), element("ul", tasks, class_="index"),
        element("h2", "By language"), element("ul", languages, class_="index"),
        aria_label="Tasks and languages",
    )  # fmt: skip
