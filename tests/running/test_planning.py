from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from harness.errors import CapabilityError, UnknownNameError, UsageError
from harness.kinds.methods import choose_pairings
from harness.models.capabilities import HEAD_CAPABILITY, Capability, Head, ModelDescription
from harness.planning.plan import Plan, require_cells
from harness.running.session import Session

from .conftest import DataFolder, MakePlan

BARE = frozenset({Capability.FITS, Capability.EMBEDS})
AFTER_FIT = {head: BARE | {capability} for head, capability in HEAD_CAPABILITY.items()}


def _pairings(
    session: Session,
    task: str,
    offers: frozenset[Capability],
    head: Head | None,
    *,
    fits_on_request: bool = False,
    **chosen: Any,
) -> tuple[list[tuple[str, str]], list[str]]:
    spec = session.catalog.task(task).spec
    table = session.registry.methods
    own = [table.get(name) for name in table.names if table.plugin_of(name) == "core"]
    methods = [method for method in own if method.kind == spec.kind]
    model = ModelDescription(
        adapter="a",
        ref="r",
        offers=offers,
        after_fit=AFTER_FIT if Capability.FITS in offers else {},
        fits_on_request=fits_on_request,
    )
    pairings, reasons = choose_pairings(spec, methods, model, head=head, **chosen)
    return [(pairing.protocol, pairing.method.name) for pairing in pairings], reasons


EMBEDS = frozenset({Capability.EMBEDS})
CLASSIFIER = BARE | {Capability.CLASSIFIES}
CHOOSER = BARE | {Capability.CHOOSES_BEST}
DECODER = frozenset({Capability.FITS, Capability.SCORES_CONTINUATIONS})
RANKER = frozenset({Capability.SCORES_CONTINUATIONS})
FITTED, FROZEN, IN_LANGUAGE = ("zero_shot_transfer", "head"), ("frozen", "head"), ("in_language", "head")
FITTED_VECTORS, FROZEN_VECTORS = ("zero_shot_transfer", "embed"), ("frozen", "embed")
PAIRINGS: list[tuple[str, frozenset[Capability], Head, dict[str, Any], list[tuple[str, str]]]] = [
    # A bare encoder is fine-tuned, and predicts with its head.
    ("xnli", BARE, Head.CLASSIFICATION, {}, [FITTED]),
    ("udpos", BARE, Head.TAGGING, {}, [FITTED]),
    ("xquad", BARE, Head.SPAN_EXTRACTION, {}, [FITTED]),
    ("xcopa", BARE, Head.MULTIPLE_CHOICE, {}, [FITTED]),
    # A checkpoint that is already fine-tuned is evaluated as it is; for another task it is a bare encoder.
    ("xnli", CLASSIFIER, Head.CLASSIFICATION, {}, [FROZEN]),
    ("xnli", CLASSIFIER, Head.CLASSIFICATION, {"protocols": (FITTED[0], "frozen")}, [FITTED, FROZEN]),
    ("udpos", CLASSIFIER, Head.TAGGING, {}, [FITTED]),
    ("xcopa", CLASSIFIER, Head.MULTIPLE_CHOICE, {}, [FITTED]),
    ("xcopa", CHOOSER, Head.MULTIPLE_CHOICE, {}, [FROZEN]),
    # Retrieval is done with the tuned encoder and with the frozen one.
    ("tatoeba", BARE, Head.SPAN_EXTRACTION, {}, [FITTED_VECTORS, FROZEN_VECTORS]),
    ("tatoeba", EMBEDS, Head.SPAN_EXTRACTION, {}, [FROZEN_VECTORS]),
    # Every encoder embeds: that does not show that it was fine-tuned for the task.
    *(
        (task, *row)
        for task in ("lareqa", "mewslix")
        for row in (
            (BARE, Head.DUAL_ENCODER, {}, [FITTED_VECTORS]),
            (BARE, Head.DUAL_ENCODER, {"protocols": ("frozen",)}, [FROZEN_VECTORS]),
            (EMBEDS, Head.DUAL_ENCODER, {}, [FROZEN_VECTORS]),
        )
    ),
    # A suite says how a model is trained where the task says otherwise.
    ("xnli", BARE, Head.CLASSIFICATION, {"suite_protocols": ["in_language"]}, [IN_LANGUAGE]),
    *(
        ("xnli", BARE, Head.CLASSIFICATION, {"suite_protocols": protocols}, [FITTED])
        for protocols in (["zero_shot_transfer", "in_language"], ["frozen"], ["prompted"], [])
    ),
    (
        "xnli",
        BARE,
        Head.CLASSIFICATION,
        {"protocols": ["zero_shot_transfer"], "suite_protocols": ["in_language"]},
        [FITTED],
    ),
    ("xnli", RANKER, Head.CLASSIFICATION, {"suite_protocols": ["in_language"]}, [("prompted", "rank")]),
    # A model that is prompted is fine-tuned on request only.
    ("xnli", DECODER, Head.CLASSIFICATION, {"fits_on_request": True}, [("prompted", "rank")]),
    *(
        ("xnli", DECODER, Head.CLASSIFICATION, {"fits_on_request": on, "protocols": (FITTED[0],)}, [FITTED])
        for on in (False, True)
    ),
]


