"""The presets `lm_eval` of benchmarks on the Hub against lm-evaluation-harness itself, from the Hub's rows on.

``golden/lm_eval_hub_requests.jsonl`` is what `peer_hub_prompts.py` wrote for the documents below. Where lm-eval is
installed, it is asked again: the environment that ``HARNESS_TEST_PEERS`` names.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.data.readers.column import pick, wanted_columns
from harness.data.records import Row
from harness.data.sources import columns_option
from harness.kinds.kind import ReadContext
from harness.prompts.preset import compile_prompt
from harness.running.session import Session

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "lm_eval_hub_requests.jsonl"
PEERS = Path(os.environ.get("HARNESS_TEST_PEERS") or HERE.parents[1] / ".venv-peers")

STORY = {f"input_sentence_{number}": f"Satz {number}." for number in range(1, 5)}
PASSAGE = {
    "link": "l",
    "question_number": 1,
    "flores_passage": " The cat sleeps. ",
    "question": " Who sleeps? ",
}
ANSWERS = {"mc_answer1": "the dog", "mc_answer2": "the cat", "mc_answer3": "Ann", "mc_answer4": "no one"}
OPTIONS = {"option_a": "1", "option_b": " 2", "option_c": "3", "option_d": "4"}
ABOUT = {"subject": "abstract_algebra", "subject_category": "STEM", "cultural_sensitivity_label": "CA"}
PLACE = {"domain": "STEM", "subject": "Math", "regional_feature": "agnostic"}
PAIR = {"premise": "It rains.", "hypothesis": "The road is wet."}
CHOICES = "['1', \"it's 2\", '3', '4']"
SOLVED = {"prompt": "To dry it,", "solution0": "wet it.", "solution1": "hang it up."}
NLI = ("entailment", "neutral", "contradiction")

CASES: Mapping[str, Mapping[str, Any]] = {
    "belebele": {
        "task": "belebele",
        "language": "fr",
        "path": "belebele/belebele_fra_Latn.yaml",
        "documents": [{**PASSAGE, **ANSWERS, "correct_answer_num": "2"}],
    },
    "xstorycloze": {
        "task": "xstorycloze",
        "language": "zh",
        "path": "xstorycloze/default_zh.yaml",
        "documents": [
            {
                **STORY,
                "story_id": "s",
                "sentence_quiz1": "A.",
                "sentence_quiz2": "B.",
                "answer_right_ending": 2,
            }
        ],
    },
    "global_mmlu": {
        "task": "global_mmlu",
        "language": "am",
        "path": "global_mmlu/full/am/global_mmlu_full_am_abstract_algebra.yaml",
        "documents": [{**OPTIONS, **ABOUT, "sample_id": "a", "question": " 1 + 1? ", "answer": "B"}],
    },
    "global_mmlu_lite": {
        "task": "global_mmlu_lite",
        "language": "fr",
        "path": "global_mmlu/default/fr/global_mmlu_fr_stem.yaml",
        "documents": [{**OPTIONS, **ABOUT, "sample_id": "a", "question": " 1 + 1? ", "answer": "D"}],
    },
    "mmmlu": {
        "task": "mmmlu",
        "language": "zh",
        "path": "openai-mmmlu/default/mmmlu_zh_cn_anatomy.yaml",
        "documents": [
            {
                "Question": " 1 + 1? ",
                "A": "1",
                "B": "2",
                "C": "3",
                "D": "4",
                "Answer": "B",
                "Subject": "anatomy",
            }
        ],
    },
    "include": {
        "task": "include",
        "language": "fr",
        "path": "include/default/French/include_base_44_french_stem.yaml",
        "documents": [{**OPTIONS, **PLACE, "question": " 1 + 1? ", "answer": 1}],
    },
    "afrimmlu": {
        "task": "afrimmlu",
        "language": "sw",
        "path": "afrimmlu/direct/prompt_1/afrimmlu_direct_swa.yaml",
        "documents": [{"subject": "law", "question": "1 + 1?", "choices": CHOICES, "answer": "B"}],
    },
    "afrixnli": {
        "task": "afrixnli",
        "language": "sw",
        "path": "afrixnli/direct/prompt_1/afrixnli_swa.yaml",
        "documents": [{**PAIR, "label": label} for label in (0, 1, 2)],
        "choices": NLI,
    },
    **{
        f"afrixnli-{code}": {
            "task": "afrixnli",
            "language": code,
            "preset": "native",
            "path": f"afrixnli/anli prompt/native-direct/afrixnli_native_direct_{name}.yaml",
            "documents": [{**PAIR, "label": label} for label in (0, 1, 2)],
            "choices": NLI,
        }
        for code, name in (("ha", "hau"), ("sw", "swa"), ("am", "amh"), ("yo", "yor"), ("en", "eng"))
    },
    "indicxnli": {
        "task": "indicxnli",
        "language": "gu",
        "path": "indicxnli/indicxnli_gu.yaml",
        "documents": [{**PAIR, "label": label} for label in (0, 1, 2)],
        "choices": NLI,
    },
    "cmmlu": {
        "task": "cmmlu",
        "language": "zh",
        "path": "cmmlu/cmmlu_agronomy.yaml",
        "documents": [{"Question": " 1 + 1? ", "A": "1", "B": " 2", "C": "3", "D": "4", "Answer": "B"}],
    },
    "kmmlu": {
        "task": "kmmlu",
        "language": "ko",
        "path": "kmmlu/default/kmmlu_accounting.yaml",
        "documents": [
            {
                "question": " 1 + 1? ",
                "A": "1",
                "B": "2",
                "C": "3",
                "D": "4",
                "answer": 2,
                "Category": "Accounting",
            }
        ],
    },
    "turkishmmlu": {
        "task": "turkishmmlu",
        "language": "tr",
        "path": "turkishmmlu/config/Biology.yaml",
        "documents": [{"question": " 1 + 1? ", "choices": ["1", "2", "3", "4", " 5"], "answer": "B"}],
    },
    "global_piqa": {
        "task": "global_piqa",
        "language": "fr-CA",
        "path": "global_piqa/nonparallel_cloze/fra_latn_cana.yaml",
        "documents": [{**SOLVED, "label": 1}],
    },
}


def asked(session: Session, case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return our requests of every document, and which is right, in the order of lm-eval's choices."""
    catalog = session.catalog
    spec = catalog.task(case["task"]).spec
    source = spec.source(case["language"], "test")
    assert source is not None
    assert source.hub is not None
    prompt = catalog.prompt(case["task"], case.get("preset", "lm_eval"))
    inherited = catalog.inherited_prompt(prompt)
    compiled = compile_prompt(prompt, case["language"], policy="fail", inherited=inherited)
    kind = session.registry.kinds.get(spec.kind)
    assert kind.prompt_item is not None
    columns = wanted_columns({"columns": columns_option(source.hub.columns) or ""})
    context = ReadContext.of_test(spec, case["language"], source.hub.label_map or {})
    found = []
    for document in case["documents"]:
        row = Row(fields=pick(document, columns, "made-up"), path="made-up", line=1)
        item = kind.prompt_item(kind.example(row, 1, context))
        ranked = compiled.ranking(item)
        texts = dict(zip(item.choices, ranked.continuations, strict=True))
        order = list(case.get("choices", item.choices))
        requests = [[ranked.context, texts[name]] for name in order]
        found.append({"requests": requests, "right": order.index(item.gold)})
    return found


def golden() -> dict[str, list[dict[str, Any]]]:
    return by_name(GOLDEN.read_text(encoding="utf-8"))


def by_name(text: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        record = json.loads(line)
        found.setdefault(record.pop("name"), []).append(record)
    return found


@pytest.mark.parametrize("name", CASES)
def test_prompts_and_answers_are_lm_evals(name: str, shipped: Session) -> None:
    assert asked(shipped, CASES[name]) == golden()[name]


@pytest.mark.thorough
def test_lm_eval_still_asks_what_the_golden_file_says(tmp_path: Path) -> None:
    python = PEERS / "bin" / "python"
    if not python.exists():
        pytest.skip(f"lm-eval is not installed in {PEERS.name}: make .venv-peers/bin/lm-eval")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(python), str(HERE / "peer_hub_prompts.py")],
        input=json.dumps(
            {name: {key: case[key] for key in ("path", "documents")} for name, case in CASES.items()}
        ),
        capture_output=True,
        encoding="utf-8",
        env=environment,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    if os.environ.get("HARNESS_UPDATE_GOLDEN"):
        GOLDEN.write_text(done.stdout, encoding="utf-8")
    assert by_name(done.stdout) == golden()
