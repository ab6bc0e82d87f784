"""The commands whose results are frozen: those that make runs, and those that read them.

Each is the line that a user would type, in a folder with ``models`` and ``runs``. A command depends on the models and
runs that its line names. ``{out}`` is the command's folder for files, ``{server}`` the address of the stand-in.
"""

from __future__ import annotations

KINDS = (
    "--tasks tatoeba,multiblimp,belebele,xcopa,mgsm,lareqa,xnli,xquad,xlsum,wikiann_raw,udpos,ntrex_mt,"
    "vyakarana_gcm:hi "
    "--languages en,de,hi,sw,zh --data sample --recipe quick --limit 4"
)
"""Each of the core's kinds, in languages of four families and three scripts."""
MODELS = {
    "baseline": "baseline:char-ngram --seeds 1,2",
    "encoder": "hf:models/encoder -o device=cpu --seeds 1",
    "decoder": "hf:models/decoder -o device=cpu --seeds 1",
    "server": "vllm:{server} -o tokenizer=models/decoder --seeds 1",
}
SHORT = "--data sample --recipe quick"
SUITE = f"--tasks xtreme_r {SHORT} --limit 12 --seeds 1"

RUNS = {
    **{name: f"eval --model {model} {KINDS}" for name, model in MODELS.items()},
    "suite": f"eval --model baseline:random {SUITE} --with-baselines --with-published",
    "later": f"eval --model baseline:random -o seed=2 {SUITE}",
    "variants": "eval --model baseline:char-ngram --tasks xnli --languages en,de,hi,sw --seeds 3 --limit 12 "
    f"--variants original,tt,te,bt --translator identity,reverse {SHORT}",
    "prompts": "eval --model vllm:{server} -o tokenizer=models/decoder --tasks xnli:en+de,xcopa:sw,mgsm:en+de "
    f"--prompt default,letters --shots 2 --limit 4 {SHORT}",
    "repeats": "eval --model vllm:{server} -o tokenizer=models/decoder -o temperature=0.7 "
    f"--tasks mgsm:en+de,xquad:en+de --repeats 3 --limit 6 {SHORT}",
    "budget": f"eval --model baseline:random --tasks xnli:en+de+sw --budget 66 {SHORT}",
    "part-1": f"eval --model baseline:random --tasks xnli,xquad --shard 1/2 --seeds 1 {SHORT}",
    "part-2": f"eval --model baseline:random --tasks xnli,xquad --shard 2/2 --seeds 1 {SHORT}",
    "merged": "merge runs/part-1 runs/part-2",
    "relabelled": "score runs/merged --gold gold.jsonl --metrics macro_f1",
}
"""By the name of the run, whose folder the line gets as ``--output``."""

FILES = {
    "gate.yaml": "margin: 2\ncorrection: holm\ntasks:\n  xnli: {margin: 3, languages: {sw: 5}}\n"
    "required: {tasks: [xnli], languages: [de]}\n",
    "gold.jsonl": "".join(
        f'{{"task": "xnli", "language": "{code}", "id": "{number}-e", "label": "neutral"}}\n'
        for code in ("de", "hi", "sw")
        for number in range(1, 5)
    ),
    "scores.tsv": "model\tsetting\txnli\txquad_f1\txquad_em\nlarge\tzero-shot\t76.0\t72.3\t55.1\n"
    "small\tzero-shot\t74.9\tNA\t\n",
}
"""Files that commands read, by name."""

READ = (*MODELS, "suite", "variants", "prompts", "repeats", "budget", "merged", "relabelled")
"""Runs whose reports are frozen."""
PARTS = ("notes", "matrices", "unreadable", "equity", "probing", "consistency", "explain", "brief")
SECTIONS = ("asked", "cases")
SUFFIXES = {"markdown": "md", "latex": "tex", "systems-latex": "tex", "probing-csv": "csv", "text": "txt"} | {
    "eee": "json",
    "model-index": "yaml",
}
"""Suffixes of files that differ from the name of their format."""
FOLDERS = ("eval-results", "lm_eval", "mteb", "svg")
"""Formats that write a folder of files."""
FORMATS = ("csv", "html", "json", "latex", "markdown")
EXPORTS = ("csv", "eee", "eval-results", "latex", "lm_eval", "model-index", "systems-latex")
WHOLE = (*MODELS, "suite", "prompts")
"""Runs of whose reports all parts are frozen one by one."""
DRAWN = ("encoder", "suite", "prompts")
"""Runs whose figures are frozen."""
FOUR = " ".join(f"runs/{name}" for name in MODELS)
LINE = "runs/suite runs/later"


def _target(name: str) -> str:
    return "{out}/files" if name in FOLDERS else f"{{out}}/file.{SUFFIXES.get(name, name)}"


