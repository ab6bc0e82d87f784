"""What servers are sent with ``--chat`` for tasks whose answers are written freely."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import run_command
from harness.storage.run_folder import Run


@pytest.mark.thorough
@pytest.mark.parametrize("adapter", ["openai", "vllm"])
def test_shots_are_turns_and_answers_end_by_themselves(
    adapter: str, stand_in: Any, folders: dict[str, Path], tmp_path: Path
) -> None:
    with type(stand_in)(folders["plain"], context=4096) as server:
        server.thread.start()
        for task, shots in (("mgsm:fr", 2), ("ntrex_mt:de", 0), ("xlsum:fr", 0)):
            server.requests.clear()
            output = tmp_path / task.partition(":")[0]
            asked = [
                "eval",
                "--tasks",
                task,
                "--model",
                f"{adapter}:{server.url}",
                "--data",
                "sample",
                "--chat",
            ]
            asked += [
                "--limit",
                "1",
                "--output",
                str(output),
                "-o",
                "system=Be brief.",
                "-o",
                "max_tokens=20",
            ]
            assert run_command([*asked, *(["--shots", str(shots)] if shots else [])]) == 0
            [cell] = Run(output).cells
            assert (cell.status, cell.method) == ("ok", "generate")
            [sent] = server.posted("chat/completions")
            assert server.posted("completions") == []
            assert "stop" not in sent
            turns = sent["messages"]
            roles = ["system", *["user", "assistant"] * shots, "user"]
            assert [turn["role"] for turn in turns] == roles
            assert turns[0]["content"] == "Be brief."
            if task == "mgsm:fr":
                assert all(turn["content"].startswith("Question :") for turn in turns[1::2])
                assert all(turn["content"].endswith("\nRéponse étape par étape :") for turn in turns[1::2])
                # The exemplars of the sample end as the authors' do, and the heading is not theirs.
                assert all("La réponse est" in turn["content"] for turn in turns[2::2])
                assert not any(turn["content"].startswith("Réponse étape") for turn in turns[2::2])
            elif task == "ntrex_mt:de":
                assert cell.view["prompt"] == "instruct"
                assert turns[-1]["content"].startswith(
                    "Translate the following text from English into German."
                )
            else:
                assert turns[-1]["content"].endswith("in one sentence, in French:")
        server.shutdown()