@pytest.mark.parametrize(("task", "offers", "head", "chosen", "expected"), PAIRINGS)
def test_protocols_and_methods_follow_what_a_model_offers(
    session: Session,
    task: str,
    offers: frozenset[Capability],
    head: Head,
    chosen: dict[str, Any],
    expected: list[tuple[str, str]],
) -> None:
    assert _pairings(session, task, offers, head, **chosen) == (expected, [])


@pytest.mark.parametrize(
    ("offers", "chosen", "reason"),
    [
        (
            frozenset({Capability.GENERATES}),
            {"protocols": ("zero_shot_transfer",)},
            "'zero_shot_transfer' needs Fits and then Classifies or Generates; a:r offers Generates",
        ),
        (BARE, {"protocols": ("frozen",)}, "'frozen' needs Classifies; a:r offers Embeds, Fits"),
        (frozenset(), {"protocols": ("frozen",)}, "'frozen' needs Classifies; a:r offers nothing"),
        (BARE, {"protocols": ("prompted",)}, "'prompted' needs Generates or ScoresContinuations; a:r"),
        (BARE, {"method_name": "embed"}, "the method 'embed' does not serve the protocol"),
    ],
)
def test_what_a_model_cannot_do_has_a_reason(
    session: Session, offers: frozenset[Capability], chosen: dict[str, Any], reason: str
) -> None:
    pairings, [printed] = _pairings(session, "xnli", offers, Head.CLASSIFICATION, **chosen)
    assert (pairings, printed.startswith(reason)) == ([], True)


def test_a_task_without_stages_cannot_be_trained_for(session: Session) -> None:
    _, reasons = _pairings(session, "tatoeba", BARE, None)
    [reason] = reasons
    assert {"'tatoeba'", "'transfer',"} <= set(reason.split())


def test_one_squad_fit_serves_xquad_and_tatoeba(make_plan: MakePlan) -> None:
    plan = make_plan("xquad", "tatoeba", recipe="quick")
    assert [fit.title for fit in plan.fits] == ["squad (en), seed 42"]
    counts = Counter((cell.spec.task, cell.pairing.protocol, cell.fit is None) for cell in plan.cells)
    assert counts == {
        ("xquad", "zero_shot_transfer", False): 8,
        ("tatoeba", "zero_shot_transfer", False): 9,
        ("tatoeba", "frozen", True): 9,
    }
    groups = [(None if fit is None else fit.title, len(cells)) for fit, cells in plan.groups()]
    assert groups == [(None, 9), ("squad (en), seed 42", 17)]


def test_another_recipe_seed_or_limit_is_another_fit(make_plan: MakePlan) -> None:
    changes: list[dict[str, Any]] = [{}, {"recipe": "xtreme_r"}, {"seeds": (1,)}, {"train_limit": 10}, {}]
    plans = [make_plan("xnli:de", **{"recipe": "quick", **change}) for change in changes]
    keys = [fit.key for plan in plans for fit in plan.fits]
    assert len(set(keys)) == len(keys) - 1
    assert keys[0] == keys[-1]


