"""Writes documents as YAML with the same meaning under YAML 1.1 and 1.2."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

__all__ = ["document"]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.\-]*")
_MEANT = frozenset("y n yes no on off true false null none nan inf".split())


class _Dumper(yaml.SafeDumper):
    """Quotes every text that YAML could read as something else."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values out each time: anchors are hard to edit."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _MEANT
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


def document(data: Mapping[str, Any], notes: Sequence[str]) -> str:
    """Return a YAML text; the notes come first, as comments."""
    lines = [
        line
        for note in notes
        for line in textwrap.wrap(note, 100, initial_indent="# ", subsequent_indent="#   ")
    ]
    text = yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return "".join(f"{line}\n" for line in ["# Imported from lm-evaluation-harness.", *lines]) + text
