"""``harness treebank code-switch``: files and folders, engines of plugins, rejected arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from harness.errors import MissingDataError, StorageError, UsageError
from harness_vyakarana.command import code_switch
from harness_vyakarana.treebank import jobs_of, language_of

TAMIL = """\
# sent_id = a
# text = அவர் OK
1	அவர்	அவர்	PRON	_	Case=Nom	0	root	_	_
2	OK	ok	INTJ	_	_	1	discourse	_	_

# sent_id = b
# text = வீடு পথ
1	வீடு	வீடு	NOUN	_	_	0	root	_	_
2	পথ	পথ	NOUN	_	_	1	dep	_	_

"""
SWITCHED = [
    "# code_switch = engine=rules version=1 licence=Apache-2.0 language=ta source=ta_x.conllu "
    "source_licence=unknown ratio=1.0 noise=0.0 seed=0",
    "# sent_id = a",
    "# text = avar OK",
    "1	avar	avar	PRON	_	Case=Nom	0	root	_	Orig=அவர்",
    "2	OK	ok	INTJ	_	_	1	discourse	_	_",
    "",
    "# sent_id = b",
    "# text = veedu পথ",
    "1	veedu	veedu	NOUN	_	_	0	root	_	Orig=வீடு",
    "2	পথ	পথ	NOUN	_	_	1	dep	_	_",
    "",
]


def _write(folder: Path, text: str, name: str = "ta_x.conllu") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.fixture
def command() -> Callable[..., tuple[int, str]]:
    app = typer.Typer()
    app.command()(code_switch)

    def run(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return run


def test_a_file_gives_a_file_and_a_folder_a_folder(
    command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    first, second = _write(source, TAMIL), _write(source / "deep", TAMIL, "ta_y.conllu")
    status, out = command(first, "--out", tmp_path / "one.conllu")
    assert status == 0
    assert "2 of 4 tokens switched, 0 respelt, in 2 sentences of 1 file(s), by rules 1 (Apache-2.0)." in out
    assert "পথ (1)" in out
    assert (tmp_path / "one.conllu").read_text(encoding="utf-8").splitlines() == SWITCHED
    status, _ = command(source, "--out", tmp_path / "out", "--ratio", 0.5, "--noise", 1, "--seed", 3)
    assert status == 0
    for path in (first, second):
        written = (tmp_path / "out" / path.relative_to(source)).read_text(encoding="utf-8")
        assert " ratio=0.5 noise=1.0 seed=3\n" in written
        assert written.count("\n") == TAMIL.count("\n") + 1


def test_an_engine_of_a_plugin(
    command: Callable[..., tuple[int, str]], install_plugin: Callable[..., Path], tmp_path: Path
) -> None:
    install_plugin(
        "with_engine",
        """
from harness import hookimpl

@hookimpl
def harness_register_transliterators():
    from harness.data.translation.transliterators import Transliterator
    return [Transliterator(name="x", version="9", licence="MIT", languages=None, summary="x",
                           transliterate=lambda words, language: ["x" for word in words])]
""",
    )
    source = _write(tmp_path, TAMIL, "plain.conllu")
    command(
        source, "--out", tmp_path / "out.conllu", "--engine", "x", "--language", "qq", "--compat", "paper"
    )
    lines = (tmp_path / "out.conllu").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# code_switch = engine=x version=9 licence=MIT language=qq ")
    assert lines[2] == "# text = x x"


def test_an_engine_that_is_not_ready_says_why(
    command: Callable[..., tuple[int, str]], tmp_path: Path, install_plugin: Callable[..., Path]
) -> None:
    install_plugin(
        "not_ready",
        """
from harness import hookimpl
from harness.errors import PluginError
from harness.data.translation.transliterators import Transliterator

def ready():
    raise PluginError("buy it first")

@hookimpl
def harness_register_transliterators():
    return [Transliterator(name="x", version="9", licence="MIT", languages=None, summary="x", ready=ready,
                           transliterate=lambda words, language: list(words))]
""",
    )
    with pytest.raises(Exception, match="buy it first"):
        command(_write(tmp_path, TAMIL), "--out", tmp_path / "out.conllu", "--engine", "x")
    assert not (tmp_path / "out.conllu").exists()


def test_bad_paths_are_rejected(tmp_path: Path) -> None:
    source = _write(tmp_path, TAMIL)
    (tmp_path / "empty").mkdir()
    for path, out, error in (
        (source, tmp_path, UsageError),
        (tmp_path, source, UsageError),
        (source, source, UsageError),
        (tmp_path, tmp_path, UsageError),
        (tmp_path / "empty", tmp_path / "out", MissingDataError),
        (tmp_path / "none", tmp_path / "out", MissingDataError),
    ):
        named = path if error is MissingDataError else out
        with pytest.raises(error, match=str(named)):
            jobs_of(path, out)


def test_an_output_that_cannot_be_written_is_an_error(
    command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    source = _write(tmp_path, TAMIL)
    with pytest.raises(StorageError, match="cannot be written"):
        command(source, "--out", source / "out.conllu")


def test_the_language_is_the_beginning_of_the_name() -> None:
    assert language_of(Path("x/ta_ttb-ud-dev.conllu")) == "ta"
    assert language_of(Path("qhe_hiencs-ud-dev.conllu")) == "qhe"
    for name in ("train.conllu", "test_A.conllu", "TA_x.conllu"):
        with pytest.raises(UsageError, match="--language"):
            language_of(Path(name))
