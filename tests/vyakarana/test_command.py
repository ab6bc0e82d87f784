from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.data.readers.conllu import TreebankError, read_sentences
from harness.errors import DataError, UsageError
from harness_vyakarana.command import app
from harness_vyakarana.labels import stats_of
from harness_vyakarana.treebank import jobs_of, language_of

runner = CliRunner()


def run(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


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
    assert ": 0 violations" in run("check", source, target)
    shard = tmp_path / "shard.conllu"
    shard.write_bytes(b"".join((source.read_bytes().split(b"\n\n")[3], b"\n\n")))
    made = tmp_path / "made.conllu"
    run("colorless-green", shard, "--out", made, "--pool", source, "--language", "hi", "--seed", 3)
    assert [s.words for s in list(read_sentences(made))] == [s.words for s in sentences[12:16]]


def test_a_folder_gives_a_folder_with_train_and_test_swapped(own: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    text = (own / "ta_own-ud-test.conllu").read_text()
    for split in ("train", "dev", "test"):
        (source / f"ta_x-ud-{split}.conllu").write_text(text.replace("= ta-", f"= {split}-"))
    run("colorless-green", source, "--out", target, "--compat", "paper")
    first = {path.name: next(read_sentences(path)).sent_id for path in target.iterdir()}
    assert first == {
        "train.conllu": "test-01-org1",
        "dev.conllu": "dev-01-org1",
        "test.conllu": "train-01-org1",
    }
    run("colorless-green", source, "--out", target, "--no-swap", "--drop-shorter-than", 1)
    assert next(read_sentences(target / "train.conllu")).sent_id == "train-01-org1"


def test_a_check_that_finds_something_fails(own: Path, tmp_path: Path) -> None:
    source = own / "ta_own-ud-test.conllu"
    result = runner.invoke(app, ["check", str(source), str(source)])
    assert result.exit_code == 1
    assert "no sentence of the source has this variant" in result.output


def test_names_give_language_and_split(tmp_path: Path) -> None:
    assert language_of(Path("hi_hdtb-ud-train.conllu")) == "hi"
    with pytest.raises(UsageError, match="--language"):
        language_of(Path("dev.conllu"))
    (tmp_path / "one").mkdir()
    own = tmp_path / "one" / "hi_a-ud-dev.conllu"
    own.touch()
    with pytest.raises(UsageError, match=str(own)):
        jobs_of(own, own)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty"):
        jobs_of(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(DataError, match=r"none\.conllu"):
        jobs_of(tmp_path / "none.conllu", tmp_path / "out")


def test_nothing_is_written_if_the_source_is_broken(tmp_path: Path) -> None:
    source, target = tmp_path / "hi_x-ud-dev.conllu", tmp_path / "out.conllu"
    source.write_text("1\tघर\tघर\tNOUN\t_\t_\t0\troot\t_\t_\n\n# sent_id = a\n1\tघर\n\n")
    result = runner.invoke(app, ["colorless-green", str(source), "--out", str(target)])
    assert isinstance(result.exception, TreebankError)
    assert {(one.line, one.key) for one in result.exception.problems} >= {(4, "sentence 'a'"), (1, "")}
    source.write_text("# sent_id = b\n1\tघर\tघर\tNOUN\t_\t_\t_\troot\t_\t_\n\n1\tघर\n\n")
    result = runner.invoke(app, ["colorless-green", str(source), "--out", str(target)])
    assert isinstance(result.exception, TreebankError)
    found = [(one.line, one.key) for one in result.exception.problems]
    assert found == [(1, "sentence 'b'"), (4, ""), (4, "")]
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_stats_show_which_tasks_a_treebank_supports(own: Path, tmp_path: Path) -> None:
    output = run("stats", own, "--json", tmp_path / "s.json")
    assert "hi_own-ud-test.conllu" in output
    hindi, tamil = json.loads((tmp_path / "s.json").read_text())
    assert {name: task["offered"] for name, task in hindi["tasks"].items()} == dict.fromkeys(
        ("pos", "stdp", "gcm", "sva"), True
    )
    assert hindi["genders"] == {"Masc": 37, "Fem": 30}  # counted with grep
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


@pytest.mark.thorough
def test_stats_of_released_treebanks(data_root: Path) -> None:
    stats = stats_of(list(read_sentences(data_root / "ud/UD_Hindi-PUD/hi_pud-ud-test.conllu")))
    assert (stats.sentences, stats.words) == (1000, 23829)
    assert (sum(stats.cases.values()), sum(stats.agreement.values())) == (10054, 1555)
    assert round(stats.share("Gender"), 2) == 0.47
    assert not any(reason for _, _, reason in stats.tasks())


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


def test_shares_of_gender_are_printed(own: Path, tmp_path: Path) -> None:
    source, table = own / "hi_own-ud-test.conllu", tmp_path / "t.json"
    output = run("colorless-green", source, "--out", tmp_path / "o.conllu", "--json", table)
    totals = json.loads(table.read_text())[0]["gender_totals"]
    assert list(totals) == ["Fem", "Masc"]
    whole = sum(totals.values())
    cells = (f"{count} +{100 * count / whole:.1f}" for count in totals.values())
    assert re.search("^all +" + " +".join(cells), output, flags=re.MULTILINE)
    assert "Masc 37 (55.2 %), Fem 30 (44.8 %)" in run("stats", source)
