"""Items that one system has right in one language and wrong in another one, or in two versions of one language."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import UnknownNameError, UsageError
from harness.progress import show_step
from harness.specs.schema import TRANSLATED
from harness.statistics import draw_codes, mcnemar, seed_of, sign_flip_p
from harness.statistics.contrast import paired_contrasts
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitItem:
    """An item that is right in one of the two languages only."""

    language: ItemRecord
    against: ItemRecord
    is_lost: bool
    """Whether it is the language that has it wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePair:
    """The items of one task that a system answered in both languages."""

    task: str
    """With its view."""
    kind: str
    system: str
    language: str
    against: str
    both: int
    """Right in both."""
    lost: int
    """Right in the other language only."""
    gained: int
    """Right in the language only."""
    neither: int
    difference: float
    """The share that is right in the language minus that in the other one."""
    ci: tuple[float, float] | None
    ci_method: str | None
    p: float
    test: str
    """McNemar's exact test; where items share clusters, random signs of whole clusters."""
    items: tuple[SplitItem, ...]
    """In the order of the language's records."""
    against_language: str
    """The language of the texts on the other side."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with the counts, then one for every item that is right in one language only."""
        head = {name: getattr(self, name) for name in ("task", "system", "language", "against")}
        numbers = ("both", "lost", "gained", "neither", "difference", "ci", "ci_method", "p", "test")
        rows = [{"kind": "language_pair", **head, **{name: getattr(self, name) for name in numbers}}]
        for item in self.items:
            sides = {"language": item.language, "against": item.against}
            row = {"kind": "split_item", **head, "id": item.language.id}
            row["right_in"] = self.against if item.is_lost else self.language
            row["inputs"] = {name: dict(record.fields) for name, record in sides.items()}
            row["gold"] = {name: record.gold for name, record in sides.items()}
            row["answer"] = {name: record.answer for name, record in sides.items()}
            rows.append(row)
        return rows


def language_pairs(
    runs: Sequence[Run], languages: Sequence[str], against: str, *, tasks: Sequence[str] = ()
) -> tuple[list[LanguagePair], list[str]]:
    """Return the languages of every system against another one, and notes on what was skipped.

    Items count where both languages have the id and it is known whether the answer is right: a full score, or the gold
    answer for set-level metrics.

    Args:
        runs: The runs.
        languages: Codes; none takes all that a task has.
        against: The code of the other language, such as ``en``.
        tasks: Names or globs to restrict it to; none takes all.

    Raises:
        UsageError: For unknown names, and where no parallel task has both languages.
    """
    selected = [*languages, against] if languages else []
    all_pairs: list[LanguagePair] = []
    notes: list[str] = []
    for group in group_systems(runs, tasks=tasks, languages=selected, least=1):
        for system in group.systems:
            codes = [code for code in system.cells if code != against]
            reason = _reason(system, codes, against)
            if reason is not None:
                notes.append(f"{group.title}, {system.name}: {reason}.")
                continue
            show_step(f"Languages: {group.title}, {system.name}")
            records = {record.id: record for record in system.run.records(system.cells[against])}
            for code in codes:
                side = {} if code in system.spec.unpaired else records
                pair = _pair(group, system, code, against, side, against)
                all_pairs += [pair] if pair else []
                if pair is None:
                    notes.append(
                        f"{group.title} {code}: no item that is right or wrong has its id in {against} too."
                    )
    if not all_pairs:
        raise UsageError(
            f"No parallel task has items in {' or '.join(languages) or 'a language'} and {against}. "
            f"{' '.join(notes)}".strip(),
            hint="Evaluate the task in both languages in one run.",
        )
    return all_pairs, notes


