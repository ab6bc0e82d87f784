"""What a report keeps of a run: the same values as computed anew, until the run has other results."""

from __future__ import annotations

from harness.reporting.overview.column import cells_of, conditions_of, once_per_run
from harness.reporting.overview.means import mean_of_others, score_of
from harness.reporting.overview.summary import columns_of
from harness.storage.run_folder import Run


def test_a_value_is_computed_once_until_the_results_change(sample_run: Run) -> None:
    calls: list[str] = []

    @once_per_run
    def count(run: Run, name: str) -> int:
        calls.append(name)
        return len(run.cells)

    run = Run(sample_run.path)
    assert [count(run, "a"), count(run, "a"), count(run, "b")] == [len(run.cells)] * 3
    assert calls == ["a", "b"]
    run.results = run.results.changed(cells=run.results.cells[:3])
    assert count(run, "a") == 3
    run.manifest = run.manifest.changed(model="another")
    assert count(run, "a") == 3
    assert calls == ["a", "b", "a", "a"]


def test_the_index_has_every_cell_of_a_column(sample_run: Run) -> None:
    languages = dict.fromkeys(cell.language for cell in sample_run.cells)
    for column in columns_of(sample_run):
        own = [
            cell
            for cell in sample_run.cells
            if cell.has("method")
            and (cell.task, cell.protocol, cell.method, conditions_of(cell.view))
            == (column.task, column.protocol, column.method, column.view)
        ]
        assert own
        assert cells_of(sample_run, column) == own
        for code in languages:
            assert cells_of(sample_run, column, code) == [cell for cell in own if cell.language == code]
            scores = [score_of(sample_run, column, other) for other in languages if other != code]
            values = [score.value for score in scores if score is not None]
            others = mean_of_others(sample_run, column, code, list(languages))
            assert others is None or abs(others.value - sum(values) / len(values)) < 1e-12
