"""From a raw UD folder to scores: names of files, their language and provenance, and files that no task reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.api import evaluate
from harness.cli.main import run_command
from harness.data.readers.conllu import read_sentences
from harness.errors import UsageError
from harness_probing.settings import PRESETS
from harness_transliteration.rules import RULES
from harness_vyakarana.command import app
from harness_vyakarana.treebank import jobs_of, language_of, licence_of, made_from

LAYERED = Path(__file__).parents[1] / "probing" / "layered_adapter.py"
LICENCE = "See https://creativecommons.org/licenses/by-sa/4.0/legalcode\n"


def treebank(folder: Path, own: Path, language: str, *names: str) -> Path:
    """Write the small treebank under these names, with a licence, and return the folder."""
    folder.mkdir(parents=True)
    text = (own / f"{language}_own-ud-test.conllu").read_text(encoding="utf-8")
    for number, name in enumerate(names):
        (folder / name).write_text(text.replace(f"= {language}-", f"= {language}{number}-"), encoding="utf-8")
    (folder / "LICENSE.txt").write_text(LICENCE)
    return folder


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.thorough
def test_two_commands_lead_from_a_ud_folder_to_scores(
    own: Path,
    tmp_path: Path,
    install_plugin: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install_plugin("layered_adapter", LAYERED.read_text(encoding="utf-8"))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    quick = {name: replace(preset, max_epochs=1, fractions=()) for name, preset in PRESETS.items()}
    monkeypatch.setattr("harness_probing.settings.PRESETS", quick)
    names = (f"hi_x-ud-{split}.conllu" for split in ("train", "dev", "test"))
    source, data = treebank(tmp_path / "UD_Hindi-X", own, "hi", *names), tmp_path / "data"
    run("colorless-green", source, "--output", data / "vyakarana/hi/cg", "--seed", 3)
    (data / "vyakarana/hi/cg/hi_x-ud-train.conllu").touch()
    finished = evaluate(
        ["vyakarana_pos:hi"], "layered:sound", data=data, method="probe", seeds=(0,), output=tmp_path / "run"
    )
    (cell,) = [own for own in finished.cells if own.status == "ok"]
    assert (cell.view, cell.n > 0) == ({"treebank": "cg"}, True)
    made = {
        "generated_from": "hi_x-ud-train.conllu",
        "licence": "CC-BY-SA-4.0",
        "mode": "default",
        "seed": "3",
    }
    assert made.items() <= cell.data["made_from"].items()
    manifest = json.loads((tmp_path / "run/manifest.json").read_text(encoding="utf-8"))
    by_split = {own["split"]: own["made_from"] for own in manifest["resolved"]["data"]}
    assert {split: own["generated_from"] for split, own in by_split.items()} == {
        "train": "hi_x-ud-test.conllu",
        "validation": "hi_x-ud-dev.conllu",
        "test": "hi_x-ud-train.conllu",
    }
    assert run_command(["report", str(tmp_path / "run"), "--format", "markdown"]) == 0
    text = capsys.readouterr().out.replace("\\", "")
    assert all(f"{name} {value}" in text for name, value in made.items())
    assert "no task reads hi_x-ud-train.conllu in" in text


@pytest.mark.parametrize(
    ("names", "targets"),
    [
        (("ta_x-ud-train.conllu", "ta_x-ud-test.conllu"), ["test.conllu", "train.conllu"]),
        (("ta_x-ud-test.conllu",), ["test.conllu"]),
        (("test_A.conllu", "test_B.conllu"), ["test_A.conllu", "test_B.conllu"]),
        (("ta_x-ud-train.sample9.conllu", "notes.conllu"), ["notes.conllu", "train.conllu"]),
        (("train.conllu", "dev.conllu"), ["dev.conllu", "train.conllu"]),
    ],
)
def test_files_of_a_folder_get_the_names_that_tasks_read(
    names: tuple[str, ...], targets: list[str], own: Path, tmp_path: Path
) -> None:
    source = treebank(tmp_path / "in", own, "ta", *names)
    jobs = jobs_of(source, tmp_path / "out", language="ta")
    assert [job.target.name for job in jobs] == targets
    swapped = [job.target.name for job in jobs_of(source, tmp_path / "out", language="ta", swap=True)]
    assert swapped == (targets[::-1] if {"train.conllu", "test.conllu"} <= {*targets} else targets)


@pytest.mark.parametrize(
    ("folder", "text", "expected"),
    [
        ("UD_Hindi-HDTB", "hi", "hi"),
        ("hindi/CG-HDTB", "hi", "hi"),
        ("vyakarana/hi/original", "hi", "hi"),
        ("my/no", "hi", None),
        ("data", "hi", None),
        ("data", "ta", "ta"),
        ("my", "ta", "ta"),
    ],
)
def test_a_folder_of_plain_names_has_a_language(
    folder: str, text: str, expected: str | None, own: Path, tmp_path: Path
) -> None:
    path = treebank(tmp_path / folder, own, text, "train.conllu") / "train.conllu"
    assert language_of(path, "xx") == "xx"
    if expected is None:
        with pytest.raises(UsageError, match="--language"):
            language_of(path)
        assert language_of(path, target=tmp_path / "vyakarana/hi/cg") == "hi"
    else:
        assert language_of(path) == expected


def test_provenance_travels_from_one_generator_to_the_next(own: Path, tmp_path: Path) -> None:
    source = treebank(tmp_path / "in", own, "hi", "hi_x-ud-dev.conllu") / "hi_x-ud-dev.conllu"
    plain, green, mixed = (tmp_path / f"{name}.conllu" for name in ("plain", "green", "mixed"))
    run("code-switch", source, "--output", plain, "--ratio", 0.5)
    found = made_from(plain)
    assert (found["transliterator"], found["generated_from"]) == ("rules 1", "hi_x-ud-dev.conllu")
    assert (found["licence"], found["code_switch_ratio"], found["language"]) == ("CC-BY-SA-4.0", "0.5", "hi")
    run("colorless-green", source, "--output", green, "--compat", "paper", "--seed", 7)
    run("code-switch", green, "--output", mixed)
    assert made_from(green).items() <= made_from(mixed).items()
    found = made_from(mixed)
    assert (found["mode"], found["seed"], found["transliterator"]) == ("paper", "7", "rules 1")
    assert (found["licence"], found["generated_from"]) == ("CC-BY-SA-4.0", "hi_x-ud-dev.conllu")
    assert (made_from(source), made_from(tmp_path / "none")) == ({}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://creativecommons.org/licenses/by-nc-sa/3.0/\n", "CC-BY-NC-SA-3.0"),
        ("https://creativecommons.org/licenses/by/4.0.\n", "CC-BY-4.0"),
        ("GNU GPL\n", "see-LICENSE.txt"),
        (None, "unknown"),
    ],
)
def test_the_licence_is_that_of_the_folder(text: str | None, expected: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "LICENSE.txt").write_text(text)
    (tmp_path / "x.conllu").touch()
    assert licence_of(tmp_path / "x.conllu") == expected


def test_the_default_engine_names_its_agreement_with_the_released_treebank(
    own: Path, tmp_path: Path, data_root: Path
) -> None:
    output = run("code-switch", own / "ta_own-ud-test.conllu", "--output", tmp_path / "out.conllu")
    pairs = [
        (token.form, released.form)
        for split in ("train", "dev")
        for before, after in zip(
            read_sentences(data_root / f"vyakarana/tamil/CG-TTB/{split}.conllu"),
            read_sentences(data_root / f"vyakarana/tamil/csCG-TTB/{split}.conllu"),
            strict=True,
        )
        for token, released in zip(before.tokens, after.tokens, strict=True)
    ]
    spelt = RULES.transliterate([form for form, _ in pairs], "ta")
    alike = sum(own == released for own, (_, released) in zip(spelt, pairs, strict=True))
    assert (alike, len(pairs)) == (2864, 14268)
    assert f" {alike / len(pairs):.0%}".replace("%", " %") in output