def version_pairs(
    runs: Sequence[Run], languages: Sequence[str], variants: Sequence[str], *, tasks: Sequence[str] = ()
) -> tuple[list[LanguagePair], list[str]]:
    """Return the human translation of every language against its translated versions, item by item, and notes.

    The examples of Table 8 in "Translation Errors ..." (EACL 2024) are items that are right in `te` alone. Both sides
    are by the same model and fit, under the same conditions.

    Args:
        runs: The runs.
        languages: Codes; none takes all that a task has.
        variants: Of `tt`, `te` and `bt`.
        tasks: Names or globs to restrict it to; none takes all.

    Raises `UsageError` for unknown names, and where no language has both versions.
    """
    for name in variants:
        if name not in TRANSLATED:
            raise UnknownNameError("translated version", name, TRANSLATED)
    groups = group_systems(runs, tasks=tasks, languages=languages, least=1)
    human = [group for group in groups if group.view.get("variant") not in TRANSLATED]
    sides = {(group.task, json.dumps(group.view, sort_keys=True)): group.systems for group in groups}
    pairs = []
    for group in human:
        for system, variant in itertools.product(group.systems, variants):
            view = json.dumps({**group.view, "variant": variant}, sort_keys=True)
            for version, code in itertools.product(sides.get((group.task, view), ()), system.cells):
                cell = version.cells.get(code)
                if cell is None or _conditions(system, code) != _conditions(version, code):
                    continue
                records = {record.id: record for record in version.run.records(cell)}
                title = f"{variant} ({cell.view.get('translator', '')})"
                read = code if variant == "te" else str(system.spec.source or "en")
                pair = _pair(group, system, code, title, records, read)
                pairs += [pair] if pair else []
    if not pairs:
        raise UsageError(
            f"No language of these runs has the human translation and {' or '.join(variants)}.",
            hint="Evaluate them together: harness eval --variants zs,tt,te,bt --translator NAME ...",
        )
    return pairs, []


def _conditions(system: System, code: str) -> tuple[object, ...]:
    """Return the conditions that both versions of a language must share."""
    cell = system.cells[code]
    view = {name: value for name, value in cell.view.items() if name not in {"variant", "translator"}}
    return (system.run.manifest.model, cell.protocol, cell.method, cell.seed, cell.fit, sorted(view.items()))


def _reason(system: System, codes: Sequence[str], against: str) -> str | None:
    """Return why the languages of a system cannot be paired."""
    if not system.spec.parallel or against in system.spec.unpaired:
        return "not parallel, so an id is another item in every language"
    if against not in system.cells:
        return f"not finished in {against}"
    return None if codes else f"finished in {against} only"


def _pair(
    group: SystemGroup,
    system: System,
    code: str,
    against: str,
    against_records: Mapping[str, ItemRecord],
    against_language: str,
) -> LanguagePair | None:
    """Return the pair of two languages; None where they have no item in common."""
    records = (record for record in system.run.records(system.cells[code]) if record.id in against_records)
    shared = ((record, against_records[record.id]) for record in records)
    both = [pair for pair in shared if all(record.correct is not None for record in pair)]
    if not both:
        return None
    marks = np.array([[record.correct for record in pair] for pair in both], dtype=np.float64).T
    count, signs = len(both), marks[0] - marks[1]
    lost, gained, right = (int(np.sum(mask)) for mask in (signs == -1, signs == 1, marks.sum(axis=0) == 2))
    ids = [record.id for record, _ in both]
    clusters = [[record.cluster for record in side] for side in zip(*both, strict=True)]
    codes = draw_codes([(code, ids, clusters[0]), (against, ids, clusters[1])], linked=True)
    strata = np.repeat(np.arange(2), count)
    [contrast] = paired_contrasts(marks.reshape(1, -1), strata, codes, np.array([[1.0, -1.0]]))
    p, test = mcnemar(lost, gained), "McNemar, exact"
    if int(codes.max()) + 1 < count:
        p = sign_flip_p(signs, codes[:count], seed=seed_of(group.title, code, against))
        test = "random signs of clusters"
    split = [(record, pair) for record, pair in both if record.correct != pair.correct]
    return LanguagePair(
        task=group.title,
        kind=system.spec.kind,
        system=system.name,
        language=code,
        against=against,
        against_language=against_language,
        both=right,
        lost=lost,
        gained=gained,
        neither=count - lost - gained - right,
        difference=contrast.value,
        ci=contrast.interval.ends,
        ci_method=contrast.interval.method,
        p=p,
        test=test,
        items=tuple(
            SplitItem(language=record, against=pair, is_lost=bool(pair.correct)) for record, pair in split
        ),
    )
