"""Plans that say what a run does: prompts that fit the model, options that count, folders and names as they are."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnknownNameError, UsageError
from harness.planning.run_config import RunConfig, data_options
from harness.reporting.documents import html_text, markdown_text
from harness.reporting.overview.means import UNREADABLE, WITH_UNREADABLE
from harness.reporting.overview.summary import Summary, summarise
from harness.running.session import check_output_folder, prepare
from harness.storage.run_folder import Run

from ..conftest import Cli
from .mood_spec import MOOD

Say = Callable[[str], str]


class ChatServer(ThreadingHTTPServer):
    """A chat endpoint; `say` writes the answer to the last turn, `asked` are all turns."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.say: Say = lambda _: "B"
        self.asked: list[str] = []

    @property
    def model(self) -> str:
        """The value of ``--model``."""
        return f"openai:http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._answer({"object": "list", "data": [{"id": "tiny"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["messages"][-1]["content"]
        self.server.asked.append(text)
        message = {"role": "assistant", "content": self.server.say(text)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        self._answer({"id": "1", "model": "tiny", "choices": [choice], "usage": usage})

    def _answer(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A running chat endpoint that answers every question with B."""
    server = ChatServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


MAJORITY = ("--tasks", "xnli:en", "--data", "sample", "--model", "baseline:majority")


def config(tasks: str, model: str, **settings: Any) -> RunConfig:
    """Return what a user asks for on sample data."""
    return RunConfig(tasks=tuple(tasks.split(",")), model=model, data=data_options(["sample"]), **settings)


def test_a_model_that_only_writes_sees_what_it_may_answer(cli: Cli, chat: ChatServer, tmp_path: Path) -> None:
    tasks = "xnli:en,xcopa:sw,pawsx:de,xquad:en"
    plan = prepare(config(tasks, chat.model)).plan
    prompts = {cell.spec.task: cell.prompt.spec for cell in plan.cells if cell.prompt is not None}
    assert {task: spec.preset for task, spec in prompts.items()} == {
        "xnli": "letters",
        "xcopa": "letters",
        "pawsx": "mega",
        "xquad": "default",
    }
    assert "cloze" not in {spec.formulation for spec in prompts.values()}
    given = ("--tasks", "xnli:en", "--data", "sample", "--output", tmp_path / "run")
    assert cli("eval", *given, "--model", chat.model)[0] == 0
    [cell] = Run(tmp_path / "run").cells
    assert (cell.unparsed, cell.view) == (0, {"prompt": "letters"})
    assert cell.metrics["accuracy"].value > 0
    assert all("A. " in text and "C. " in text for text in chat.asked)
    assert len(set(chat.asked)) == cell.n, "every item's hypothesis is asked"


def test_a_prompt_that_shows_no_answers_is_skipped_with_the_one_to_give(cli: Cli, chat: ChatServer) -> None:
    given = ("plan", "--tasks", "xnli:en", "--data", "sample", "--model", chat.model)
    status, out, err = cli(*given, "--prompt", "lm_eval")
    assert status == 0, err
    assert prepare(config("xnli:en", chat.model, prompt=("lm_eval",))).plan.cells == ()
    assert "--prompt letters" in out
    assert prepare(config("xnli:en", chat.model, prompt=("letters",))).plan.cells


SUITE = """\
suite: pair
description: Two tasks.
citation: mine2026
protocol: prompted
tasks: [xnli]
categories: {inference: [xnli]}
"""


@pytest.fixture
def half_read(cli: Cli, chat: ChatServer, tmp_path: Path) -> Run:
    """A run of a suite in two languages, in one of which the model answers in sentences."""
    (tmp_path / "pair.yaml").write_text(SUITE, encoding="utf-8")
    chat.say = lambda text: "I would rather not say." if "Swali" in text else "B"
    run = tmp_path / "run"
    given = ("--tasks", "pair", "--tasks-from", tmp_path / "pair.yaml", "--languages", "en,sw")
    status, _, err = cli("eval", *given, "--data", "sample", "--output", run, "--model", chat.model)
    assert status == 0, err
    return Run(run)


def _shown(summary: Summary) -> dict[str, Any]:
    return {code: scores[0] for part in summary.sections for code, _, scores in part.rows}


def test_a_cell_whose_answers_cannot_be_read_has_no_score(half_read: Run) -> None:
    cells = {cell.language: cell for cell in half_read.cells}
    assert cells["sw"].unparsed == cells["sw"].n == 24
    assert cells["sw"].metrics["accuracy"].value == 0, "results keep their numbers"
    summary = summarise([half_read])
    scores = _shown(summary)
    assert (scores["sw"].value, scores["sw"].mark) == (None, UNREADABLE)
    assert scores["en"].value > 0
    assert "24 of 24" in " ".join(summary.notes)
    means = dict(summary.means)
    assert means["mean"][0].mark == WITH_UNREADABLE
    [suite] = summary.suites
    assert all(WITH_UNREADABLE in score.mark for score in suite.rows[0][1] if score.value is not None)
    assert any(score.value is not None for score in suite.rows[0][1])
    for render in (markdown_text, html_text):
        assert UNREADABLE in render([half_read])


@pytest.mark.parametrize(
    ("tasks", "settings", "option"),
    [
        ("xnli:en", {"shots": 5}, "--shots 5"),
        ("xnli:en", {"prompt": ("letters",)}, "--prompt letters"),
        ("xnli:en", {"chat": True}, "--chat"),
        ("tatoeba:de", {"seeds": (1, 2), "protocols": ("frozen",)}, "--seeds 1,2"),
        ("tatoeba:de", {"recipe": "quick", "protocols": ("frozen",)}, "--recipe quick"),
        ("tatoeba:de", {"train_limit": 5, "protocols": ("frozen",)}, "--train-limit 5"),
        ("xnli:en", {"instruction_language": "de"}, "--instruction-language de"),
        *(
            ("xnli:en", settings, None)
            for settings in ({}, {"seeds": (1, 2)}, {"recipe": "quick"}, {"train_limit": 5})
        ),
        ("tatoeba:de", {"protocols": ("frozen",)}, None),
        ("xnli:en", {"train_languages": ("en",)}, None),
    ],
)
def test_only_an_option_without_effect_is_a_note(
    tasks: str, settings: dict[str, Any], option: str | None
) -> None:
    notes = prepare(config(tasks, "baseline:majority", **settings)).plan.notes
    if option is None:
        assert notes == ()
    else:
        assert [note for note in notes if note.startswith(f"{option} ")]


def test_prompt_options_count_for_a_model_that_is_prompted(chat: ChatServer) -> None:
    settings: dict[str, Any] = {"shots": 2, "prompt": ("letters",), "chat": True}
    assert prepare(config("xnli:en", chat.model, **settings)).plan.notes == ()
    notes = prepare(config("xnli:en", chat.model, seeds=(1, 2), prompt=("letters",))).plan.notes
    assert [note for note in notes if note.startswith("--seeds 1,2 ")]


def test_the_note_is_shown_before_the_run_and_kept(cli: Cli, tmp_path: Path) -> None:
    _, out, _ = cli("plan", *MAJORITY, "--shots", "5")
    assert "note: --shots 5 " in out
    status, _, err = cli("eval", *MAJORITY, "--shots", "5", "--output", tmp_path / "run")
    assert status == 0
    assert "note: --shots 5 " in err
    for name in ("manifest.json", "results.json"):
        notes = json.loads((tmp_path / "run" / name).read_text(encoding="utf-8"))["notes"]
        assert len([note for note in notes if "--shots 5" in note]) == 1


def test_an_unknown_prompt_is_an_error(cli: Cli) -> None:
    with pytest.raises(UnknownNameError) as caught:
        prepare(config("xnli:en,xquad:en", "baseline:majority", prompt=("leters",)))
    assert caught.value.near == ["letters"]
    assert cli("eval", *MAJORITY, "--prompt", "nosuchprompt")[0] == 2
    assert not Path("runs").exists()


MOODS = f"""\
{MOOD.replace("[accuracy]", "[accuracy, macro_f1]")}score_metrics: [accuracy, macro_f1]
chance: 0.5
transfer: {{source: en, stages: [mood], recipe: quick}}
languages:
  en:
    train: {{local: mood.jsonl, reader: jsonl}}
    test: {{local: test.jsonl, reader: jsonl}}
    provenance: native
"""


def _moods(folder: Path) -> tuple[object, ...]:
    """Write a task with its data into a folder, and return the options that name both."""
    folder.mkdir(parents=True)
    rows = [{"id": str(n), "text": f"text {n}", "label": "good" if n % 2 else "bad"} for n in range(6)]
    for name in ("mood", "test"):
        text = "".join(json.dumps({**row, "text": f"{name} {row['text']}"}) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "mood.yaml").write_text(MOODS, encoding="utf-8")
    model = ("--model", "baseline:majority")
    return ("--tasks", "mood", "--tasks-from", folder / "mood.yaml", "--data", folder, *model)


def test_chance_is_that_of_the_first_metric_alone(cli: Cli, tmp_path: Path) -> None:
    given = _moods(tmp_path / "data")
    status, _, err = cli("eval", *given, "--output", tmp_path / "run")
    assert status == 0, err
    summary = summarise([Run(tmp_path / "run")])
    assert [column.metric for column in summary.columns] == ["accuracy", "macro_f1"]
    assert [score.value for score in dict(summary.means)["chance"]] == [0.5, None]


def test_the_table_of_a_plan_keeps_every_character(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / f"{'long_' * 12}[data]" / f"{'name_' * 12}end"
    status, out, err = cli("plan", *_moods(folder), "--seeds", "1,2", "--train-languages", "en", "--details")
    assert status == 0, err
    columns = out.splitlines()[[" view" in line for line in out.splitlines()].index(True) :]
    start = columns[0].index("data")
    assert str(folder) in "".join(line[start:].strip() for line in columns)
    assert "…" not in out
    assert "zero_shot_transfer" in out
    assert "train_languages=en" in out


def test_every_missing_language_is_named(cli: Cli, tmp_path: Path) -> None:
    tasks = ("--tasks", "xnli,xquad", "--languages", "sw,et,en")
    given = (*tasks, "--data", "sample", "--model", "baseline:majority")
    _, out, _ = cli("plan", *given, "--details")
    [line] = [line for line in out.splitlines() if "skipped xquad" in line]
    assert "Swahili (sw)" in line
    assert "Estonian (et)" in line
    [other] = [line for line in out.splitlines() if "skipped xnli" in line]
    assert "Swahili" not in other
    assert cli("eval", *given, "--output", tmp_path / "run")[0] == 0
    [group] = [group for group in summarise([Run(tmp_path / "run")]).skipped if group.task == "xquad"]
    assert group.languages == ("sw", "et")
    assert "Swahili (sw)" in group.reason
    assert "Estonian (et)" in group.reason


@pytest.mark.parametrize("output", [".", "..", "used"])
def test_a_folder_that_holds_something_else_is_no_output(cli: Cli, tmp_path: Path, output: str) -> None:
    Path("used").mkdir()
    Path("used/notes.txt").write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError):
        check_output_folder(config("xnli:en", "baseline:majority", output=Path(output)))
    assert cli("eval", *MAJORITY, "--output", output)[0] == 2
    assert sorted(tmp_path.rglob("*")) == before


def test_an_empty_folder_becomes_a_run(cli: Cli) -> None:
    Path("empty").mkdir()
    assert cli("eval", *MAJORITY, "--output", "empty")[0] == 0
    assert Path("empty/results.json").is_file()
    assert cli("eval", *MAJORITY, "--output", "empty")[0] == 2
