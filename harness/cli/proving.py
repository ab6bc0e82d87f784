"""What ``harness tasks validate`` prints of specs and of the proofs of their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from harness.api import Session
    from harness.proof.prover import Prover

__all__ = ["print_checked", "prove_checked"]


def print_checked(checked: Sequence[Mapping[str, Any]], *, spec_alone: bool) -> None:
    """Print a line for every document, and the faults of broken ones; without data the spec is all that is checked."""
    for item in checked:
        if item["problems"]:
            count = len(item["problems"])
            typer.echo(f"{item['source']}: {count} {'fault' if count == 1 else 'faults'}", err=True)
            for problem in item["problems"]:
                typer.echo(f"  {problem}", err=True)
        else:
            typer.echo(f"{'' if spec_alone else 'spec '}ok  {item['sort']} {item['name']}")


def prove_checked(
    session: Session, checked: list[dict[str, Any]], prover: Prover, *, named: bool, prompts: bool
) -> bool:
    """Prove the tasks without problems and add what is found to their rows.

    Returns whether there is a fault; a task that the user named and of which no test item was found is one.
    """
    from harness.errors import HarnessError, StoppedError, StorageError
    from harness.proof.prover import proved_entry

    faulty = False
    for row in checked:
        entry = (
            None
            if row["problems"]
            else proved_entry(session.catalog, row["sort"], row["name"], row["source"])
        )
        if entry is None:
            continue
        try:
            proof = prover.prove(entry, only=_own_languages(row) if named else ())
        except (StoppedError, StorageError):
            raise
        except HarnessError as error:
            # The proofs of the other tasks are worth as much as before.
            typer.echo(f"  fault    {entry.spec.task}: {error}", err=True)
            row["proof"], faulty = {"error": str(error)}, True
            continue
        row["proof"] = proof.to_json()
        faulty = faulty or bool(proof.findings) or (named and proof.is_empty)
        typer.echo(proof.told())
        for finding in proof.findings:
            typer.echo(f"  fault    {finding}", err=True)
        for note in proof.notes:
            typer.echo(f"  note     {note}")
        for reason in proof.skipped:
            typer.echo(f"  skipped  {proof.task}: {reason}.")
        for line in proof.prompt_lines(whole=prompts):
            typer.echo(line)
    for told in prover.translation_notes():
        typer.echo(f"  note     {told}")
    return faulty


def _own_languages(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the languages of a fragment, which alone its author asks about; none for other documents."""
    from harness.specs.catalog import read_entry

    if row["sort"] != "extends":
        return ()
    path = Path(row["source"])
    return tuple(read_entry(row["source"], path, path.parent).document.data["languages"])
