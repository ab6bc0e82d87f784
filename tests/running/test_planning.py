from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CapabilityError, UnknownNameError, UsageError
from harness.kinds.methods import choose_pairings
from harness.models.capabilities import HEAD_CAPABILITY, Capability, Head, ModelDescription
from harness.planning.plan import Plan, require_cells
from harness.running.session import Session

MakePlan = Callable[..., Plan]
DataFolder = Callable[[Mapping[str, str | bytes]], Path]

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


def test_a_bare_encoder_is_fine_tuned_and_then_predicts_with_its_head(session: Session) -> None:
    for task, head in (
        ("xnli", Head.CLASSIFICATION),
        ("udpos", Head.TAGGING),
        ("xquad", Head.SPAN_EXTRACTION),
    ):
        assert _pairings(session, task, BARE, head) == ([("zero_shot_transfer", "head")], [])


def test_retrieval_is_done_with_the_tuned_encoder_and_with_the_frozen_one(session: Session) -> None:
    expected = [("zero_shot_transfer", "embed"), ("frozen", "embed")]
    assert _pairings(session, "tatoeba", BARE, Head.SPAN_EXTRACTION) == (expected, [])
    only_embeds = frozenset({Capability.EMBEDS})
    pairings, reasons = _pairings(session, "tatoeba", only_embeds, Head.SPAN_EXTRACTION)
    assert (pairings, reasons) == ([("frozen", "embed")], [])


def test_a_suite_says_how_a_model_is_trained_where_the_task_says_otherwise(session: Session) -> None:
    in_language = _pairings(session, "xnli", BARE, Head.CLASSIFICATION, suite_protocols=["in_language"])
    assert in_language == ([("in_language", "head")], [])
    for suites in (["zero_shot_transfer", "in_language"], ["frozen"], ["prompted"], []):
        own = _pairings(session, "xnli", BARE, Head.CLASSIFICATION, suite_protocols=suites)
        assert own == ([("zero_shot_transfer", "head")], [])
    asked: dict[str, Any] = {"protocols": ["zero_shot_transfer"], "suite_protocols": ["in_language"]}
    assert _pairings(session, "xnli", BARE, Head.CLASSIFICATION, **asked)[0] == [
        ("zero_shot_transfer", "head")
    ]
    prompted = frozenset({Capability.SCORES_CONTINUATIONS})
    found = _pairings(session, "xnli", prompted, Head.CLASSIFICATION, suite_protocols=["in_language"])
    assert found[0] == [("prompted", "rank")]


def test_a_model_that_is_prompted_is_fine_tuned_on_request_only(session: Session) -> None:
    offers = frozenset({Capability.FITS, Capability.SCORES_CONTINUATIONS})
    prompted: tuple[list[tuple[str, str]], list[str]] = ([("prompted", "rank")], [])
    assert _pairings(session, "xnli", offers, Head.CLASSIFICATION, fits_on_request=True) == prompted
    for asked in (False, True):
        fitted = _pairings(
            session,
            "xnli",
            offers,
            Head.CLASSIFICATION,
            fits_on_request=asked,
            protocols=("zero_shot_transfer",),
        )
        assert fitted == ([("zero_shot_transfer", "head")], [])


