"""``harness doctor --hub`` and every command on a Hub with a planted fault of each kind."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("datasets")

import datasets
from huggingface_hub import constants

from harness.api import evaluate
from harness.planning.plan import Skip
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import prepare
from tests.hub.hub_server import Hub

Cli = Callable[..., tuple[int, str, str]]
Row = Mapping[str, Any]

NAMES = ["negative", "neutral", "positive"]
OPTIONS = {"question": "2+2?", "option_a": "1", "option_b": "2", "option_c": "3", "option_d": "4"}
MMLU = {
    **OPTIONS,
    "sample_id": "s",
    "subject": "s",
    "subject_category": "c",
    "cultural_sensitivity_label": "-",
}
PROX = {"question": "2+2?", "answer": "A", "category": "maths", **{f"option_{n}": "4" for n in range(10)}}


def table(rows: Sequence[Row], names: Mapping[str, Sequence[str]] | None = None) -> bytes:
    """Return a Parquet file whose named columns have label names."""
    made = datasets.Dataset.from_list([dict(row) for row in rows])
    for column, labels in (names or {}).items():
        made = made.cast_column(column, datasets.ClassLabel(names=list(labels)))
    buffer = io.BytesIO()
    made.to_parquet(buffer)
    return buffer.getvalue()


def dataset(path: str, configs: Mapping[str, Mapping[str, bytes]], **options: Any) -> dict[str, bytes]:
    """Return the files of a dataset: configuration -> split -> Parquet file."""
    card = {
        "configs": [
            {
                "config_name": config,
                "data_files": [{"split": split, "path": f"{config}/{split}-*"} for split in splits],
                **options,
            }
            for config, splits in configs.items()
        ]
    }
    files = {
        f"{config}/{split}-0.parquet": data
        for config, splits in configs.items()
        for split, data in splits.items()
    }
    files["README.md"] = f"---\n{json.dumps(card)}\n---\n".encode()
    return {f"datasets/{path}/{name}": content for name, content in files.items()}


SENTIMENT = table([{"text": f"t{n}", "label": n % 3} for n in range(6)], {"label": NAMES})
SPLITS = dict.fromkeys(("train", "validation", "test"), SENTIMENT)
FAULTS = {
    # task and language -> state, and a part of the reason
    "flores_plus:sw": ("gated", "accept its conditions"),
    "polymath:de": ("gone", "'Qwen/PolyMath'"),
    "belebele:sw": ("gone", "at revision '75b399394a98"),
    "global_mmlu:sw": ("renamed", "is now 'CohereNew/Global-MMLU'"),
    "mgsm:de": ("different", "is a script (mgsm.py)"),
    "afrimgsm:ha": ("different", "an option 'converters'"),
    "mmlu_prox:sw": ("different", "no config 'sw'"),
    "global_mmlu_lite:sw": ("different", "no split 'test'"),
    "indicsentiment:as": ("different", "'INDIC REVIEW'"),
    "xlsum:sw": ("broken", "csebuetnlp/xlsum"),
    "include:sq": ("different", "0: A, 1: B, 2: C, 3: D; the dataset has 0: B, 1: A"),
    "mmmlu:zh": ("different", "no file 'test/mmlu_ZH-CN.csv'"),
    "mmlu_prox_lite:sw": ("different", "cannot be understood"),
}
NUSAX = "ace ban bbc bjn bug eng ind jav mad min nij sun".split()
RIGHT = ("nusax_senti:su", "msvamp:bn")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {
        **dataset("mteb/NusaX-senti", dict.fromkeys(NUSAX, SPLITS)),
        **dataset("Mathoctopus/MSVAMP", {"bn": {"test": table([{"m_query": "1+1?", "response": 2}])}}),
        "datasets/openlanguagedata/flores_plus/devtest/swh_Latn.jsonl": b"{}\n",
        **dataset("facebook/belebele", {"swh_Latn": {"test": table([{"a": 1}])}}),
        **dataset(
            "CohereNew/Global-MMLU", {"sw": dict.fromkeys(("dev", "test"), table([{**MMLU, "answer": "D"}]))}
        ),
        "datasets/juletxara/mgsm/mgsm.py": b"raise SystemExit\n",
        "datasets/juletxara/mgsm/README.md": b"# MGSM\n",
        **dataset("masakhane/afrimgsm", {"hau": SPLITS}, converters="x"),
        **dataset("li-lab/MMLU-ProX", {"af": dict.fromkeys(("validation", "test"), table([PROX]))}),
        **dataset("CohereLabs/Global-MMLU-Lite", {"sw": {"dev": table([{**MMLU, "answer": "D"}])}}),
        **dataset("mteb/IndicSentiment", {"as": {"test": table([{"REVIEW": "Good.", "LABEL": "Positive"}])}}),
        **dataset(
            "CohereLabs/include-base-44",
            {
                "Albanian": dict.fromkeys(
                    ("validation", "test"),
                    table(
                        [{**OPTIONS, "answer": 3, "regional_feature": "-", "domain": "d", "subject": "s"}],
                        {"answer": ["B", "A", "C", "D"]},
                    ),
                )
            },
        ),
        "datasets/openai/MMMLU/test/mmlu_DE-DE.csv": b"Question\n",
        "datasets/li-lab/MMLU-ProX-Lite/README.md": b"---\nconfigs: [{config_name: [\n---\n",
    }
    news = table([{"id": "1", "text": "t", "summary": "s"}])
    for split in ("validation", "test"):
        files[f"datasets/csebuetnlp/xlsum/swahili/{split}/0000.parquet"] = news[: len(news) // 2]
    server = Hub(files)
    server.gated = {"openlanguagedata/flores_plus"}
    server.renamed["CohereLabs/Global-MMLU"] = "CohereNew/Global-MMLU"
    server.revisions["facebook/belebele"] = "b" * 40
    monkeypatch.setattr(constants, "ENDPOINT", server.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    yield server
    server.close()


def test_doctor_finds_every_planted_fault_without_the_data(hub: Hub, cli: Cli) -> None:
    status, out, err = cli("doctor", "--hub", *RIGHT, *FAULTS, "--json", "rows.json")
    assert (status, err) == (1, ""), out
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    states: dict[str, dict[str, str]] = {}
    for row in rows:
        states.setdefault(f"{row['owner']}:{row['language']}", {})[row["split"]] = row["state"]
    for task, (state, reason) in FAULTS.items():
        assert state in states[task].values(), (task, states[task])
        details = [row["detail"] for row in rows if f"{row['owner']}:{row['language']}" == task]
        assert any(reason in detail for detail in details), (task, details)
    for task in RIGHT:
        assert set(states[task].values()) == {"right"}, [row for row in rows if row["owner"] in task]
    assert cli("doctor", "--hub", *RIGHT)[0] == 0


@pytest.mark.thorough
def test_a_footer_costs_a_few_kilobytes(hub: Hub, cli: Cli) -> None:
    import numpy as np

    large = table(
        [{"m_query": str(n), "response": n} for n in np.random.default_rng(0).integers(0, 10**15, 200_000)]
    )
    hub.files = dataset("Mathoctopus/MSVAMP", {"bn": {"test": large}})
    assert cli("doctor", "--hub", "msvamp:bn")[0] == 0
    assert len(large) > 1_000_000
    assert hub.bytes_sent < 20_000


def plan_skips(tasks: Sequence[str]) -> tuple[list[str], list[Skip]]:
    plan = prepare(RunConfig(tasks=tuple(tasks), model="baseline:majority", data=data_options(["hub"]))).plan
    return [f"{cell.spec.task}:{cell.language.code}" for cell in plan.cells], list(plan.skipped)


def test_every_fault_skips_its_cells_with_the_reason(hub: Hub, cli: Cli) -> None:
    cells, skipped = plan_skips([RIGHT[0], *FAULTS])
    assert cells == ["nusax_senti:su"] * len(cells)
    assert cells
    reasons = {
        task: [skip.reason for skip in skipped if f"{skip.task}:{skip.language}" == task] for task in FAULTS
    }
    for task, (state, reason) in FAULTS.items():
        if state == "renamed":
            assert not any("Hub" in found for found in reasons[task]), "a redirect is followed"
        else:
            assert any(reason in found for found in reasons[task]), (task, reasons[task])


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["plan", "fetch", "lock"])
def test_no_fault_ends_a_command(hub: Hub, cli: Cli, command: str) -> None:
    named = ",".join([RIGHT[0], *FAULTS])
    options = [named] if command == "lock" else ["--tasks", named, "--model", "baseline:majority"]
    status, out, err = cli(command, *options, "--data", "hub")
    assert status == 0, err
    assert ("'mgsm' (test) in de" if command == "lock" else "is a script (mgsm.py)") in out
    assert "To download from the Hub, at most: " in err
    assert "Gated: openlanguagedata/flores_plus" in err


def test_what_is_here_is_not_counted_as_a_download(hub: Hub, cli: Cli) -> None:
    files = [name for name in hub.files if re.search(r"NusaX-senti/(eng/[tv][ra]|sun/te)", name)]
    size = sum(len(hub.files[name]) for name in files)
    _, _, err = cli("lock", RIGHT[0], "--data", "hub")
    assert f"at most: {size / 1024:.0f} KiB in {len(files)} files" in err
    _, _, err = cli("lock", RIGHT[0], "--data", "hub")
    assert "To download" not in err


@pytest.mark.thorough
def test_a_run_scores_what_can_be_read(hub: Hub, tmp_path: Path, cli: Cli) -> None:
    run = evaluate([RIGHT[0], *FAULTS], "baseline:majority", data="hub", output=tmp_path / "run")
    cells = json.loads((Path(run.path) / "results.json").read_text(encoding="utf-8"))["cells"]
    scored = {(cell["task"], cell["language"]) for cell in cells if cell["status"] == "ok"}
    assert scored == {("nusax_senti", "su")}
    assert not [cell for cell in cells if cell["status"] == "failed"]
