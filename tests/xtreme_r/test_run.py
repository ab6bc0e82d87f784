from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.errors import HarnessError, UsageError
from harness.storage.run_folder import Run
from harness_xtreme_r.submission.run import export_run, import_submission

pytestmark = pytest.mark.thorough

TASKS = "xnli:en+sw,pawsx:de,xcopa:sw,xquad:en+hi,mlqa:de,tydiqa:ru,udpos:de,wikiann:de,tatoeba:de,mewslix:tr"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        return harness.evaluate(
            TASKS, "baseline:char-ngram", data="sample", recipe="quick", output=folder / "run"
        )


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


def _scores(run: Run, protocol: str) -> dict[tuple[str, str, str], Any]:
    return {
        (cell.task, cell.language, name): score.value
        for cell in run.cells
        if cell.status == "ok" and cell.protocol == protocol
        for name, score in cell.metrics.items()
    }


def test_an_exported_run_comes_back_with_the_same_scores(run: Run, tmp_path: Path) -> None:
    written, left_out = export_run(run.path, tmp_path / "submission", protocol="zero_shot_transfer")
    names = {
        "mewslix/test-tr.json", "mlqa/test-de.json", "panx/test-de.tsv", "pawsx/test-de.tsv",
        "tatoeba/test-de.tsv", "tydiqa/test-ru.json", "udpos/test-de.tsv", "xcopa/test-sw.jsonl",
        "xnli/test-en.tsv", "xnli/test-sw.tsv", "xquad/test-en.json", "xquad/test-hi.json",
    }  # fmt: skip
    assert {str(path.relative_to(tmp_path / "submission")) for path in written} == names
    assert left_out == ["tatoeba:de: its protocol is frozen"]
    back, skipped = import_submission(tmp_path / "submission", ["sample"], tmp_path / "back")
    assert skipped == []
    assert _scores(back, "frozen") == _scores(run, "zero_shot_transfer")


def test_what_cannot_be_exported_or_imported_is_rejected(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "submission"
    with pytest.raises(UsageError, match=r"'tatoeba'.*--protocol"):
        export_run(run.path, target)
    limited = harness.evaluate(
        "xnli:sw", "baseline:majority", data="sample", limit=5, output=tmp_path / "run"
    )
    with pytest.raises(HarnessError, match="5 of its 24 items"):
        export_run(limited.path, target)
    target.mkdir(exist_ok=True)
    with pytest.raises(UsageError):
        import_submission(target, ["sample"], tmp_path / "back")


def test_a_file_with_too_few_lines_fails_its_cell_alone(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "submission"
    export_run(run.path, target, protocol="zero_shot_transfer")
    file = target / "xnli" / "test-sw.tsv"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:-1]), encoding="utf-8")
    back, _ = import_submission(target, ["sample"], tmp_path / "back")
    failed = [cell for cell in back.cells if cell.status == "failed"]
    assert [(cell.task, cell.language) for cell in failed] == [("xnli", "sw")]
    assert "expected 24 items, found 23" in failed[0].reason
