"""The command of the benchmark: make, show, use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.api import evaluate
from harness.cli.main import run_command
from harness.data.readers.conllu import TreebankError, read_sentences
from harness.errors import DataError, MissingDataError, UsageError
from harness_probing.settings import PRESETS
from harness_transliteration.rules import RULES
from harness_vyakarana.command import app
from harness_vyakarana.labels import stats_of
from harness_vyakarana.readers import READERS
from harness_vyakarana.side_by_side import side_by_side
from harness_vyakarana.treebank import jobs_of, language_of, licence_of, made_from
from tests.vyakarana.conftest import run

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
    ("name", "text", "expected"),
    [
        ("ta_ttb-ud-dev.conllu", "hi", "ta"),
        ("qhe_hiencs-ud-dev.conllu", "hi", "qhe"),
        ("UD_Hindi-HDTB/train.conllu", "hi", "hi"),
        ("hindi/CG-HDTB/train.conllu", "hi", "hi"),
        ("vyakarana/hi/original/train.conllu", "hi", "hi"),
        ("my/no/train.conllu", "hi", None),
        ("data/train.conllu", "hi", None),
        ("data/train.conllu", "ta", "ta"),
        ("my/test_A.conllu", "ta", "ta"),
        ("my/TA_x.conllu", "hi", None),
    ],
)
def test_names_of_files_and_folders_give_the_language(
    name: str, text: str, expected: str | None, own: Path, tmp_path: Path
) -> None:
    path = treebank((tmp_path / "in" / name).parent, own, text, Path(name).name) / Path(name).name
    assert language_of(path, "xx") == "xx"
    if expected is None:
        for unknown in (path, path.with_name("absent.conllu")):
            with pytest.raises(UsageError, match="--language"):
                language_of(unknown)
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


def test_a_file_gives_a_file_that_passes_the_check(own: Path, tmp_path: Path) -> None:
    source, target, table = own / "hi_own-ud-test.conllu", tmp_path / "cg.conllu", tmp_path / "t.json"
    output = run("colorless-green", source, "--out", target, "--json", table, "--seed", 3)
    assert "52 sentences from 14 of hi_own-ud-test.conllu (1 dropped as too short)" in output
    sentences = list(read_sentences(target))
    assert [s.sent_id for s in sentences[:5]] == [*(f"hi-01-org{n}" for n in range(1, 5)), "hi-02-org1"]
    assert any("seed = 3, language = hi" in comment for comment in sentences[0].comments)
    assert not any("generator" in comment for s in sentences[1:] for comment in s.comments)
    (row,) = json.loads(table.read_text())
    assert (row["read"], row["dropped"], row["written"]) == (14, 1, 52)
    assert row["ladder"]["NOUN:0"] > 0
    genders = row["gender_totals"]
    assert list(genders) == ["Fem", "Masc"]
    shares = (f"{count} +{100 * count / sum(genders.values()):.1f}" for count in genders.values())
    assert re.search("^all +" + " +".join(shares), output, flags=re.MULTILINE)
    assert ": 0 violations" in run("check", source, target)
    shard = tmp_path / "shard.conllu"
    shard.write_bytes(source.read_bytes().split(b"\n\n")[3] + b"\n\n")
    made = tmp_path / "made.conllu"
    run("colorless-green", shard, "--out", made, "--pool", source, "--language", "hi", "--seed", 3)
    assert [s.words for s in read_sentences(made)] == [s.words for s in sentences[12:16]]


def test_a_folder_gives_a_folder_with_train_and_test_swapped(own: Path, tmp_path: Path) -> None:
    names = [f"ta_x-ud-{split}.conllu" for split in ("train", "dev", "test")]
    source, target = treebank(tmp_path / "in", own, "ta", *names), tmp_path / "out"
    run("colorless-green", source, "--out", target, "--compat", "paper")
    first = {path.name: next(read_sentences(path)).sent_id for path in target.iterdir()}
    assert first == {"train.conllu": "ta2-01-org1", "dev.conllu": "ta1-01-org1", "test.conllu": "ta0-01-org1"}
    run("colorless-green", source, "--out", target, "--no-swap", "--drop-shorter-than", 1)
    assert next(read_sentences(target / "train.conllu")).sent_id == "ta0-01-org1"


def test_a_check_that_finds_something_fails(own: Path, tmp_path: Path) -> None:
    source = own / "ta_own-ud-test.conllu"
    result = CliRunner().invoke(app, ["check", str(source), str(source)])
    assert result.exit_code == 1
    assert "no sentence of the source has this variant" in result.output


def test_nothing_is_written_if_the_source_is_broken(tmp_path: Path) -> None:
    source, target = tmp_path / "hi_x-ud-dev.conllu", tmp_path / "out.conllu"
    source.write_text("1\tघर\tघर\tNOUN\t_\t_\t0\troot\t_\t_\n\n# sent_id = a\n1\tघर\n\n")
    result = CliRunner().invoke(app, ["colorless-green", str(source), "--out", str(target)])
    assert isinstance(result.exception, TreebankError)
    assert {(one.line, one.key) for one in result.exception.problems} >= {(4, "sentence 'a'"), (1, "")}
    source.write_text("# sent_id = b\n1\tघर\tघर\tNOUN\t_\t_\t_\troot\t_\t_\n\n1\tघर\n\n")
    result = CliRunner().invoke(app, ["colorless-green", str(source), "--out", str(target)])
    assert isinstance(result.exception, TreebankError)
    found = [(one.line, one.key) for one in result.exception.problems]
    assert found == [(1, "sentence 'b'"), (4, ""), (4, "")]
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_stats_show_which_tasks_a_treebank_supports(own: Path, tmp_path: Path) -> None:
    output = run("stats", own, "--json", tmp_path / "s.json")
    assert run("stats", own) == output
    assert "hi_own-ud-test.conllu" in output
    hindi, tamil = json.loads((tmp_path / "s.json").read_text())
    assert {name: task["offered"] for name, task in hindi["tasks"].items()} == dict.fromkeys(
        ("pos", "stdp", "gcm", "sva"), True
    )
    assert hindi["genders"] == {"Masc": 37, "Fem": 30}  # counted with grep
    assert "Masc 37 (55.2 %), Fem 30 (44.8 %)" in output
    assert tamil["tasks"]["sva"]["items"] == 10


def test_stats_say_why_not(tmp_path: Path) -> None:
    path = tmp_path / "te_x-ud-dev.conllu"
    path.write_text("# sent_id = a\n1\tx\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n")
    reasons = {task: reason for task, _, reason in stats_of(read_sentences(path)).tasks()}
    assert reasons == {
        "pos": "",
        "stdp": "no sentence has a tree",
        "gcm": "Case on 0% of the words; more than 20% are needed",
        "sva": "Gender on 0% and Number on 0% of the words; more than 20% are needed",
    }


@pytest.mark.parametrize("missing", ["Person", "Case", "Number"])
def test_parts_of_speech_without_the_published_key_are_reported(
    missing: str, own: Path, tmp_path: Path
) -> None:
    source, table = tmp_path / "hi_x-ud-test.conllu", tmp_path / "t.json"
    text = (own / "hi_own-ud-test.conllu").read_text(encoding="utf-8")
    source.write_text(re.sub(rf"\|?{missing}=[^|\t]+", "", text).replace("\t|", "\t"), encoding="utf-8")
    output = run(
        "colorless-green", source, "--out", tmp_path / "o.conllu", "--compat", "paper", "--json", table
    )
    (row,) = json.loads(table.read_text())
    nouns = row["words"]["NOUN"]
    assert (row["replaced"].get("NOUN", 0), row["missing"][f"NOUN:{missing}"]) == (0, nouns)
    assert f"0 of {nouns} NOUN were replaced: {nouns} have no {missing}" in output
    assert re.search(rf"^NOUN +{nouns} +0 +0\.0 ", output, flags=re.MULTILINE)
    whole = run(
        "colorless-green", own / "hi_own-ud-test.conllu", "--out", tmp_path / "o.conllu", "--compat", "paper"
    )
    assert "NOUN were replaced" not in whole


POS = next(reader for reader in READERS if reader.name == "vyakarana")


@pytest.fixture
def generated(own: Path, tmp_path: Path) -> tuple[Path, Path, Path]:
    """A treebank, and both treebanks that are made from it."""
    source, green, mixed = own / "hi_own-ud-test.conllu", tmp_path / "cg.conllu", tmp_path / "cscg.conllu"
    run("colorless-green", source, "--out", green)
    run("code-switch", green, "--out", mixed)
    return source, green, mixed


def test_versions_of_a_sentence_are_side_by_side(generated: tuple[Path, Path, Path], tmp_path: Path) -> None:
    source, green, mixed = generated
    [table] = side_by_side(generated, ["hi-02"])
    variants = [f"org{number}" for number in range(1, 5)]
    assert table.heads == (
        "UPOS",
        "Case",
        "Gender",
        "original",
        *variants,
        *(f"{name} latin" for name in variants),
    )
    columns = list(zip(*(row.fields for row in table.rows), strict=True))
    by_id = {own.sent_id: own for path in generated[:2] for own in read_sentences(path)}
    assert list(columns[3]) == [word.form for word in by_id["hi-02"].words]
    assert list(columns[5]) == [word.form for word in by_id["hi-02-org2"].words]
    assert all(str(form).isascii() for form in columns[-1])
    assert [own.title for own in side_by_side(generated, [], count=2)] == ["hi-01", "hi-02"]
    output = run(
        "show", *generated, "--sentence", "hi-02", "--format", "latex", "--output", tmp_path / "x.tex"
    )
    assert not output
    latex = (tmp_path / "x.tex").read_text(encoding="utf-8")
    assert latex.count(r"\begin{tabular}") == 1
    assert all(str(form) in latex for form in columns[5])
    assert "hi-01" in run("show", source, green, mixed)


def test_what_is_not_side_by_side_is_an_error(
    generated: tuple[Path, Path, Path], own: Path, tmp_path: Path
) -> None:
    with pytest.raises(MissingDataError, match="hi-99"):
        side_by_side(generated, ["hi-99"])
    with pytest.raises(MissingDataError, match="in common"):
        side_by_side([generated[0], own / "ta_own-ud-test.conllu"], [])
    cut = tmp_path / "cut.conllu"
    cut.write_text("# sent_id = hi-01-org1\n1\tx\tx\tX\t_\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(DataError, match="hi-01"):
        side_by_side([generated[0], cut], ["hi-01"])


@pytest.mark.parametrize("task", ["pos", "stdp"])
def test_ranges_are_rows_of_their_own(task: str, own: Path) -> None:
    path = own / "ta_own-ud-test.conllu"
    words, rows = (list(POS.rows([path], {"task": task, "ranges": view})) for view in ("false", "true"))
    for sentence, plain, full in zip(read_sentences(path), words, rows, strict=True):
        forms = [token.form for token in sentence.tokens]
        assert full.fields.get("tokens", forms) == forms
        assert full.fields.get("sentence", " ".join(forms)) == " ".join(forms)
        if task == "pos":
            tags = full.fields["tags"]
            assert [tag for tag in tags if tag != "None"] == plain.fields["tags"]
            assert tags.count("None") == len(sentence.tokens) - len(sentence.words)
        else:
            assert full.fields["label"] == plain.fields["label"]
    assert words != rows


def test_the_published_counts_of_rows(data_root: Path) -> None:
    """Table 3 of Patil et al. (2021) counts the rows of CG-TTB: 8,732 of train and 5,536 of dev."""
    for split, rows, words in (("train", 8732, 7956), ("dev", 5536, 5052)):
        path = data_root / "vyakarana/tamil/CG-TTB" / f"{split}.conllu"
        for view, count in (("true", rows), ("false", words)):
            tags = [row.fields["tags"] for row in POS.rows([path], {"task": "pos", "ranges": view})]
            assert sum(map(len, tags)) == count
