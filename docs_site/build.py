"""The hooks of MkDocs: navigation, generated pages, and the conversion of GitHub's Markdown."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from docs_site.generated import GENERATED, ROOT
from docs_site.navigation import home, navigation
from docs_site.page_text import site_text

INDEX = "README.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation from the index, and the anchors of headings as on GitHub."""
    index = (ROOT / "docs" / INDEX).read_text(encoding="utf-8")
    config.nav = navigation(index, GENERATED)
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are generated from the code, and those outside ``docs``."""
    for page in GENERATED:
        files.append(File.generated(config, page.path, content=page.write()))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Return the text of a page in the site's Markdown; the index starts with the README's first lines."""
    path = page.file.src_uri
    if path == INDEX:
        page.meta["hide"] = ["navigation"]
        markdown = home((ROOT / INDEX).read_text(encoding="utf-8"), markdown, GENERATED)
    return site_text(markdown, path)
