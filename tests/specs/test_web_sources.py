"""Sources on the web: what a spec may say, where it leads, and what a lock keeps of it."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.data.origin import Origin
from harness.data.resolve import DataRef
from harness.data.sources import DataFinder, Pins, data_ref
from harness.errors import UsageError
from harness.planning.lock_file import Lock, check_locked, read_lock
from harness.planning.plan import Plan
from harness.planning.planner import make_plan, resolve_model
from harness.planning.resolution import resolve_tasks
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import Session, open_session
from harness.specs.selection import select
from harness_hub import web
from tests.harness_hub.web_stand_in import Web, serving

SPEC = """\
task: mine
kind: sequence_classification
version: 1
labels: [x, y]
inputs: [text]
metrics: [accuracy]
codes:
  sum: {{en: "{en_sum}", default: ""}}
transfer: {{stages: [mine]}}
splits:
  train: {{reader: tsv, columns: [text, label], web: {{url: "https://example.org/train.tsv"}}}}
  test:
    reader: tsv
    columns: [text, label]
    web: {{url: "https://example.org/{{language}}.tsv", sha256: "{{sum}}"}}
languages: {{en: {{provenance: native}}, sw: {{provenance: native}}}}
"""
TEXT = b"one\tx\ntwo\ty\n"
DIGEST = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Web]:
    monkeypatch.setattr(web, "_failures", {})
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    files = {f"example.org/{code}.tsv": TEXT for code in ("en", "sw", "train")}
    yield from serving(monkeypatch, files)


def session_of(folder: Path, en_sum: str = "") -> Session:
    file = folder / "specs" / "mine.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(SPEC.format(en_sum=en_sum), encoding="utf-8")
    return open_session((file.parent,))


def planned(session: Session, cache: Path, pins: Pins | None = None) -> Plan:
    options = data_options(["hub"])
    config = RunConfig(tasks=("mine",), model="baseline:majority", data=options)
    finder = DataFinder(options, session.registry, cache, pins=pins)
    model = resolve_model(session.registry.adapters, config.model, {})
    return make_plan(config, session.registry, session.catalog, finder, model)


def reference(session: Session, task: str, code: str, split: str = "test") -> DataRef:
    """Return where a split is, with what the spec names for the task's other languages."""
    origin = Origin.of(session.catalog.task(task))
    source = (
        origin.source(code, split) if split != "candidates" else session.catalog.task(task).spec.pool_source
    )
    assert source is not None
    table = origin.languages
    others = [table.get(other) for other in origin.spec.languages]
    return data_ref(source, owner=task, language=table.get(code), split=split, folder=None, others=others)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("https://", "http://"), "url"),
        (("https://example.org/{language}.tsv", "https://example.org"), "url"),
        (('"{sum}"', "abc"), "sha256"),
        (('"{sum}"', "0" * 32), "sha256"),
        (('"{sum}"', '"{smu}"'), "smu"),
        (("{language}.tsv", "{langauge}.tsv"), "langauge"),
        (('"{sum}"}', '"{sum}", member: ../x}'), "member|web"),
        (('"{sum}"}', '"{sum}", member: "a/{b}"}'), "'b'"),
        (('"{sum}"}', '"{sum}", reader: tvs}'), "tvs"),
        (('"{sum}"}', '"{sum}", md5: x}'), "md5"),
        (("    web:", "    hub: {path: a/b, split: test}\n    web:"), "exclude each other"),
    ],
)
def test_faults_of_a_source_are_reported(
    problems: Callable[[str], list[str]], change: tuple[str, str], problem: str
) -> None:
    text = SPEC.format(en_sum=DIGEST)
    assert problems(text) == []
    changed = text.replace(*change)
    assert changed != text
    assert re.search(problem, "\n".join(problems(changed)))


def test_a_first_checksum_is_locked_and_then_kept(mirror: Web, tmp_path: Path) -> None:
    session, cache = session_of(tmp_path, en_sum=DIGEST), tmp_path / "cache" / "data"
    finder = DataFinder(data_options(["hub"]), session.registry, cache)
    resolution, _ = resolve_tasks(session.catalog, finder, select(session.catalog, ["mine"]))
    downloads = {entry.language: entry.web for entry in resolution.data if entry.split == "test"}
    assert {code: web and (web.sha256, web.first_use) for code, web in downloads.items()} == {
        "en": (DIGEST, False),
        "sw": (DIGEST, True),
    }
    path = tmp_path / "lock.json"
    path.write_text(Lock.of(resolution).to_text(), encoding="utf-8")
    locked = read_lock(path)
    check_locked(planned(session, cache, locked.pins), locked, session.catalog)

    mirror.files["example.org/sw.tsv"] = newer = TEXT + b"three\tx\n"
    other = tmp_path / "other"
    unpinned = planned(session, other)
    assert [cell.test.files.pinned for cell in unpinned.cells] == [True, False]
    with pytest.raises(UsageError, match=hashlib.sha256(newer).hexdigest()):
        check_locked(unpinned, locked, session.catalog)
    web._failures.clear()
    pinned = planned(session, tmp_path / "third", locked.pins)
    assert [cell.language.code for cell in pinned.cells] == ["en"]
    [skipped] = pinned.skipped
    assert DIGEST in skipped.reason


