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
from docs_site.surface_reference import surface_names, surface_page

ROOT = Path(__file__).resolve().parents[1]
SURFACE = {"harness", "harness.testing"}
FURTHER: dict[str, str] = {
    "harness_accelerate": "running.launch storage.file_lock",
    "harness_audit": (
        "data.pool data.records data.sources languages.scripts languages.table "
        "metrics.retrieval planning.id_alignment planning.resolution "
        "planning.translations prompts.preset prompts.preview prompts.prompter registry.registry "
        "specs.catalog specs.prompt specs.schema specs.selection specs.task_entry"
    ),
    "harness_baseline": "models.capabilities",
    "harness_board": (
        "analysis.diagnosis cli.output languages.table metrics.suites reporting.equity.report reporting.equity.table "
        "reporting.item_origin reporting.matrix reporting.model reporting.number reporting.page reporting.remark "
        "reporting.rows reporting.run_remarks reporting.score_table reporting.sections reporting.system_name "
        "specs.catalog specs.loading specs.published specs.schema specs.validating statistics storage.files "
        "storage.run_folder"
    ),
    "harness_checklist": (
        "cli.live cli.output cli.table languages.character languages.scripts metrics.metric "
        "reporting.items reporting.model specs.loading "
        "specs.schema specs.selection specs.validating statistics statistics.proportion storage.files"
    ),
    "harness_contamination": (
        "cli.configuration cli.live cli.option cli.output cli.table models.capabilities running.cell_reader "
        "running.session statistics"
    ),
    "harness_diagnosis": "analysis.items data.buckets data.features languages.scripts languages.segmentation",
    "harness_export": "cli.output languages.table reporting.material reporting.systems",
    "harness_fleet": (
        "analysis.merge cli.configuration cli.display cli.live cli.main cli.option cli.output cli.table errors "
        "planning.plan planning.run_config planning.shards progress registry.requirement reporting.remark "
        "running.session running.signals running.start storage.file_lock storage.files storage.run_folder"
    ),
    "harness_gate": (
        "analysis.comparison analysis.significance analysis.systems cli.display cli.output reporting.column "
        "reporting.console reporting.markdown reporting.model reporting.number reporting.remark specs.loading "
        "specs.schema specs.validating statistics table"
    ),
    "harness_hf": (
        "data.records languages.table models.adapters models.capabilities models.hub_access models.options "
        "models.reasoning models.requests storage.files"
    ),
    "harness_hub": "data.resolve models.hub_access",
    "harness_judge": (
        "cli.output cli.table kinds.choosing kinds.kind reporting.number specs.loading specs.prompt specs.schema "
        "specs.validating storage.files"
    ),
    "harness_lm_eval": (
        "data.readers.column data.readers.reader data.readers.structured data.resolve languages.table metrics.catalog "
        "storage.files"
    ),
    "harness_minimal_pairs": "data.readers.reader data.readers.structured data.readers.text",
    "harness_probing": (
        "languages.table models.requests reporting.chart reporting.column reporting.console "
        "reporting.contrast reporting.model reporting.number reporting.rows reporting.system_name "
        "statistics storage.file_lock storage.files"
    ),
    "harness_ray": "models.adapters models.options storage.clean_text",
    "harness_scaffold": "cli.output data.sources languages.table planning.prompts planning.word_checks",
    "harness_slurm": "storage.files",
    "harness_translation": (
        "cli.display cli.live cli.option cli.output cli.table data.sampling data.sources data.translation.aligners "
        "data.translation.guards data.translation.variants languages.character languages.detection languages.scripts "
        "languages.segmentation languages.table models.requests planning.planner planning.spec_checks "
        "planning.translations reporting.chart reporting.console reporting.model reporting.number reporting.page "
        "reporting.system_name running.session specs.loading specs.schema "
        "specs.selection specs.validating statistics storage.files"
    ),
    "harness_vllm": (
        "models.hub_access models.options models.reasoning models.requests storage.clean_text storage.files"
    ),
    "harness_vyakarana": (
        "cli.live cli.output cli.table data.readers.conllu data.readers.delimited data.readers.reader errors "
        "registry.registry specs.loading specs.schema specs.validating storage.files"
    ),
    "harness_xtreme_r": (
        "cli.display cli.output data.readers.column data.readers.reader data.readers.squad "
        "data.readers.structured data.readers.text metrics metrics.metric metrics.retrieval running.session"
    ),
}
"""Modules of the core that a first-party package imports besides the public surface."""


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules of the core that a file imports, those for types alone too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_importing_the_harness_imports_no_module_of_the_core() -> None:
    script = "import sys, harness; print([name for name in sys.modules if name.startswith('harness.')])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
