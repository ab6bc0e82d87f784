"""What was skipped is counted by task, with the one command that gets the data; reasons are those of real plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.reporting.overview.missing import missing

Cli = Callable[..., tuple[int, str, str]]
MODEL = ("--model", "baseline:majority")


def _skips(out: str) -> list[str]:
    """Return the lines on what is skipped of ``harness plan``, each joined."""
    after = out.partition("\nSkipped: ")[2].partition("\nEvery cell")[0]
    return " ".join(after.partition("\n")[2].split()).replace(" no data:", "\nno data:").splitlines()


def test_the_sample_names_the_other_sources(cli: Cli) -> None:
    status, out, _ = cli("plan", "--tasks", "xnli:de+th+vi,xcopa:et+qu", *MODEL, "--data", "sample")
    assert status == 0
    assert _skips(out) == ["no data: xnli 2, xcopa 1; run with --data hub or --data DIR"]


def test_a_folder_names_the_hub_or_the_paths(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "given"
    for name in ("xnli/test-de.tsv", "xnli/train-en.tsv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("A man.\tA woman.\tneutral\n", encoding="utf-8")
    tasks = "xnli:de+sw+hi,xquad:de,xsid_intent:de+ar"
    status, out, _ = cli("plan", "--tasks", tasks, *MODEL, "--data", folder)
    assert status == 0
    assert _skips(out) == [
        "no data: xnli 2, xquad 1; run with --data hub",
        "no data: xsid_intent 2; harness tasks show TASK has the paths",
    ]


def test_the_folder_next_to_a_given_one_is_named(cli: Cli, tmp_path: Path) -> None:
    for name in ("xnli/test-de.tsv", "xnli/train-en.tsv"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("A man.\tA woman.\tneutral\n", encoding="utf-8")
    (tmp_path / "data/other/udpos").mkdir(parents=True)
    for name in ("train-en.tsv", "test-en.tsv"):
        (tmp_path / "data/other/udpos" / name).write_text("A\tDET\n\n", encoding="utf-8")
    given = tmp_path / "data" / "other"
    status, out, _ = cli("plan", "--tasks", "xnli:de,udpos:en", *MODEL, "--data", given)
    assert status == 0
    assert _skips(out) == [f"no data: xnli 1; run with --data {tmp_path / 'data'}"]


def test_other_reasons_are_whole_and_name_their_languages() -> None:
    found = missing(
        [
            ("xquad", "sw", "task 'xquad' has no Swahili (sw)"),
            ("tatoeba", "en", "task 'tatoeba' has no English (en)"),
            ("udpos", "de", "the model does not tag words."),
            ("wikiann", "de", "the model does not tag words."),
        ]
    )
    assert [own.line for own in found] == [
        "outside the task's languages: xquad sw, tatoeba en",
        "the model does not tag words: udpos de, wikiann de",
    ]
