from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.errors import UnknownNameError, UsageError
from harness.running.session import Session
from harness.specs.selection import SelectedTask, select, split_names

SessionWith = Callable[..., Session]

SUITE = """
suite: pair
description: d
citation: c
protocol: zero_shot_transfer
tasks: [xquad, xnli]
"""


def _chosen(selected: list[SelectedTask]) -> dict[str, tuple[str, ...]]:
    return {item.entry.spec.task: item.languages for item in selected}


def test_names_come_in_the_order_they_were_given(session: Session) -> None:
    assert list(_chosen(select(session.catalog, ["xquad,xnli", "udpos", "xnli"]))) == [
        "xquad",
        "xnli",
        "udpos",
    ]


def test_a_task_has_its_languages_in_the_order_of_its_spec(session: Session) -> None:
    [xnli] = select(session.catalog, ["xnli"])
    assert xnli.languages == tuple(xnli.entry.spec.languages)
    assert len(xnli.languages) == 15
    assert xnli.missing == ()


def test_languages_behind_a_colon(session: Session) -> None:
    assert _chosen(select(session.catalog, ["xnli:sw+hi+sw", "xquad:de"])) == {
        "xnli": ("sw", "hi"),
        "xquad": ("de",),
    }
    assert _chosen(select(session.catalog, ["xnli:sw", "xnli:hi"])) == {"xnli": ("sw", "hi")}
    assert len(_chosen(select(session.catalog, ["xnli:sw", "xnli"]))["xnli"]) == 15
    assert len(_chosen(select(session.catalog, ["xnli:"]))["xnli"]) == 15


def test_languages_that_restrict_all_tasks(session: Session) -> None:
    chosen = _chosen(select(session.catalog, ["xnli:sw+hi", "xquad"], ["hi", "de"]))
    assert chosen == {"xnli": ("hi",), "xquad": ("hi", "de")}


def test_a_known_language_missing_in_a_task_is_listed(session: Session) -> None:
    [xquad] = select(session.catalog, ["xquad"], ["sw", "de"])
    assert (xquad.languages, xquad.missing) == (("de",), ("sw",))
    [xquad] = select(session.catalog, ["xquad:yo+ar"])
    assert (xquad.languages, xquad.missing) == (("ar",), ("yo",))


def test_globs(session: Session) -> None:
    assert list(_chosen(select(session.catalog, ["x*"]))) == ["xcopa", "xnli", "xquad"]
    assert _chosen(select(session.catalog, ["x*:de"])) == {"xcopa": (), "xnli": ("de",), "xquad": ("de",)}
    assert set(_chosen(select(session.catalog, ["*"]))) == set(session.catalog.names("task"))
    assert list(_chosen(select(session.catalog, ["[p-u]*s*"]))) == ["pawsx", "udpos", "udpos_raw"]


def test_a_suite_is_its_tasks(session_with: SessionWith) -> None:
    catalog = session_with(SUITE).catalog
    selected = select(catalog, ["pair", "udpos"])
    assert list(_chosen(selected)) == ["xquad", "xnli", "udpos"]
    assert [item.suites for item in selected] == [("pair",), ("pair",), ()]
    assert _chosen(select(catalog, ["pair:de+sw"])) == {"xquad": ("de",), "xnli": ("de", "sw")}


@pytest.mark.parametrize(
    ("patterns", "languages", "message"),
    [
        (
            ["xnly"],
            None,
            "No task or suite named 'xnly'. Did you mean 'xnli'? Run 'harness tasks list' to see",
        ),
        (["XNLI"], None, "No task or suite named 'XNLI'. Did you mean 'xnli'?"),
        (["q*"], None, "No task or suite named 'q*'. Known: "),
        (["pare"], None, "No task or suite named 'pare'. Did you mean 'pair' or 'lareqa'?"),
        (["xnli:swx"], None, "No language named 'swx'. Did you mean 'sw'"),
        (["xnli"], ["zzz"], "No language named 'zzz'. Known: "),
        (["xnli:Swahili"], None, "Languages are named by code: 'Swahili' is 'sw'."),
    ],
)
def test_unknown_names_are_reported_with_near_ones(
    session_with: SessionWith, patterns: list[str], languages: list[str] | None, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        select(session_with(SUITE).catalog, patterns, languages)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("patterns", [[], [""], [" , "]])
def test_no_task_at_all_is_reported(session: Session, patterns: list[str]) -> None:
    with pytest.raises(UsageError, match=r"No task was named\. Run 'harness tasks list'"):
        select(session.catalog, patterns)


def test_a_suite_of_an_unknown_task_is_reported(session_with: SessionWith) -> None:
    catalog = session_with(SUITE.replace("xquad", "xquadd")).catalog
    with pytest.raises(UnknownNameError, match="No task named 'xquadd'"):
        select(catalog, ["pair"])


def test_names_are_split_at_commas_and_listed_once() -> None:
    assert split_names(["a, b", "c", "a,,b"]) == ["a", "b", "c"]
