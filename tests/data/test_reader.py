from __future__ import annotations

import subprocess
import sys

import pytest

from harness.data.readers.catalog import READERS
from harness.data.readers.column import Column, wanted_columns
from harness.data.readers.reader import choice, flag
from harness.errors import UnknownNameError, UsageError


def test_the_catalog_is_sorted_and_without_doubles() -> None:
    names = [reader.name for reader in READERS]
    assert names == sorted(set(names))


def test_an_unknown_option_is_rejected_with_near_names() -> None:
    tsv = next(reader for reader in READERS if reader.name == "tsv")
    with pytest.raises(UnknownNameError) as caught:
        tsv.check_options({"colums": "a"})
    assert str(caught.value) == "No option of the reader 'tsv' named 'colums'. Did you mean 'columns'?"


def test_a_choice_defaults_to_the_first_and_rejects_others() -> None:
    assert choice({}, "tokens", ("fused", "words")) == "fused"
    assert choice({"tokens": "words"}, "tokens", ("fused", "words")) == "words"
    with pytest.raises(UsageError) as caught:
        choice({"tokens": "word"}, "tokens", ("fused", "words"))
    assert str(caught.value) == "The reader option 'tokens' must be 'fused' or 'words', found 'word'."


def test_a_flag_is_true_or_false_and_nothing_else() -> None:
    assert flag({}, "header", default=True)
    assert not flag({}, "header", default=False)
    assert not flag({"header": "false"}, "header", default=True)
    with pytest.raises(UsageError, match="must be 'false' or 'true', found 'yes'"):
        flag({"header": "yes"}, "header", default=False)


def test_columns_keep_and_rename() -> None:
    assert wanted_columns({}) is None
    assert wanted_columns({"columns": "tokens, tags=ner_tags"}) == (
        Column(field="tokens", source="tokens"),
        Column(field="tags", source="ner_tags"),
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("a,,b", "The reader option 'columns' must hold names separated by commas, found 'a,,b'."),
        ("a=", "The reader option 'columns' must hold names separated by commas, found 'a='."),
        ("", "The reader option 'columns' must hold names separated by commas, found ''."),
        ("a,b=c,a", "The reader option 'columns' names 'a' twice: 'a,b=c,a'."),
    ],
)
def test_columns_that_make_no_sense_are_rejected(columns: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        wanted_columns({"columns": columns})
    assert str(caught.value) == message


def test_the_catalog_imports_nothing_heavy() -> None:
    heavy = "pyarrow", "numpy", "pandas", "datasets", "torch"
    code = (
        "import sys, harness.data.readers.catalog, harness.data.resolve, harness.data.sampling;"
        f"print(sorted(set({heavy!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
