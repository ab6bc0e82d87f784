"""Runs the checks of a contract suite as plain functions: a planted fault needs no pytest session of its own."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.models.adapters import AdapterEntry
from harness.models.options import parse_options
from harness.testing.adapter_contract import AdapterContract
from harness.testing.contract_setting import ModelFixture, TrainingSet

MakeFolder = Callable[[str], Path]


def failed_checks(
    entry: AdapterEntry, ref: str, make_folder: MakeFolder, chosen: Callable[[str], bool]
) -> set[str]:
    """Return the names of the chosen checks of the adapter contract that fail for a model."""
    options = parse_options(entry, {})
    description = entry.describe_model(ref, options)
    model_fixture = ModelFixture(
        entry=entry,
        description=description,
        options=options,
        training_sets={
            head: TrainingSet(
                examples=examples,
                spec=AdapterContract.head_spec(head),
                settings=AdapterContract.training_settings(head),
            )
            for head in description.after_fit
            if (examples := AdapterContract.training_examples(head))
        },
        make_folder=make_folder,
    )
    fixtures = {
        "entry": entry,
        "ref": ref,
        "options": {},
        "parsed_options": options,
        "description": description,
        "model_fixture": model_fixture,
    }
    outcomes = dict(_outcomes(fixtures, make_folder, chosen))
    with suppress(RuntimeError):  # the fault of a model that closes only once
        model_fixture.close()
    assert None in outcomes.values() or any(outcomes.values()), "every check was skipped"
    return {name.partition("[")[0] for name, failed in outcomes.items() if failed}


def _outcomes(
    fixtures: Mapping[str, Any], make_folder: MakeFolder, chosen: Callable[[str], bool]
) -> Iterator[tuple[str, bool | None]]:
    """Yield each case of each check: True where it fails, False where it is skipped, None where it passes."""
    contract = AdapterContract()
    for name, check in _checks():
        if not chosen(name):
            continue
        for number, parameters in enumerate(_cases(check)):
            given = {**fixtures, **parameters}
            names = [parameter for parameter in inspect.signature(check).parameters if parameter != "self"]
            if "tmp_path" in names:
                given["tmp_path"] = make_folder(name)
            failed: bool | None = None
            try:
                check(contract, **{parameter: given[parameter] for parameter in names})
            except pytest.skip.Exception:
                failed = False
            except (Exception, pytest.fail.Exception):
                failed = True
            yield f"{name}[{number}]", failed


def _checks() -> Iterator[tuple[str, Callable[..., None]]]:
    """Yield the checks in the order in which pytest runs them: the base of all comes first."""
    for cls in reversed(AdapterContract.__mro__):
        yield from ((name, value) for name, value in vars(cls).items() if name.startswith("test_"))


def _cases(check: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """Yield the parameters of each case that ``pytest.mark.parametrize`` makes of a check."""
    axes = []
    for mark in getattr(check, "pytestmark", []):
        assert mark.name == "parametrize", f"{check.__name__} has the mark {mark.name!r}"
        [name, *others] = mark.args[0].split(",")
        assert not others, "a check has one parameter per mark"
        axes.append([{name: value} for value in mark.args[1]])
    for combination in itertools.product(*axes):
        yield {name: value for case in combination for name, value in case.items()}
