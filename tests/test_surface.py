"""The public surface: what plugins, adapters, examples and scaffolds import of the core."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from docs_site.capability_reference import capability_page
from docs_site.surface_reference import surface_names, surface_page
from tests.docs.page import PAGES, blocks, page_name

ROOT = Path(__file__).resolve().parents[1]
SURFACE = {"harness", "harness.testing"}
FURTHER: dict[str, str] = {
    "harness_accelerate": "running.launch storage.file_lock",
    "harness_audit": (
        "data.pool data.records data.sources languages.detection languages.scripts languages.table "
        "metrics.retrieval planning.id_alignment planning.resolution planning.task_checks "
        "planning.translations prompts.preset prompts.preview prompts.prompter registry.registry "
        "specs.catalog specs.prompt specs.schema specs.selection specs.task_entry"
    ),
    "harness_baseline": "models.capabilities",
    "harness_board": (
        "analysis.diagnosis cli.output languages.table metrics.naming reporting.blocks.model "
        "reporting.blocks.number reporting.blocks.remark reporting.cost.report reporting.cost.table "
        "reporting.overview.item_origin reporting.overview.matrix reporting.overview.run_remarks "
        "reporting.overview.score_table reporting.render.page reporting.render.rows reporting.sections "
        "scores.aggregation scores.suites specs.catalog specs.loading specs.published specs.schema "
        "specs.validating statistics storage.files storage.run_folder"
    ),
    "harness_checklist": (
        "cli.live cli.output cli.table languages.character languages.scripts metrics.metric "
        "reporting.blocks.model reporting.render.latex reporting.render.markdown reporting.render.rows "
        "reporting.weakness.items specs.loading specs.schema specs.selection specs.validating statistics "
        "statistics.proportion storage.files"
    ),
    "harness_contamination": (
        "cli.configuration cli.live cli.option cli.output cli.table running.cell_reader running.session "
        "statistics"
    ),
    "harness_diagnosis": "analysis.items data.buckets data.features languages.scripts languages.segmentation",
    "harness_export": "cli.output languages.table reporting.overview.material reporting.overview.systems",
    "harness_fleet": (
        "analysis.merge cli.configuration cli.display cli.live cli.main cli.option cli.output cli.table "
        "errors planning.plan planning.run_config planning.shards progress registry.requirement "
        "reporting.blocks.remark running.session running.signals running.start storage.file_lock "
        "storage.files storage.run_folder"
    ),
    "harness_gate": (
        "analysis.comparison analysis.pairing analysis.significance analysis.systems cli.display "
        "cli.output metrics.naming reporting.blocks.model reporting.blocks.number reporting.blocks.remark "
        "reporting.render.console reporting.render.markdown specs.loading specs.schema specs.validating "
        "statistics table"
    ),
    "harness_hf": (
        "data.records languages.table models.adapters models.capabilities models.hub_access models.options "
        "models.reasoning models.requests storage.file_lock storage.files testing.probe"
    ),
    "harness_hub": (
        "data.readers.column data.readers.structured data.resolve models.hub_access progress "
        "storage.file_lock storage.files"
    ),
    "harness_judge": (
        "cli.output cli.table kinds.choosing kinds.kind reporting.blocks.number specs.loading specs.prompt "
        "specs.schema specs.validating storage.files"
    ),
    "harness_lm_eval": (
        "data.readers.column data.readers.reader data.readers.structured data.resolve languages.table "
        "metrics.catalog storage.files"
    ),
    "harness_minimal_pairs": "data.readers.reader data.readers.structured data.readers.text",
    "harness_probing": (
        "languages.table models.requests reporting.blocks.chart reporting.blocks.model "
        "reporting.blocks.number reporting.overview.column reporting.overview.contrast "
        "reporting.overview.system_name reporting.render.console reporting.render.rows statistics "
        "storage.file_lock storage.files"
    ),
    "harness_ray": "models.adapters models.options storage.clean_text",
    "harness_scaffold": "cli.output data.sources languages.table planning.prompts planning.word_checks",
    "harness_slurm": "storage.files",
    "harness_translation": (
        "cli.display cli.live cli.option cli.output cli.table data.sampling data.sources "
        "data.translation.aligners data.translation.guards data.translation.variants languages.character "
        "languages.detection languages.scripts languages.segmentation languages.table metrics.classification "
        "metrics.naming models.requests planning.evaluated_split planning.origin planning.planner "
        "planning.run_config planning.spec_checks planning.translations reporting.blocks.chart "
        "reporting.blocks.model reporting.blocks.number reporting.overview.figure reporting.render.console "
        "reporting.render.latex "
        "reporting.render.page running.session specs.loading specs.schema specs.selection specs.validating "
        "statistics storage.files storage.records"
    ),
    "harness_vllm": "models.hub_access models.reasoning models.requests storage.clean_text storage.files",
    "harness_vyakarana": (
        "cli.live cli.output cli.table data.readers.conllu data.readers.delimited data.readers.reader errors "
        "languages.scripts languages.table registry.registry reporting.blocks.model reporting.render.console "
        "reporting.render.latex specs.loading specs.schema specs.validating storage.files"
    ),
    "harness_xtreme_r": (
        "cli.display cli.output data.readers.column data.readers.reader data.readers.squad "
        "data.readers.structured data.readers.text metrics metrics.metric metrics.retrieval running.session"
    ),
}
"""Modules of the core that a first-party package imports besides the public surface."""


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules of the core that a file imports, those for types alone too."""
    yield from _imported(path.read_text(encoding="utf-8"))


