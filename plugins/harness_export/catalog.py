"""The formats that this package brings; what makes them is imported when one is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness import UsageError
from harness.registry import ReportFormat

if TYPE_CHECKING:
    from harness import Run


@dataclass(frozen=True, slots=True)
class Target:
    """One format of another tool."""

    name: str
    suffix: str
    summary: str
    maker: str
    """A function of `harness_export.formats`; it takes runs and returns the texts of files by name."""
    publishes: bool = False
    """Whether its files are made to be published: sample data are rejected."""
    in_folder: bool = False
    """Whether it is a folder of files."""
    many: bool = False
    """Whether it shows several runs."""

    def files(self, runs: Sequence[Run], *, allow_sample: bool = False) -> Mapping[str, str]:
        """Return the texts of the files by name.

        Raises `UsageError` where the run has nothing for this format, or is on the sample data, whose scores say
        nothing about a model, and the files are to be published.
        """
        from harness_export import formats

        runs = runs if self.many else runs[:1]
        if self.publishes and not allow_sample and runs[0].results.run.data == "sample":
            raise UsageError(
                f"The run {str(runs[0].path)!r} is on the sample data, whose scores say nothing about a model.",
                hint="Evaluate with --data hub, or try the format out with 'harness export --allow-sample'.",
            )
        files: Mapping[str, str] = getattr(formats, self.maker)(runs)
        if not files:
            raise UsageError(
                f"The run {str(runs[0].path)!r} has no score that the format {self.name!r} can hold."
            )
        return files

    def text(self, runs: Sequence[Run], *, allow_sample: bool = False) -> str:
        """Return the one file as a text; raises `UsageError` where there are several."""
        files = self.files(runs, allow_sample=allow_sample)
        if len(files) > 1:
            raise UsageError(
                f"The format {self.name!r} has {len(files)} files for this run.",
                hint="Write them with --output FOLDER.",
            )
        return next(iter(files.values()))

    def write(self, runs: Sequence[Run], folder: Path, *, allow_sample: bool = False) -> list[Path]:
        """Write the files into a folder and return their paths."""
        from harness.cli import write_files

        return write_files(self.files(runs, allow_sample=allow_sample).items(), folder)

    def report_format(self) -> ReportFormat:
        """Return the format for ``harness report``."""
        return ReportFormat(
            name=self.name,
            suffix=self.suffix,
            render=self.text,
            summary=self.summary,
            write=self.write if self.in_folder else None,
        )


TARGETS = (
    Target("eee", ".json", "a record of Every Eval Ever, schema 0.3.0", "eee_files", publishes=True),
    Target("model-index", ".yaml", "the metadata of a model card on the Hub", "model_index", publishes=True),
    Target(
        "eval-results",
        ".yaml",
        "the Hub's .eval_results files, for the leaderboards of data sets",
        "eval_results",
        publishes=True,
        in_folder=True,
    ),
    Target("mteb", ".json", "MTEB's result files of retrieval tasks", "mteb_files", in_folder=True),
    Target(
        "systems-latex",
        ".tex",
        "one LaTeX table of systems and tasks, the best in bold",
        "latex_files",
        many=True,
    ),
)
FORMATS = tuple(target.report_format() for target in TARGETS)
