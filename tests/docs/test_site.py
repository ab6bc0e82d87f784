"""The site builds without a warning, holds what the code holds, and asks nothing of other hosts."""

from __future__ import annotations

import hashlib
import html
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs_site import observer_example
from docs_site.generated import GENERATED, ROOT
from docs_site.hook_reference import hooks, implementations
from docs_site.navigation import home, indexed_pages, navigation
from docs_site.page_text import site_text
from docs_site.spec_reference import spec_page
from harness.hookspecs import HookSpecs
from harness.storage.results import CellResult
from tests.docs.command_line import LEAVES, OPTIONS
from tests.docs.page import DOCS, PAGES

pytestmark = pytest.mark.thorough

pytest.importorskip("mkdocs", reason="mkdocs is not installed")

INDEX = (DOCS / "README.md").read_text(encoding="utf-8")
AXE_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
LOOKED_AT = ("index", "xtreme-r", "error-bars", "benchmarks/xnli", "reference/hooks", "reference/commands")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as ``make docs`` builds it, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    finished = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    warnings = [line for line in finished.stderr.splitlines() if not line.startswith("INFO")]
    assert (finished.returncode, warnings, finished.stdout) == (0, [], ""), finished.stderr
    return folder


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_every_key_of_a_spec_is_explained() -> None:
    rows = [line for line in spec_page().splitlines() if line.startswith("| `")]
    assert len(rows) > 150
    assert [row for row in rows if row.endswith("|  |") or row.count(" | ") < 2] == []


# What is in it ----------------------------------------------------------------------------------------


def test_every_page_is_in_the_site(site: Path) -> None:
    names = [str(page.relative_to(DOCS)) for page in PAGES] + [page.path for page in GENERATED]
    for name in names:
        built = "index.html" if name == "README.md" else name.replace(".md", ".html")
        assert (site / built).is_file(), built
        assert f'href="{built}"' in (site / "index.html").read_text("utf-8") or name == "README.md", name


def test_every_hook_and_registry_is_listed(site: Path) -> None:
    written = (site / "reference" / "hooks.html").read_text(encoding="utf-8")
    listed = text_of(site / "reference" / "hooks.html")
    declared = [name for name in vars(HookSpecs) if name.startswith("harness_")]
    assert list(hooks()) == declared
    for name in declared:
        assert f'<h2 id="{name}">' in written
        assert f"def {name}(" in listed
        assert all(module in listed for module in implementations()[name])
    assert "harness_task_specs" in implementations()["harness_register_task_specs"]
    registered = text_of(site / "reference" / "registered.html")
    folders = {"harness_register_task_specs", "harness_register_grammars"}
    registering = {name for name in hooks() if name.startswith("harness_register_")} - folders
    assert {name for name in registering if name not in registered} == set()
    for name in ("span_extraction", "squad_records", "chunk_f1", "hf-encoder", "markdown"):
        assert name in registered


def test_every_command_and_option_is_listed(site: Path) -> None:
    listed = text_of(site / "reference" / "commands.html")
    assert [name for name in LEAVES if f"harness {name}" not in listed] == []
    assert [name for name in sorted(OPTIONS) if not re.search(rf"(?<![\w-]){name}(?![\w-])", listed)] == [
        "--help"
    ][1:]


def test_fences_have_the_name_of_their_file_and_search_knows_the_pages(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert '"location":"benchmarks/xnli.html#traps"' in index
    page = (site / "add-a-task.html").read_text(encoding="utf-8")
    assert '<span class="filename">specs/mood.yaml</span>' in page
    assert '<span class="filename">ends with exit status 2</span>' in page
    for built in site.rglob("*.html"):
        assert "```" not in text_of(built), f"{built.name} has a fence that was not understood"


def test_nothing_is_asked_of_other_hosts(site: Path) -> None:
    """Links of the text may lead elsewhere; what a page loads may not."""
    for built in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"([^\"]+)\"", built.read_text("utf-8")
        )
        assert loaded
        assert [address for address in loaded if "//" in address] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text("utf-8")), sheet.name


# How it is made ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.title)
def test_links_of_generated_pages_have_a_place(page: Any) -> None:
    text = page.write()
    assert text.startswith("# ")
    assert text.endswith("\n")
    own = {
        re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")
        for head in re.findall(r"^#+ (.+)$", text, re.M)
    }
    assert {anchor for anchor in re.findall(r"\]\(#([^)]+)\)", text)} <= own


