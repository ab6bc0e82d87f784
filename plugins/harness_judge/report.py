"""What a run of a judge shows by language: verdicts that could be read, its metrics, and whether it is calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import Run, UsageError
from harness.reporting import percent, signed, signed_interval, uncertainty
from harness.storage import CellResult, MetricValue
from harness_judge.passport import CertifiedLanguage, JudgedItems, Passport, corrected_mean, words_of

KAPPA = "judge_kappa"
JUDGED = ("judge_rating", "judge_preference")
"""Metrics that are what the judge says; the others compare it with gold or with itself."""
Condition = tuple[str, str | None]
"""Language and method: a judge that ranks verdicts is not the one that writes them."""


def calibrations(runs: Sequence[Run], judged: Run) -> dict[Condition, MetricValue]:
    """Return the judge's kappa with gold by language and method, of its runs on tasks that have gold.

    One that several cells calibrate takes the lowest kappa.

    Raises:
        UsageError: Where a run is not by the same judge: adapter, model, revision and options.
    """
    found: dict[Condition, MetricValue] = {}
    for run in runs:
        if _judge(run) != _judge(judged):
            raise UsageError(
                f"The run {str(run.path)!r} is by another judge than {str(judged.path)!r}: the model, "
                "its revision or its options differ.",
                hint="Calibrate with the same --model and -o.",
            )
        for cell in _cells(run):
            kappa = cell.metrics.get(KAPPA)
            key = cell.language, cell.method
            if kappa and (key not in found or kappa.value < found[key].value):
                found[key] = kappa
    return found


def _judge(run: Run) -> tuple[Any, ...]:
    head = run.results.model
    return head.adapter, head.ref, head.revision, dict(run.manifest.config.get("options") or {})


def _cells(run: Run) -> list[CellResult]:
    cells = [
        cell
        for cell in run.cells
        if cell.status == "ok" and any(name.startswith("judge_") for name in cell.metrics)
    ]
    if not cells:
        raise UsageError(
            f"The run {str(run.path)!r} has no finished cells of a judge.",
            hint="Write a task with 'harness judge export', then evaluate it with the judge.",
        )
    return cells


def report_rows(
    run: Run,
    calibrated: Mapping[Condition, MetricValue],
    passports: Sequence[Passport] = (),
    *,
    uncertified: bool = False,
) -> list[dict[str, Any]]:
    """Return a row per cell; a language is calibrated where the interval of kappa is known and above 0.

    Args:
        run: A run of a judge.
        calibrated: Its kappa with gold.
        passports: Those of the judge; judged scores of their languages are corrected.
        uncertified: Whether languages without a passport show judged scores, too.
    """
    rows = []
    for cell in _cells(run):
        asked = cell.language, cell.method, cell.view, words_of(cell)
        entry = next(filter(None, (passport.of(*asked) for passport in passports)), None)
        withheld = [name for name in JUDGED if name in cell.metrics and entry is None and not uncertified]
        kappa = calibrated.get((cell.language, cell.method))
        rows.append(
            {
                "task": cell.task,
                "language": cell.language,
                "method": cell.method,
                "view": cell.view,
                "items": cell.n,
                "unreadable": cell.unparsed + cell.unanswered,
                "metrics": {
                    name: {"value": value.value, "ci": value.ci}
                    for name, value in cell.metrics.items()
                    if name not in withheld
                },
                "withheld": withheld,
                "corrected": None if entry is None else _corrected(run, cell, entry),
                "calibration": None if kappa is None else {"kappa": kappa.value, "ci": kappa.ci},
                "calibrated": kappa is not None and kappa.ci is not None and kappa.ci[0] > 0,
            }
        )
    return rows


def _corrected(run: Run, cell: CellResult, entry: CertifiedLanguage) -> dict[str, Any]:
    """Return the score that people would give, and how it was found (`harness_judge.passport`)."""
    items = JudgedItems.of(run, cell)
    labelled = set(entry.items)
    others = items.kept({item.id for item in items.records if item.inputs_digest not in labelled})
    estimate, weight = corrected_mean(entry.labelled, others.values, others.codes)
    return {
        "value": estimate.value,
        "ci": estimate.ci,
        "ci_method": "prediction-powered t",
        "weight": weight,
        "labelled": entry.labelled.n,
        "labelled_here": len(items.records) - len(others.records),
        "judged": len(others.records),
    }


def report_table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the fields of the table of a task's rows."""
    names = list(dict.fromkeys(name for row in rows for name in [*row["metrics"], *row["withheld"]]))
    corrected = any(row["corrected"] for row in rows)
    heads = ["language", "verdicts", "unreadable", *(name.removeprefix("judge_") for name in names)]
    heads += ["corrected"] if corrected else []
    table = [
        [
            row["language"],
            str(row["items"]),
            str(row["unreadable"]),
            *(
                "no passport" if name in row["withheld"] else _number(row["metrics"].get(name))
                for name in names
            ),
            *([_number(row["corrected"])] if corrected else []),
            _calibration(row),
        ]
        for row in rows
    ]
    return [*heads, "calibrated"], table


def report_notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the notes below the table of judged scores."""
    withheld = [row["language"] for row in rows if row["withheld"]]
    if withheld:
        yield (
            f"No judged score in {', '.join(dict.fromkeys(withheld))}: no passport certifies the judge there. Certify "
            "it with 'harness judge certify', or show what it says with --uncertified."
        )
    corrected = [row for row in rows if row["corrected"]]
    if corrected:
        yield (
            "Corrected: what people would say of all items, by prediction-powered inference; the interval holds the "
            "judge's error."
        )
    foreign = [row["language"] for row in corrected if not row["corrected"]["labelled_here"]]
    if foreign:
        yield (
            f"In {', '.join(foreign)} people labelled other answers than these: the correction assumes that the judge "
            "errs on both alike. Label a sample of these answers to be free of that."
        )


def _number(metric: Mapping[str, Any] | None) -> str:
    if metric is None:
        return "-"
    return f"{percent(metric['value'])} {uncertainty(metric['value'], metric['ci'])}".strip()


def _calibration(row: Mapping[str, Any]) -> str:
    own = row["calibration"]
    if own is None:
        return "no: not judged on gold"
    if own["ci"] is None:
        return f"no: kappa {percent(own['kappa'])}, without an interval"
    return (
        f"{'yes' if row['calibrated'] else 'no'}: kappa {_number({'value': own['kappa'], 'ci': own['ci']})}"
    )


def passport_rows(passport: Passport) -> list[dict[str, Any]]:
    """Return a row per language of a passport."""
    return [
        {"language": language, **entry.model_dump(mode="json", exclude={"items"})}
        for language, entry in passport.languages.items()
    ]


def passport_table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and fields of the table of a passport."""
    heads = ["language", "words", "labelled", "people", "judge", "kappa", "length", "position", "other words"]
    table = [
        [
            row["language"],
            row["words"],
            f"{row['moments']['n']:.0f}",
            percent(row["moments"]["human"]),
            percent(row["moments"]["judge"]),
            _number({"value": row["kappa"], "ci": row["kappa_ci"]}),
            _bias(row["length"]),
            _bias(row["position"]),
            ", ".join(f"{words}: {_bias(bias)}" for words, bias in row["other_words"].items()) or "-",
            "yes" if row["certified"] else f"no: {row['reason']}",
        ]
        for row in rows
    ]
    return [*heads, "certified"], table


def _bias(bias: Mapping[str, Any] | None) -> str:
    if bias is None:
        return "-"
    ends = "" if bias["ci"] is None else f" ({signed_interval(*bias['ci'])})"
    return f"{signed(bias['value'])}{ends}"
