"""Remarks: whole sentences once each, and the weightiest lines first."""

from __future__ import annotations

from harness.reporting.blocks.words import Remark, Weight, leading, sentences

REMARKS = [
    Remark(text="how it was made"),
    Remark(text="in short", brief="short", weight=Weight.DETAIL),
    Remark(text="not comparable", brief="other", weight=Weight.INCOMPARABLE),
    Remark(brief="recorded elsewhere", weight=Weight.PARTIAL),
    Remark(text="how it was made"),
    Remark(text="of another cell", brief="other", weight=Weight.INCOMPARABLE),
]


def test_sentences_come_once_and_in_their_order() -> None:
    assert sentences(REMARKS) == ("how it was made", "in short", "not comparable", "of another cell")


def test_the_weightiest_lines_come_first_and_the_others_are_counted() -> None:
    assert leading(REMARKS, 5) == (["other", "recorded elsewhere", "short"], 0)
    assert leading(REMARKS, 1) == (["other"], 2)