def _reports() -> dict[str, str]:
    lines = {f"report/{run}/console": f"report runs/{run}" for run in READ}
    lines["report/suite/script"] = "report runs/suite --by script"
    lines["report/suite/published"] = "report runs/suite --with-published --title Title"
    lines["report/four/console"] = f"report {FOUR}"
    lines["report/two/html"] = f"report runs/server runs/decoder --format html --output {_target('html')}"
    lines["report/server/item"] = "report runs/server --item 3-e --json {out}/rows.json"
    lines["report/encoder/probes"] = (
        f"report runs/encoder --format probing-csv --output {_target('probing-csv')}"
    )
    lines["report/encoder/against"] = "report runs/encoder --probing --against runs/decoder"
    for run in READ:
        for name in (*FORMATS, *(["svg"] if run in DRAWN else [])):
            lines[f"report/{run}/{name}"] = f"report runs/{run} --format {name} --output {_target(name)}"
        for part in PARTS if run in WHOLE else ():
            lines[f"report/{run}/{part}"] = f"report runs/{run} --{part} --json {{out}}/rows.json"
        for section in SECTIONS if run in WHOLE else ():
            lines[f"report/{run}/{section}"] = f"report runs/{run} --section {section}"
    return lines


def _comparisons() -> dict[str, str]:
    sets = {"four": FOUR, "line": LINE, "seeds": "runs/baseline runs/variants", "prompts": "runs/prompts"}
    lines = {}
    for name, runs in sets.items():
        lines[f"compare/{name}/console"] = f"compare {runs} --json {{out}}/rows.json --items {{out}}/ids.json"
        for kind in ("markdown", "csv", "latex", "svg"):
            lines[f"compare/{name}/{kind}"] = f"compare {runs} --format {kind} --output {_target(kind)}"
    return lines | {
        "compare/history": f"compare --history {LINE} --json {{out}}/rows.json",
        "compare/strict": f"compare --strict {LINE} --tasks xnli --languages de,sw",
        "compare/metric": f"compare {LINE} --tasks xnli --metric macro_f1",
        "compare/published": f"compare --with-published {LINE}",
        "compare/gold": "compare runs/merged runs/relabelled --tasks xnli",
    }


def _diagnoses() -> dict[str, str]:
    lines = {
        f"diagnose/{run}/rows": f"diagnose runs/{run} --format json --output {{out}}/rows.json"
        for run in READ
    }
    for kind in ("text", "csv", "latex", "markdown"):
        lines[f"diagnose/suite/{kind}"] = f"diagnose runs/suite --format {kind} --output {_target(kind)}"
        lines[f"diagnose/line/{kind}"] = f"diagnose {LINE} --format {kind} --output {_target(kind)}"
    return lines | {
        "diagnose/line/rows": f"diagnose {LINE} --format json --output {{out}}/rows.json",
        "diagnose/two/rows": "diagnose runs/encoder runs/decoder --format json --output {out}/rows.json",
        "diagnose/against": "diagnose runs/suite --language de --against en --tasks xnli --json {out}/rows.json",
        "diagnose/data": "diagnose runs/suite --data-only",
        "diagnose/paper": "diagnose runs/suite --edges paper --examples 1",
        "diagnose/variant": "diagnose runs/variants --language de --variant te",
    }


def _others() -> dict[str, str]:
    lines = {
        f"export/{run}/{name}": f"export runs/{run} --to {name} --allow-sample --output {_target(name)}"
        for run in WHOLE
        for name in EXPORTS
    }
    for name in ("csv", "latex", "systems-latex"):
        lines[f"export/four/{name}"] = f"export {FOUR} --to {name} --allow-sample --output {_target(name)}"
    for run in ("baseline", "encoder", "decoder"):
        lines[f"export/{run}/mteb"] = f"export runs/{run} --to mteb --allow-sample --output {_target('mteb')}"
    written = "--details --json {out}/rows.json --junit {out}/gate.xml --markdown {out}/gate.md"
    tables = "--csv {out}/scores.csv --json {out}/scores.json"
    return lines | {
        "gap/rows": "gap runs/variants --json {out}/rows.json --output {out}/page.html",
        "gap/common": "gap runs/variants --common --metric accuracy --k 1 --languages de,sw",
        "gap/latex": "gap runs/variants --format latex",
        "board/four": f"board {FOUR} --output {{out}}/page.html {tables}",
        "board/line": f"board {LINE} --title Line --output {{out}}/page.html {tables}",
        "board/diagnosis": "board runs/merged runs/prompts --with-diagnosis --output {out}/page.html "
        + tables,
        "board/site": f"board {LINE} --site {{out}}/site",
        "board/scores": "board --from-scores scores.tsv --rename small=tiny --output {out}/page.html "
        + tables,
        "board/published": "board runs/suite --from-published xtreme_r --output {out}/page.html " + tables,
        "gate/line": f"gate runs/later --against runs/suite {written}",
        "gate/policy": f"gate runs/later --against runs/suite --policy gate.yaml {written}",
        "gate/models": f"gate runs/decoder --against runs/encoder {written}",
        "gate/kinds": f"gate runs/server --against runs/decoder {written}",
    }


OUTPUTS = {**_reports(), **_comparisons(), **_diagnoses(), **_others()}
"""By the name of the output."""