@pytest.mark.usefixtures("mirror")
def test_the_command_says_which_checksum_is_new(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    session_of(tmp_path, en_sum=DIGEST)
    given = ["--tasks-from", tmp_path / "specs", "--data", "hub", "--output", tmp_path / "lock.json"]
    status, out, _ = cli("lock", "mine", *given)
    assert status == 0
    new = [line for line in out.splitlines() if DIGEST in line]
    assert [line.split()[-3].rpartition("/")[2] for line in new] == ["train.tsv", "sw.tsv"]


@pytest.mark.parametrize("fault", ["gone", "other", "offline", "no mirror"])
def test_what_cannot_be_had_is_skipped(
    mirror: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    session = session_of(tmp_path, en_sum=DIGEST)
    if fault == "gone":
        del mirror.files["example.org/en.tsv"]
    elif fault == "other":
        mirror.files["example.org/en.tsv"] = b"other"
    elif fault == "offline":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    else:
        monkeypatch.setenv("HARNESS_WEB_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    plan = planned(session, tmp_path / "cache" / "data")
    reasons = {item.language: item.reason for item in plan.skipped}
    both = fault in {"offline", "no mirror"}
    assert set(reasons) == ({"en", "sw"} if both else {"en"})
    assert all("https://example.org/" in reason and "--data DIR" in reason for reason in reasons.values())


# The shipped tasks -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped() -> Session:
    return open_session()


def test_every_language_of_ud_pos_has_its_release(shipped: Session) -> None:
    new = {"lt", "pl", "ro", "uk", "wo"}
    for code in shipped.catalog.task("udpos").spec.languages:
        ref = reference(shipped, "udpos", code)
        assert ref.hub is None
        assert ref.web is not None
        release, handle = ("2.7", "1-3424") if code in new else ("2.5", "1-3105")
        assert ref.web.url.endswith(f"11234/{handle}/ud-treebanks-v{release}.tgz")
        assert ref.web.checksum is not None
        [pattern] = ref.web.members
        assert pattern.startswith(f"ud-treebanks-v{release}/*/{code}_")
        assert len(ref.web.further) == (5 if code in new else 33)
        assert ref.web.options == {"tokens": "fused", "language": code}


def test_german_is_what_the_benchmark_takes(shipped: Session) -> None:
    from harness_hub.web import _matches

    source = reference(shipped, "udpos", "de").web
    assert source is not None
    path = "ud-treebanks-v2.5/UD_German-{}/de_{}-ud-test.conllu"
    matches = {
        name: _matches(path.format(name.upper(), name), source.members)
        for name in ("gsd", "hdt", "pud", "lit")
    }
    assert matches == {"gsd": True, "hdt": True, "pud": True, "lit": False}


def test_the_checksums_of_lareqa_are_those_of_the_released_files(shipped: Session) -> None:
    sums = Path(__file__).parents[2] / "task_specs" / "harness_task_specs" / "SHA256SUMS"
    lines = [line.split() for line in sums.read_text("utf-8").splitlines() if "lareqa/x" in line]
    known = {path: digest for digest, path in lines}
    given = {}
    for code in shipped.catalog.task("lareqa").spec.languages:
        questions, sentences = (
            reference(shipped, "lareqa", code, split).web for split in ("test", "candidates")
        )
        assert questions is not None
        assert sentences is not None
        assert (questions.url, questions.checksum) == (sentences.url, sentences.checksum)
        given[f"lareqa/xquad-r/{code}.json"] = questions.checksum
    assert {path: digest for path, digest in given.items() if digest} == {
        path: f"sha256:{digest}" for path, digest in known.items()
    }
    assert len(given) == 11


def test_every_task_of_the_suite_has_a_source_in_all_languages(shipped: Session) -> None:
    """Test sets, pools, and what models are trained on: none needs a folder that is filled by hand."""
    for item in select(shipped.catalog, ["xtreme_r"]):
        spec = item.entry.spec
        for code in item.languages:
            ref = reference(shipped, spec.task, code)
            assert (ref.hub or ref.web) is not None
        assert spec.pool_source is None or spec.pool_source.web is not None
        assert spec.transfer is not None
        for stage in spec.transfer.stages:
            train = Origin.named(stage, shipped.catalog).source("en", "train")
            assert train is not None
            assert (train.hub or train.web) is not None
