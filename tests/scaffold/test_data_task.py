"""``harness new task NAME --from FILE``: the YAML of a table, its splits, and tables that are rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.planning.run_config import RunConfig, data_options
from harness.running.cell_reader import CellReader
from harness.running.session import open_session, prepare

pytestmark = pytest.mark.thorough

Cli = Callable[..., tuple[int, str, str]]

LANGUAGES = {"English": "en", "swh_Latn": "sw", "hin": "hi"}
ROWS = [
    {"Review": f"{word} {number}", "mood": mood, "lang": called, "id": f"{mood}{number}"}
    for called, word in zip(LANGUAGES, ("thing", "kitu", "baat"), strict=True)
    for mood in ("good", "bad")
    for number in range(6)
]
ASKING = Path(__file__).parents[1] / "running" / "asking_adapter.py"
COLUMNS = ("--text", "Review", "--label", "mood", "--language-column", "lang")


def _write(name: str, rows: list[dict[str, str]]) -> None:
    path = Path(name)
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        mark = {".csv": ",", ".tsv": "\t"}[path.suffix]
        lines = [mark.join(rows[0]), *(mark.join(row.values()) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_becomes_a_task_with_a_prompt(cli: Cli, ending: str) -> None:
    _write(f"reviews.{ending}", ROWS)
    status, _, error = cli("new", "task", "my-mood", "--from", f"reviews.{ending}", *COLUMNS, "--id", "id")
    assert (status, error) == (0, "")
    catalog = open_session([Path("my_mood.yaml")]).catalog
    spec = catalog.task("my_mood").spec
    assert list(spec.languages) == list(LANGUAGES.values())
    assert (spec.label_names, spec.input_names) == (("bad", "good"), ("text",))
    assert spec.parallel, "all languages have the same ids"
    assert spec.transfer is None
    assert catalog.presets("my_mood") == ["default", "letters"]
    for language in LANGUAGES.values():
        status, shown, _ = cli(
            *("tasks", "show", "my_mood", "--tasks-from", "my_mood.yaml", "--data", ".", "--render", language)
        )
        assert status == 0
        assert {"en": "thing 0", "sw": "kitu 0", "hi": "baat 0"}[language] in shown


def test_a_share_is_tested_on_and_never_trained_on(cli: Cli) -> None:
    """Every language and label is divided; the same items of all languages are on one side."""
    _write("reviews.csv", [*ROWS, ROWS[0] | {"id": ROWS[0]["id"]}])
    status, _, error = cli("new", "task", "mood", "--from", "reviews.csv", *COLUMNS, "--test-share", "0.5")
    assert (status, error) == (0, "")
    sides = {
        side: [json.loads(line) for line in Path(f"mood-{side}.jsonl").read_text("utf-8").splitlines()]
        for side in ("train", "test")
    }
    texts = {side: {row["Review"] for row in rows} for side, rows in sides.items()}
    assert not texts["train"] & texts["test"]
    assert sum(map(len, sides.values())) == len(ROWS) + 1
    assert {(row["lang"], row["mood"]) for row in sides["test"]} == {
        (called, mood) for called in LANGUAGES for mood in ("good", "bad")
    }
    run = ("--tasks", "mood", "--tasks-from", "mood.yaml", "--data", ".", "--output", "run")
    assert cli("eval", *run, "--model", "baseline:majority")[0] == 0
    results = json.loads(Path("run/results.json").read_text(encoding="utf-8"))
    assert sum(cell["n"] for cell in results["cells"]) == len(sides["test"])


@pytest.mark.parametrize(
    ("given", "changed", "reported"),
    [
        (["--text", "review"], {}, "Did you mean 'Review'?"),
        ([], {"lang": "Swahilli"}, "did you mean 'Swahili'?"),
        ([], {"lang": "en"}, "both 'English' and 'en'"),
        ([], {"mood": ""}, "row 37: the column 'mood' is empty"),
        (["--language", "sw"], {}, "--language-column COLUMN, or --language CODE"),
        (["--train", "reviews.csv"], {}, "37 rows of 'reviews.csv' are also in 'reviews.csv'"),
        (["--from", "reviews.xlsx"], {}, "must end in .csv"),
    ],
)
def test_tables_that_do_not_fit_are_rejected(
    cli: Cli, given: list[str], changed: dict[str, str], reported: str
) -> None:
    _write("reviews.csv", [*ROWS, ROWS[0] | changed])
    status, _, error = cli("new", "task", "mood", "--from", "reviews.csv", *COLUMNS, *given)
    assert status == 2
    assert reported in error
    assert not Path("mood.yaml").exists()


def test_conditions_choose_rows_and_documents_share_a_file(cli: Cli) -> None:
    """Both conditions must hold; line numbers of the second document count from the top of the file."""
    _write("reviews.csv", ROWS)
    head = "task: {}\nkind: sequence_classification\nversion: 1\ninputs: [text]\nlabels: [bad, good]\n"
    source = "columns: {text: Review, label: mood}, where: {lang: swh_Latn, id: good1}"
    one = (
        head.format("one")
        + f"metrics: [accuracy]\nlanguages: {{sw: {{test: {{local: reviews.csv, {source}}}}}}}\n"
    )
    Path("two.yaml").write_text(f"{one}---\n{one.replace('one', 'two', 1)}", encoding="utf-8")
    status, shown, _ = cli("tasks", "validate", "two.yaml", "--data", ".")
    assert (status, shown.count("1 language, 1 item")) == (0, 2)
    faulty = one.replace("accuracy", "acuracy").replace("one", "two", 1)
    Path("two.yaml").write_text(f"{one}---\n{faulty}", encoding="utf-8")
    status, shown, error = cli("tasks", "validate", "two.yaml")
    assert status == 2
    assert "line 14: metrics.0" in shown + error


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_csv_file_with_another_separator_is_recognised(cli: Cli, separator: str) -> None:
    lines = [("text", "label"), ("nzuri sana", "good"), ("mbaya", "bad")]
    table = "\ufeff" + "".join(f"{separator.join(line)}\r\n" for line in lines)
    Path("reviews.csv").write_bytes(table.encode())
    given = ("--from", "reviews.csv", "--text", "text", "--label", "label", "--language", "sw")
    status, _, error = cli("new", "task", "mood", *given)
    assert status == 2
    assert repr(separator) in error
    assert not Path("mood.yaml").exists()


@pytest.mark.parametrize(
    ("ending", "lines"),
    [
        ("csv", ["a;label", "x, y;good", "z;bad"]),
        ("csv", ['\ufeff"a";"label"', '"x, y";"good"', '"z";"bad"']),
        ("csv", ["a\tlabel", "x\tgood", "y\tbad"]),
        ("csv", ["a|label|b, c", "x|good|1"]),
        ("tsv", ["a,label", "x,good", "y,bad"]),
        ("tsv", ["a;label", "x;good", "y;bad"]),
    ],
)
def test_another_separator_is_named_before_the_rows(cli: Cli, ending: str, lines: list[str]) -> None:
    Path(f"t.{ending}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    status, _, error = cli("new", "task", "mood", "--from", f"t.{ending}", "--text", "a", "--language", "sw")
    assert status == 2
    assert any(repr(mark) in error for mark in lines[0] if mark in ",;\t|")


def test_labels_and_languages_are_stripped_and_tags_of_any_form_read(cli: Cli) -> None:
    rows = [
        '\ufeff"text","label","lang"',
        "好, good ,zh-CN",
        '坏,"bad "," zh-CN"',
        "",
        "c,good,pt_PT",
        "d,bad,pt_PT",
    ]
    Path("t.csv").write_text("\n".join([*rows, "e,good,de", "f,bad,de"]) + "\n", encoding="utf-8")
    status, shown, error = cli("new", "task", "mood", "--from", "t.csv", "--language-column", "lang")
    assert (status, error) == (0, "")
    assert all(name in shown for name in ("'zh-CN'", "'pt_PT'"))
    spec = open_session([Path("mood.yaml")]).catalog.task("mood").spec
    assert spec.label_names == ("bad", "good")
    assert list(spec.languages) == ["zh", "pt", "de"]
    status, shown, error = cli("tasks", "validate", "mood.yaml", "--data", ".")
    assert (status, error) == (0, "")
    assert "3 languages, 6 items" in shown


@pytest.mark.parametrize("label", ["Good", "GOOD", "ｇｏｏｄ", "very  good", "very-good", "very_good"])
def test_labels_in_two_spellings_are_named(cli: Cli, label: str) -> None:
    other = "very good" if "very" in label else "good"
    rows = [f"a,{other}", f"b,{label}", "c,bad", "d,-1", "e,1", "f,C", "g,C++", "h,+", "i,-"]
    Path("t.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    status, _, error = cli("new", "task", "mood", "--from", "t.csv", "--language", "en")
    assert status == 2
    assert repr(label) in error
    assert repr(other) in error
    assert "'C'" not in error


@pytest.mark.parametrize(("count", "preset"), [(2, "letters"), (26, "letters"), (27, "listed")])
def test_a_model_that_writes_sees_the_labels(
    cli: Cli, install_plugin: Callable[..., Path], count: int, preset: str
) -> None:
    """The printed command works with an endpoint: whatever the number of labels, a prompt shows them all."""
    install_plugin("asking_adapter", ASKING.read_text(encoding="utf-8"))
    labels = [f"kind {{{number}}}" for number in range(count)]
    _write("reviews.csv", [{"Review": f"text {label}", "mood": label, "lang": "en"} for label in labels])
    assert cli("new", "task", "mood", "--from", "reviews.csv", *COLUMNS)[0] == 0
    config = RunConfig(
        tasks=("mood",),
        model="asks:writes",
        tasks_from=(Path("mood.yaml"),),
        data=data_options([str(Path.cwd())]),
    )
    prepared = prepare(config)
    [cell] = prepared.plan.cells
    assert cell.prompt is not None
    assert cell.prompt.spec.preset == preset
    reader = CellReader(prepared.session.registry, prepared.finder)
    prompter = reader.prompter(cell)
    assert prompter is not None
    text = prompter.generation(reader.read(cell)[0][0], 0)
    assert isinstance(text, str)
    assert all(label in text for label in labels)