def test_a_limit_is_reported(make_plan: MakePlan) -> None:
    assert make_plan("xnli:de").notes == ()
    for limit in (6, 1):
        [note] = make_plan("xnli:de", limit=limit).notes
        assert note.startswith(f"--limit {limit}: ")


def test_every_seed_has_its_cells_and_a_frozen_model_has_one(make_plan: MakePlan) -> None:
    plan = make_plan("xnli:de+sw", "tatoeba:de", seeds=(1, 2, 3))
    assert Counter((cell.title, cell.pairing.protocol, cell.seed) for cell in plan.cells) == {
        **{(f"xnli:{code}", "zero_shot_transfer", seed): 1 for code in ("de", "sw") for seed in (1, 2, 3)},
        **{("tatoeba:de", "zero_shot_transfer", seed): 1 for seed in (1, 2, 3)},
        ("tatoeba:de", "frozen", 1): 1,
    }
    assert [fit.seed for fit in plan.fits] == [1, 2, 3, 1, 2, 3]
    assert len({cell.digest for cell in plan.cells}) == len(plan.cells)


def test_in_language_trains_in_every_language_that_has_training_data(make_plan: MakePlan) -> None:
    plan = make_plan("udpos:en+de", protocols=("in_language",))
    assert [(cell.title, cell.fit and cell.fit.title) for cell in plan.cells] == [
        ("udpos:en", "udpos (en), seed 42")
    ]
    [skip] = plan.skipped
    assert (skip.language, skip.protocol) == ("de", "in_language")
    assert skip.reason.startswith("The embedded sample has no 'udpos' in 'de' (train)")
    plan = make_plan("tydiqa", protocols=("in_language",))
    assert [cell.language.code for cell in plan.cells] == ["en"]
    assert {skip.reason.split(" in ")[0] for skip in plan.skipped} == {"The embedded sample has no 'tydiqa'"}
    assert len(plan.skipped) == 8
    [skip] = make_plan("xnli:de", protocols=("in_language",)).skipped
    assert skip.reason.startswith("The training set 'mnli' has no training split in 'de'.")


def test_translated_training_data_needs_a_translator(make_plan: MakePlan) -> None:
    with pytest.raises(UsageError, match="The protocol 'translate_train' needs a translator"):
        make_plan("xnli:de", protocols=("translate_train",))
    plan = make_plan("xnli:de", protocols=("translate_train",), translators=("reverse",))
    assert [fit.title for fit in plan.fits] == ["mnli (de), translated by reverse, seed 42"]


def test_training_in_other_languages(make_plan: MakePlan) -> None:
    plan = make_plan("udpos:de", train_languages=("en", "sw"))
    assert [skip.reason.split(":")[0] for skip in plan.skipped] == [
        "The training set 'udpos' has no training split in 'sw'. It has"
    ]
    plan = make_plan("udpos:de", train_languages=("en",))
    assert [(fit.title, len(fit.stages[0].train)) for fit in plan.fits] == [("udpos (en), seed 42", 1)]


def test_the_dev_set_of_a_named_language_chooses_the_checkpoint(
    make_plan: MakePlan, data_folder: DataFolder
) -> None:
    row = "A man sleeps.\tA man is awake.\tcontradiction\n"
    folder = data_folder(
        {
            name: row
            for name in ("xnli/train-en.tsv", "xnli/dev-en.tsv", "xnli/dev-sw.tsv", "xnli/test-de.tsv")
        }
    )

    def chosen_on(**settings: Any) -> tuple[str, str] | None:
        [fit] = make_plan("xnli:de", data=folder, **settings).fits
        [stage] = fit.stages
        return stage.validation and (stage.validation[0], stage.validation[1].files.paths[0].name)

    assert chosen_on() == ("en", "dev-en.tsv")
    assert chosen_on(select_on="sw") == ("sw", "dev-sw.tsv")
    [cell] = make_plan("xnli:de", data=folder, select_on="sw").cells
    assert cell.view == {"select_on": "sw"}
    plan = make_plan("xnli:de", data=folder, select_on="ar")
    assert [skip.reason for skip in plan.skipped] == [
        "No dev set in 'ar' was found for 'mnli' or 'xnli', which --select-on ar needs."
    ]