def _imported(code: str) -> Iterator[str]:
    """Yield the modules of the core that code imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module.split(".")[0] == "harness":
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "harness")


def _packages() -> list[Path]:
    return sorted(
        path
        for root in ("plugins", "model_adapters", "task_specs")
        for path in (ROOT / root).iterdir()
        if path.name.startswith("harness_")
    )


@pytest.mark.parametrize("package", _packages(), ids=lambda path: path.name)
def test_first_party_packages_use_the_surface_and_a_short_list(package: Path) -> None:
    found = {module for file in package.rglob("*.py") for module in _imports(file)} - SURFACE
    allowed = {f"harness.{name}" for name in FURTHER.get(package.name, "").split()}
    assert found - allowed == set(), "import it from harness, or name it in FURTHER"
    assert allowed - found == set(), "FURTHER names modules that are not needed"


@pytest.mark.parametrize("file", sorted((ROOT / "examples").rglob("src/**/*.py")), ids=lambda path: path.name)
def test_examples_use_the_surface_alone(file: Path) -> None:
    assert set(_imports(file)) <= SURFACE


@pytest.mark.parametrize(
    "file",
    sorted((ROOT / "plugins" / "harness_scaffold" / "templates").rglob("*.py.template")),
    ids=lambda path: path.name,
)
def test_scaffolds_use_the_surface_alone(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    found = {match[1] for line in lines if (match := re.match(r"\s*(?:from|import) (harness[.\w]*)", line))}
    assert found <= {*SURFACE, "harness.cli.main"}, "a scaffold's tests may run the command, nothing else"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_documentation_uses_the_surface_alone(page: Path) -> None:
    """Code that a reader types imports from public modules."""
    code = ["\n".join(block.lines) for block in blocks(page) if block.language == "python"]
    assert {module for text in code for module in _imported(text)} <= SURFACE


def test_every_public_name_is_defined_where_the_stub_says() -> None:
    for module, names in surface_names().items():
        for name in names:
            found = getattr(harness, name)
            home = getattr(found, "__module__", module)
            assert home == module or not str(home).startswith("harness"), name
    assert sorted(name for names in surface_names().values() for name in names) == sorted(
        set(harness.__all__) - {"__version__"}
    )


def test_the_page_lists_every_public_name() -> None:
    page = surface_page()
    for names in surface_names().values():
        for name in names:
            assert f"| `{name}` |" in page


def test_the_page_of_capabilities_says_what_each_is_for() -> None:
    page = capability_page()
    for method in harness.open_session().registry.methods:
        section = page.partition(f"\n## {method.requires}\n")[2].partition("\n## ")[0]
        assert f"the method `{method.name}` of" in section, method.name
        assert f"`{method.kind}`" in section, method.kind


def test_importing_the_harness_imports_no_module_of_the_core() -> None:
    script = "import sys, harness; print([name for name in sys.modules if name.startswith('harness.')])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
