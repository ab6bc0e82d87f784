"""Code of a model's repository runs only when it is allowed, and reports mention it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CODE = """
from transformers import BertModel


class OwnModel(BertModel):
    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.last_hidden_state = -output.last_hidden_state
        return output
"""


@pytest.fixture
def own_code(folders: dict[str, Path], tmp_path: Path) -> Path:
    """The folder of a BERT whose own code turns the signs of its states."""
    folder = tmp_path / "own"
    shutil.copytree(folders["bert"], folder)
    (folder / "modeling_own.py").write_text(CODE)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "auto_map": {"AutoModel": "modeling_own.OwnModel"}})
    )
    return folder


def test_code_runs_only_when_allowed_and_is_mentioned(
    own_code: Path, folders: dict[str, Path], open_folder: Callable[..., Any]
) -> None:
    plain = open_folder(folders["bert"], trust_remote_code=True)
    expected = plain.embed(["The cat"], side="query")
    assert not plain.notices()
    closed = open_folder(own_code)
    np.testing.assert_allclose(closed.embed(["The cat"], side="query"), expected, atol=1e-6)
    assert not closed.notices()
    opened = open_folder(own_code, trust_remote_code=True)
    np.testing.assert_allclose(opened.embed(["The cat"], side="query"), -expected, atol=1e-6)
    (notice,) = opened.notices()
    assert "trust_remote_code" in notice
    assert str(own_code) in notice
