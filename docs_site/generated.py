"""The pages of the site that are generated, not files of ``docs``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from docs_site.capability_reference import capability_page
from docs_site.command_reference import command_page
from docs_site.hook_reference import hook_page
from docs_site.registry_reference import registry_page
from docs_site.spec_reference import spec_page
from docs_site.surface_reference import surface_page

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedPage:
    """One page that is written while the site is built."""

    section: str
    title: str
    path: str
    write: Callable[[], str]


def _file_of_the_root(name: str) -> Callable[[], str]:
    """Return a function that writes a file of the repository's root as a page of ``project``."""

    def write() -> str:
        text = (ROOT / name).read_text(encoding="utf-8")
        text = re.sub(r"\]\(docs/([^)]+)\)", lambda link: f"]({posixpath.relpath(link[1], 'project')})", text)
        return re.sub(r"\]\((CHANGELOG|CONTRIBUTING)\.md\)", r"](../../\1.md)", text)

    return write


GENERATED = (
    GeneratedPage(section="Reference", title="Commands", path="reference/commands.md", write=command_page),
    GeneratedPage(
        section="Reference", title="Public surface", path="reference/surface.md", write=surface_page
    ),
    GeneratedPage(section="Reference", title="Hooks", path="reference/hooks.md", write=hook_page),
    GeneratedPage(
        section="Reference", title="Capabilities", path="reference/capabilities.md", write=capability_page
    ),
    GeneratedPage(section="Reference", title="Spec keys", path="reference/spec-keys.md", write=spec_page),
    GeneratedPage(
        section="Reference", title="Registered names", path="reference/registered.md", write=registry_page
    ),
    GeneratedPage(
        section="Project",
        title="Contributing",
        path="project/contributing.md",
        write=_file_of_the_root("CONTRIBUTING.md"),
    ),
    GeneratedPage(
        section="Project",
        title="Changelog",
        path="project/changelog.md",
        write=_file_of_the_root("CHANGELOG.md"),
    ),
)
