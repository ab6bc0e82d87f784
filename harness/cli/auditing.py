"""Output of ``harness tasks validate``: specs, and the audits of their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.output import echo

if TYPE_CHECKING:
    from harness.running.auditor import Auditor
    from harness.running.session import Session


def print_checked(checked: Sequence[Mapping[str, Any]], *, spec_alone: bool) -> None:
    """Print a line for every document, and the faults of broken ones; without data the spec is all that is checked."""
    for item in checked:
        if item["problems"]:
            count = len(item["problems"])
            echo(f"{item['source']}: {count} {'fault' if count == 1 else 'faults'}", err=True)
            for problem in item["problems"]:
                echo(f"  {problem}", err=True)
        else:
            echo(f"{'' if spec_alone else 'spec '}ok  {item['sort']} {item['name']}")


def audit_checked(
    session: Session, checked: list[dict[str, Any]], auditor: Auditor, *, named: bool, prompts: bool
) -> bool:
    """Check the tasks without problems on data and add the results to their rows.

    Returns whether there is a fault; a task that the user named and that has no test item is one.
    """
    from harness.errors import HarnessError, StoppedError, StorageError
    from harness.running.auditor import audited_entry

    faulty = False
    for row in checked:
        entry = (
            None
            if row["problems"]
            else audited_entry(session.catalog, row["sort"], row["name"], row["source"])
        )
        if entry is None:
            continue
        try:
            audit = auditor.audit(entry, only=_own_languages(row) if named else ())
        except (StoppedError, StorageError):
            raise
        except HarnessError as error:
            # The other tasks can still be checked.
            echo(f"  fault    {entry.spec.task}: {error}", err=True)
            row["proof"], faulty = {"error": str(error)}, True
            continue
        row["proof"] = audit.to_json()
        faulty = faulty or bool(audit.findings) or (named and audit.is_empty)
        echo(audit.summary())
        for finding in audit.findings:
            echo(f"  fault    {finding}", err=True)
        for note in audit.notes:
            echo(f"  note     {note}")
        for reason in audit.skipped:
            echo(f"  skipped  {audit.task}: {reason}.")
        for line in audit.prompt_lines(whole=prompts):
            echo(line)
    return faulty


def _own_languages(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the languages of a fragment, the only ones its author asks about; none for other documents."""
    from harness.specs.folder import read_entry

    if row["sort"] != "extends":
        return ()
    path = Path(row["source"])
    return tuple(read_entry(row["source"], path, path.parent).document.data["languages"])
