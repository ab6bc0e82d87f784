"""Command lines of the documentation against the command line itself: parsed, not run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

from docs_site.command_reference import is_option, leaf_commands

LEAVES: dict[str, Any] = dict(leaf_commands())
GLOBAL = frozenset({"--help", "--debug", "--version"})
OPTIONS = GLOBAL | {
    name
    for leaf in LEAVES.values()
    for parameter in leaf.params
    if is_option(parameter)
    for name in (*parameter.opts, *parameter.secondary_opts)
}
ENDS = frozenset({"&&", "||", "|", ";", ">", ">>", "2>", "&", "fi", "done"})


def harness_calls(script: str) -> Iterator[list[str]]:
    """Yield the arguments of every call of ``harness`` in a shell script, also through ``-m harness``."""
    for line in script.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        for place, word in enumerate(words):
            before = [one for one in words[:place] if not re.match(r"\w+=", one)]
            called = before in ([], ["exec"]) or before[-1:] in (["-m"], ["then"])
            if called and (word == "harness" or word.endswith("/bin/harness")):
                given = words[place + 1 :]
                ends = [index for index, one in enumerate(given) if one in ENDS]
                yield given[: ends[0]] if ends else given
                break


def leaf_of(words: list[str]) -> tuple[str, list[str]] | None:
    """Return the command that a command line names and the words after it; None where there is no such command."""
    for count in (2, 1):
        name = " ".join(words[:count])
        if len(words) >= count and name in LEAVES:
            return name, words[count:]
    return None


def describe_fault(words: list[str]) -> str | None:
    """Return what is wrong with the arguments of a call, None where the command line takes them."""
    words = [word for word in words if word != "--debug"]
    if words[:1] in (["--version"], ["--help"]):
        return None
    found = leaf_of(words)
    if found is None:
        return f"there is no command {' '.join(words[:2])!r}"
    name, rest = found
    try:
        LEAVES[name].make_context(name, [re.sub(r"\$\w+", "x", word) for word in rest])
    except Exception as error:  # the parser's own errors have no public class
        return f"{type(error).__name__}: {getattr(error, 'message', None) or error}"
    return None