def test_a_checkpoint_that_is_already_fine_tuned_is_evaluated_as_it_is(session: Session) -> None:
    offers = BARE | {Capability.CLASSIFIES}
    assert _pairings(session, "xnli", offers, Head.CLASSIFICATION) == ([("frozen", "head")], [])
    # Asked to, it is fine-tuned further; for another kind of task it is a bare encoder.
    pairings, _ = _pairings(
        session, "xnli", offers, Head.CLASSIFICATION, protocols=("zero_shot_transfer", "frozen")
    )
    assert pairings == [("zero_shot_transfer", "head"), ("frozen", "head")]
    assert _pairings(session, "udpos", offers, Head.TAGGING)[0] == [("zero_shot_transfer", "head")]


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
        (
            BARE,
            {"protocols": ("prompted",)},
            "'prompted' needs Generates or ScoresContinuations; a:r offers Embeds, Fits",
        ),
        (
            BARE,
            {"method_name": "embed"},
            "the method 'embed' does not serve the protocol 'zero_shot_transfer' of task 'xnli'",
        ),
    ],
)
def test_what_a_model_cannot_do_has_a_reason(
    session: Session, offers: frozenset[Capability], chosen: dict[str, Any], reason: str
) -> None:
    assert _pairings(session, "xnli", offers, Head.CLASSIFICATION, **chosen) == ([], [reason])


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
    def key(**settings: Any) -> str:
        [fit] = make_plan("xnli:de", **{"recipe": "quick", **settings}).fits
        return fit.key

    keys = [
        key(),
        key(recipe="xtreme_r"),
        key(seeds=(1,)),
        key(train_limit=10),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


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
    assert [skip.reason.split(" in ")[0] for skip in plan.skipped] == [
        "The embedded sample has no 'tydiqa'" for _ in range(8)
    ]
    plan = make_plan("xnli:de", protocols=("in_language",))
    assert [skip.reason for skip in plan.skipped] == [
        "The training set 'mnli' has no training split in 'de'. It has: en."
    ]


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
    assert {skip.language: skip.reason for skip in plan.skipped} == {
        "sw": "task 'xquad' has no Swahili (sw)",
        "yo": "task 'xquad' has no Yoruba (yo)",
        "th": "The embedded sample has no 'xquad' in 'th' (test): there is no xquad/th.jsonl. "
        "Run with --data hub or --data DIR.",
    }


def test_a_plan_without_cells_is_rejected_with_its_first_reasons(make_plan: MakePlan) -> None:
    plan = make_plan("xquad:sw+yo")
    with pytest.raises(CapabilityError) as caught:
        require_cells(plan)
    assert str(caught.value) == (
        "Nothing is left to run. (1) task 'xquad' has no Swahili (sw) (2) task 'xquad' has no Yoruba (yo). "
        "If a file adds it, give that file or its folder with --tasks-from. "
        "Run 'harness new language sw --task xquad' to start adding it."
    )
    plan = make_plan("xnli:de", languages=("sw",))
    with pytest.raises(UsageError, match=r"^Nothing is left to run\. No language is both"):
        require_cells(plan)
    require_cells(make_plan("xnli:de"))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"limit": 0}, UsageError, "--limit "),
        ({"train_limit": -1}, UsageError, "--train-limit "),
        ({"languages": ("xx",)}, UnknownNameError, "No language named 'xx'."),
        (
            {"train_languages": ("enz",)},
            UnknownNameError,
            "No language named 'enz'. Did you mean 'en'",
        ),
        ({"recipe": "quik"}, UnknownNameError, "No recipe named 'quik'. Did you mean 'quick'?"),
        ({"method": "haed"}, UnknownNameError, "No method named 'haed'. Did you mean 'head'?"),
        (
            {"model": "baselin:majority"},
            UnknownNameError,
            "No adapter named 'baselin'. Did you mean 'baseline'?",
        ),
        (
            {"model": "baseline:majorty"},
            UnknownNameError,
            "No baseline named 'majorty'. Did you mean 'majority'",
        ),
        (
            {"model": "majority"},
            UsageError,
            "The model 'majority' is not of the form ADAPTER:NAME_OR_PATH. Did you mean 'baseline:majority'",
        ),
        (
            {"options": {"ngram": "3"}},
            UnknownNameError,
            "No option of the adapter 'baseline' named 'ngram'. Did",
        ),
        ({"options": {"ngrams": "x"}}, UsageError, "The option 'ngrams' of the adapter 'baseline' got 'x'"),
        ({"options": {"ngrams": "99"}}, UsageError, "The option 'ngrams' of the adapter 'baseline' got '99'"),
    ],
)
def test_impossible_settings_are_rejected(
    make_plan: MakePlan, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        make_plan("xnli:de", **settings)
    assert str(caught.value).startswith(message)


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


@pytest.mark.parametrize("task", ["lareqa", "mewslix"])
def test_a_model_that_embeds_is_still_fine_tuned_for_a_dual_encoder_task(session: Session, task: str) -> None:
    """Every encoder embeds: that does not show that it was fine-tuned for the task, as a classifier's head does."""
    fitted = [("zero_shot_transfer", "embed")]
    assert _pairings(session, task, BARE, Head.DUAL_ENCODER) == (fitted, [])
    frozen = _pairings(session, task, BARE, Head.DUAL_ENCODER, protocols=("frozen",))
    assert frozen == ([("frozen", "embed")], [])
    only_embeds = frozenset({Capability.EMBEDS})
    assert _pairings(session, task, only_embeds, Head.DUAL_ENCODER) == ([("frozen", "embed")], [])


def test_a_chooser_is_evaluated_as_it_is_and_a_bare_encoder_learns_to_choose(session: Session) -> None:
    offers = BARE | {Capability.CHOOSES_BEST}
    assert _pairings(session, "xcopa", offers, Head.MULTIPLE_CHOICE) == ([("frozen", "head")], [])
    assert _pairings(session, "xcopa", BARE, Head.MULTIPLE_CHOICE) == ([("zero_shot_transfer", "head")], [])
    classifier = BARE | {Capability.CLASSIFIES}
    learns = [("zero_shot_transfer", "head")]
    assert _pairings(session, "xcopa", classifier, Head.MULTIPLE_CHOICE) == (learns, [])