def test_dev_sets_are_scored_marked_and_choose_no_checkpoint(
    make_plan: MakePlan, data_folder: DataFolder
) -> None:
    row = "A man sleeps.\tA man is awake.\tcontradiction\n"
    names = ("train-en", "dev-en", "dev-sw", "test-en", "test-sw", "test-de")
    folder = data_folder(
        {f"xnli/{name}.tsv": row for name in names}
        | {f"pawsx/{name}.tsv": "A b.\tB a.\t1\n" for name in ("train-en", "dev-en", "dev-ko", "test-ko")}
        | {f"udpos-xtreme/{name}.tsv": "Hund\tNOUN\n\n" for name in ("train-en", "dev-en", "dev-de")}
    )

    def planned(*tasks: str, **settings: Any) -> Plan:
        return make_plan(*tasks, data=folder, split="validation", **settings)

    for tasks, scored in (
        (["xnli:en+sw"], {"dev-en.tsv", "dev-sw.tsv"}),
        (["xnli:sw"], {"dev-sw.tsv"}),
        (["pawsx:ko"], {"dev-ko.tsv"}),
        (["udpos:de"], {"dev-de.tsv"}),
    ):
        plan = planned(*tasks)
        assert {path.name for cell in plan.cells for path in cell.test.files.paths} == scored
        assert {cell.view["split"] for cell in plan.cells} == {"validation"}
        assert not any(cell.test.files.stands_in for cell in plan.cells)
        [stage] = plan.fits[0].stages
        # Dev items of a task that is not parallel are others in every language.
        assert (stage.validation is None) == (tasks != ["udpos:de"])
    [skip] = planned("xnli:sw+de").skipped
    assert (skip.language, "dev-de.tsv" in skip.reason) == ("de", True)
    versions = planned("xnli:sw", variants=("zs", "tt", "te", "bt"), translators=("reverse",)).cells
    assert [cell.view.get("variant") for cell in versions] == [None, "tt", "te", "bt"]
    assert {path.name for cell in versions for path in cell.test.files.paths} == {"dev-sw.tsv", "dev-en.tsv"}
    test = make_plan("xnli:sw", data=folder).cells[0]
    assert test.digest != versions[0].digest and "split" not in test.view
    with pytest.raises(UsageError, match=r"--select-on sw .*--split validation"):
        planned("xnli:en", select_on="sw")


def test_a_language_to_select_on_chooses_where_the_recipe_keeps_the_last_checkpoint(
    make_plan: MakePlan, data_folder: DataFolder
) -> None:
    row = json.dumps(
        {"premise": "p", "choice1": "a", "choice2": "b", "question": "cause", "label": 0, "idx": 0}
    )
    names = [f"xcopa/data/sw/{split}.sw.jsonl" for split in ("test", "val")]
    folder = data_folder(
        dict.fromkeys([*names, "siqa/socialIQa_v1.4_trn.jsonl", "xcopa/copa-en/train-en.jsonl"], row)
    )
    for code in (None, "sw"):
        [fit] = make_plan("xcopa:sw", data=folder, select_on=code).fits
        assert {stage.settings.select_best for stage in fit.stages} == {code == "sw"}
        # Social IQa has other fields than XCOPA, whose dev set its stage cannot read.
        assert [stage.validation and stage.validation[0] for stage in fit.stages] == [None, code]


