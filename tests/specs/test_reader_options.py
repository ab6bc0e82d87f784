"""Options that a reader does not accept are reported at their line, with the task, the language and the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, data_ref
from harness.errors import UsageError
from harness.running.auditor import Auditor
from harness.running.session import open_session
from harness.specs.schema import Source

Cli = Callable[..., tuple[int, str, str]]
FRAGMENT = """extends: udpos
languages:
  qpf:
    name: Palatine German
    script: Latn
    family: Indo-European
    provenance: native
    test: {local: x.conllu%s}
"""
FAULT = (
    "line 8: languages.qpf.test%s: The reader 'tsv' needs the option 'columns' when there is no header, "
    "such as 'premise,hypothesis,label'.%s"
)


@pytest.fixture
def fragment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/x.conllu").write_text("# sent_id = 1\n1\tJo\t_\tINTJ\t_\t_\t0\t_\t_\t_\n\n", encoding="utf-8")
    path = Path("qpf.yaml")
    path.write_text(FRAGMENT % ", reader: tsv", encoding="utf-8")
    return path


def test_a_reader_without_its_options_is_a_fault_of_the_spec(cli: Cli, fragment: Path) -> None:
    fault = FAULT % ("", " For 'x.conllu' write 'reader: conllu'.")
    status, out, err = cli("tasks", "validate", fragment, "tatoeba", "--data", "sample")
    assert status == 2
    assert err.startswith(f"qpf.yaml: 1 fault\n  {fault}\n")
    assert "tatoeba: " in out  # the other task is audited all the same
    command = ("eval", "--tasks", "udpos:qpf", "--tasks-from", fragment, "--data", "data", "--model")
    status, _, err = cli(*command, "baseline:majority")
    assert status == 2
    assert fault in err


@pytest.mark.parametrize("given", ["conllu", 'tsv, options: {header: "true"}', "tsv, columns: [tokens]"])
def test_readers_that_have_what_they_need(cli: Cli, fragment: Path, given: str) -> None:
    fragment.write_text(FRAGMENT % f", reader: {given}", encoding="utf-8")
    assert cli("tasks", "validate", fragment)[0] == 0


def test_every_alternative_is_looked_at(cli: Cli, fragment: Path) -> None:
    text = FRAGMENT.replace(
        "local: x.conllu%s",
        "local: [x.tsv, {path: y.jsonl, columns: [a]}, {path: z.jsonl}], reader: tsv, options: {header: 'no'}",
    )
    fragment.write_text(text, encoding="utf-8")
    status, _, err = cli("tasks", "validate", fragment)
    assert status == 2
    shown = "The reader option 'header' must be 'false' or 'true', found 'no'."
    assert f"languages.qpf.test.local.0: {shown}\n" in err
    assert f"languages.qpf.test.local.1: {shown} For 'y.jsonl' write 'reader: jsonl'.\n" in err


def test_what_a_reader_rejects_later_is_reported_with_its_data(fragment: Path) -> None:
    session = open_session()
    finder = DataFinder(DataOptions(mode="local", folders=(Path("data"),)), session.registry, Path("cache"))
    language = session.catalog.task("udpos").languages.get("de")
    source = Source(local="x.conllu", reader="bitext")
    ref = data_ref(source, owner="udpos", language=language, split="test", folder=None)
    with pytest.raises(UsageError) as found:
        list(finder.rows(finder.find(source, ref)))
    assert str(found.value).startswith(
        "'udpos' in 'de' (test), x.conllu in data: The reader 'bitext' needs two"
    )
    assert found.value.hint == "For 'x.conllu' write 'reader: conllu'."


def test_an_error_of_one_task_leaves_the_others_proved(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = Auditor.audit

    def broken(self: Auditor, entry: Any, **options: Any) -> Any:
        if entry.spec.task == "xquad":
            raise UsageError("It cannot be read.")
        return audit(self, entry, **options)

    monkeypatch.setattr(Auditor, "audit", broken)
    status, out, err = cli("tasks", "validate", "xquad", "tatoeba", "--data", "sample")
    assert status == 1
    assert err == "  fault    xquad: It cannot be read.\n"
    assert "tatoeba: " in out