def test_generated_pages_do_not_depend_on_the_process() -> None:
    script = "from docs_site.generated import GENERATED; print(*(page.write() for page in GENERATED))"
    digests = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": seed * 2 + "0"}
        written = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, check=True, cwd=ROOT, env=environment
        )
        digests.add(hashlib.sha256(written.stdout).hexdigest())
        assert str(ROOT) not in written.stdout.decode()
        assert not re.search(r"0x[0-9a-f]{6,}", written.stdout.decode())
    assert len(digests) == 1


def test_navigation_is_the_index() -> None:
    index = (
        "# Pages\n\n## One\n\n- [A](a.md): x.\n\n### Group\n\n* [B](in/b.md): y [C](c.md).\n\n## Reference\n"
    )
    generated = [page for page in GENERATED if page.path == "reference/hooks.md"]
    assert navigation(index, generated) == [
        {"Home": "README.md"},
        {"One": [{"A": "a.md"}, {"Group": [{"B": "in/b.md"}]}]},
        {"Reference": [{"Hooks": "reference/hooks.md"}]},
    ]
    assert indexed_pages(index) == ["a.md", "in/b.md"]
    with pytest.raises(ValueError, match="has no section 'Reference'"):
        navigation("## One\n", generated)
    with pytest.raises(ValueError, match="before its first heading"):
        navigation("- [A](a.md): x.\n", [])


def test_the_hooks_of_the_generator_are_those_that_it_knows() -> None:
    from mkdocs.plugins import EVENTS

    from docs_site import build

    defined = {name.removeprefix("on_") for name in vars(build) if name.startswith("on_")}
    assert defined
    assert defined <= set(EVENTS)


def test_home_begins_with_the_readme_and_lists_generated_pages() -> None:
    readme = "# harness\n\nSee [it](docs/it.md) and the [changelog](CHANGELOG.md).\n\n## Install\n\nno\n"
    text = site_text(home(readme, "# Documentation\n\n## Use it\n", []), "README.md")
    assert text == "# harness\n\nSee [it](it.md) and the [changelog](project/changelog.md).\n\n## Use it\n"
    generated = [page for page in GENERATED if page.path == "reference/hooks.md"]
    text = home(
        "# harness\n", "# Pages\n\n## Reference\n\nText.\n\n## Project\n\n- [A](a.md): x.\n", generated
    )
    assert "## Reference\n\nText.\n\n- [Hooks](reference/hooks.md)\n\n## Project\n\n- [A](a.md): x.\n" in text


def test_text_of_a_page_for_the_site() -> None:
    page = (
        "[log](../../CHANGELOG.md#a)\n\n```tsv file=a/b.tsv\n[x](../../CHANGELOG.md)\n```\n\n```sh\nls\n```\n"
    )
    assert site_text(page, "project/page.md") == (
        '[log](changelog.md#a)\n\n```text title="a/b.tsv"\n[x](../../CHANGELOG.md)\n```\n\n```sh\nls\n```\n'
    )


def test_examples_of_observers_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    observer_example.harness_cell_finished(CellResult(task="xnli", language="sw", status="done", metrics={}))
    observer_example.harness_run_finished(Path("runs/first"))
    assert Path("cells.jsonl").read_text("utf-8") == '{"task": "xnli", "language": "sw", "status": "done"}\n'
    assert Path("runs.txt").read_text("utf-8") == "runs/first\n"


# In a browser -----------------------------------------------------------------------------------------


@pytest.fixture(params=["light", "dark"])
def view(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    context = browser.new_context(color_scheme=request.param, viewport={"width": 390, "height": 800})
    yield context.new_page()
    context.close()


def test_pages_are_accessible_and_fit_a_telephone(site: Path, view: Any) -> None:
    axe_playwright = pytest.importorskip(
        "axe_playwright_python", reason="axe-playwright-python is not installed"
    )
    source = next(Path(axe_playwright.__file__).parent.rglob("axe*.js")).read_text(encoding="utf-8")
    asked: list[str] = []
    view.on("request", lambda request: asked.append(request.url))
    for name in LOOKED_AT:
        view.goto((site / f"{name}.html").as_uri())
        view.wait_for_timeout(200)
        assert view.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        view.evaluate(source + "; undefined")
        found = view.evaluate("async (rules) => (await axe.run(document, rules)).violations", AXE_RULES)
        faults = [f"{one['id']} ({len(one['nodes'])}): {one['nodes'][0]['html'][:150]}" for one in found]
        assert faults == [], name
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_search_works_from_a_folder(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((site / "index.html").as_uri())
    page.wait_for_timeout(300)
    page.keyboard.press("f")
    page.keyboard.type("Mewsli", delay=20)
    result = page.locator(".md-search-result__link").first
    result.wait_for(timeout=60_000)
    assert "mewslix" in page.locator(".md-search-result__list").inner_html()
    page.close()