def test_a_dev_file_used_as_test_is_flagged_and_chooses_no_checkpoint(
    make_plan: MakePlan, data_folder: DataFolder
) -> None:
    sentence = "Hund\tNOUN\nbellt\tVERB\n\n"
    folder = data_folder(
        {f"udpos-xtreme/{name}.tsv": sentence for name in ("train-en", "dev-en", "dev-de")}
        | {"udpos/test-sw.tsv": sentence, "udpos/test-fr.tsv": sentence}
    )
    plan = make_plan("udpos:en+de+fr", data=folder)
    marks = {
        cell.language.code: (cell.test.files.split_used, cell.test.files.stands_in) for cell in plan.cells
    }
    assert marks == {"en": ("validation", True), "de": ("validation", True), "fr": ("test", False)}
    [fit] = plan.fits
    assert fit.stages[0].validation is None
    [note] = plan.notes
    assert note.startswith("udpos: its dev set in 'en' ")
    assert "the last checkpoint is kept" in note
    # Where English is not tested, its dev set is free to choose the checkpoint.
    plan = make_plan("udpos:de+fr", data=folder)
    validation = plan.fits[0].stages[0].validation
    assert validation is not None
    assert validation[1].files.paths == (folder / "udpos-xtreme/dev-en.tsv",)
    assert plan.notes == ()


def test_what_is_skipped_has_its_reason_and_the_next_step(make_plan: MakePlan) -> None:
    plan = make_plan("xquad:de+th+sw+yo")
    assert [cell.language.code for cell in plan.cells] == ["de"]
    reasons = {skip.language: skip.reason for skip in plan.skipped}
    assert "Run with --data hub or --data DIR." in reasons.pop("th")
    assert reasons == {
        "sw": "task 'xquad' has no Swahili (sw)",
        "yo": "task 'xquad' has no Yoruba (yo)",
    }


def test_a_plan_without_cells_is_rejected_with_its_first_reasons(make_plan: MakePlan) -> None:
    with pytest.raises(CapabilityError) as caught:
        require_cells(make_plan("xquad:sw+yo"))
    for part in ("(1) task 'xquad' has no Swahili", "(2) task 'xquad' has no Yoruba", "--tasks-from"):
        assert part in str(caught.value)
    assert "'harness new language sw --task xquad'" in str(caught.value)
    with pytest.raises(UsageError, match="No language is both"):
        require_cells(make_plan("xnli:de", languages=("sw",)))
    require_cells(make_plan("xnli:de"))


@pytest.mark.parametrize(
    ("settings", "near"),
    [
        ({"languages": ("xx",)}, None),
        ({"train_languages": ("enz",)}, "en"),
        ({"recipe": "quik"}, "quick"),
        ({"method": "haed"}, "head"),
        ({"model": "baselin:majority"}, "baseline"),
        ({"model": "baseline:majorty"}, "majority"),
        ({"options": {"ngram": "3"}}, "ngrams"),
    ],
)
def test_unknown_names_are_rejected(make_plan: MakePlan, settings: dict[str, Any], near: str | None) -> None:
    with pytest.raises(UnknownNameError) as caught:
        make_plan("xnli:de", **settings)
    assert near is None or caught.value.near[0] == near


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"limit": 0}, "--limit "),
        ({"train_limit": -1}, "--train-limit "),
        ({"model": "majority"}, "Did you mean 'baseline:majority'"),
        ({"options": {"ngrams": "x"}}, "'ngrams' of the adapter 'baseline' got 'x'"),
        ({"options": {"ngrams": "99"}}, "'ngrams' of the adapter 'baseline' got '99'"),
    ],
)
def test_impossible_settings_are_rejected(make_plan: MakePlan, settings: dict[str, Any], part: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_plan("xnli:de", **settings)
    assert part in str(caught.value)


def test_planning_with_a_baseline_imports_no_model_library() -> None:
    script = (
        "import sys\n"
        "from harness.running.session import prepare\n"
        "from harness.planning.run_config import RunConfig, data_options\n"
        "config = RunConfig(tasks=('xnli', 'xquad', 'udpos', 'tatoeba'), model='baseline:char-ngram',\n"
        "                   data=data_options(['sample']))\n"
        "assert len(prepare(config).plan.cells) > 30\n"
        "print(sorted({'torch', 'transformers', 'datasets', 'pandas', 'scipy', 'pyarrow'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
