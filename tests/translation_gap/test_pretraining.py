from __future__ import annotations

from harness_translation.gap.pretraining import by_size, pretraining_size, size_ranks

XNLI = "ar bg de el es fr hi ru sw th tr ur vi zh".split()


def test_languages_are_ordered_by_their_size_in_cc100() -> None:
    assert " ".join(by_size(XNLI)) == "ru vi th de bg fr es el zh ar tr hi ur sw"


def test_a_language_outside_of_cc100_is_behind_all_others_by_its_articles() -> None:
    assert by_size(["qu", "wo", "om", "ht", "yo", "en"]) == ["en", "om", "ht", "yo", "qu", "wo"]
    size = pretraining_size("qu")
    assert size is not None
    assert (size.value, size.unit) == (0.02, "M articles")
    assert "Table 7" in size.source


def test_a_language_that_no_table_has_is_last() -> None:
    assert pretraining_size("tlh") is None
    assert by_size(["tlh", "wo"]) == ["wo", "tlh"]


def test_equal_sizes_share_a_rank() -> None:
    assert size_ranks(["sw", "zh", "el", "ru"]) == [1.0, 2.5, 2.5, 4.0]


def test_every_size_names_its_source() -> None:
    for code in [*XNLI, "qu", "yo"]:
        size = pretraining_size(code)
        assert size is not None
        assert size.source
