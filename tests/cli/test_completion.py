"""``harness --install-completion``: the script of the shell, asked as bash asks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

ASK = """
source "$HOME/.bash_completions/harness.sh"
COMP_WORDS=($WORDS); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
[ "${WORDS% }" = "$WORDS" ] || COMP_CWORD=$((COMP_CWORD + 1))
_harness_completion harness
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("harness ev", "eval"),
        ("harness eval --with-p", "--with-published"),
        ("harness new task --test", "--test-share"),
    ],
)
def test_bash_completes_commands_and_options(tmp_path: Path, words: str, found: str) -> None:
    programs = str(Path(sys.executable).parent)
    environment = {"HOME": str(tmp_path), "PATH": f"{programs}:{os.environ['PATH']}", "WORDS": words}
    installed = subprocess.run(
        [sys.executable, "-m", "harness", "--install-completion", "bash"],
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert str(tmp_path) in installed.stdout
    answer = subprocess.run(
        ["bash", "-c", ASK], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert [line.strip() for line in answer.stdout.splitlines()] == [found], answer.stderr
