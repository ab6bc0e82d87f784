"""What is published works where nothing else is: wheel and sdist in an empty environment (`make release-check`).

Packages come from the package registry, so these tests are no part of `make test`.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.packaging, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BENCHMARK = "eval --tasks xtreme_r --model baseline:char-ngram --data sample".split()
"""The command that every release must run as it stands."""
HEAVY = ("torch", "transformers", "datasets", "pandas", "accelerate", "huggingface_hub", "vllm", "sacrebleu")


def _run(*arguments: str | Path, folder: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program in a folder of its own, with none of our source on its path unless `path` names it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MYPY"))
    }
    environment |= {
        "HARNESS_CACHE": str(folder / "cache"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "80",
    }
    if path:
        environment["PYTHONPATH"] = path
    return subprocess.run(
        list(map(str, arguments)),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=500,
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that is removed at once: an environment is large."""
    with tempfile.TemporaryDirectory(prefix="harness-release-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def dist(folder: Path) -> Path:
    """The folder with the sdist, and the wheel that was built from it."""
    built = _run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT, folder=folder
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def bin_folder(dist: Path, folder: Path) -> Path:
    """The programs of an environment that holds the wheel with the extra of the baselines, nothing else."""
    made = _run(sys.executable, "-m", "venv", folder / "empty", folder=folder)
    assert made.returncode == 0, made.stderr
    programs = folder / "empty" / "bin"
    [wheel] = dist.glob("*.whl")
    installed = _run(programs / "pip", "install", "--quiet", f"{wheel}[baselines]", folder=folder)
    assert installed.returncode == 0, installed.stderr
    return programs


def _scores(run: Path) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the values and counts of a run's cells, by task, language and status."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    return {
        (cell["task"], cell["language"], cell["status"]): {
            "n": cell["n"],
            **{name: metric["value"] for name, metric in cell["metrics"].items()},
        }
        for cell in results["cells"]
    }


def test_the_sdist_holds_what_a_packager_needs_and_no_results(dist: Path) -> None:
    [path] = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {
        "LICENSE",
        "NOTICE",
        "README.md",
        "CHANGELOG.md",
        "PKG-INFO",
        "pyproject.toml",
        "tests/conftest.py",
    }
    tops = {name.split("/")[0] for name in names}
    assert not tops & {"models", "runs", "dist", "build"}
    assert [name for name in tops if name.startswith(".") and name != ".gitignore"] == []
    assert [name for name in names if name.endswith((".safetensors", ".npz", ".pyc", ".bin"))] == []
    assert path.stat().st_size < 5_000_000


def test_nothing_but_what_the_core_needs_is_installed(bin_folder: Path, folder: Path) -> None:
    code = f"import importlib.util as u; print([n for n in {HEAVY} if u.find_spec(n)])"
    assert _run(bin_folder / "python", "-c", code, folder=folder).stdout == "[]\n"
    assert _run(bin_folder / "pip", "check", folder=folder).returncode == 0


def test_the_commands_answer(bin_folder: Path, folder: Path) -> None:
    version = _run(bin_folder / "harness", "--version", folder=folder)
    assert (version.returncode, version.stdout) == (0, f"harness {PROJECT['version']}\n")
    shown = _run(bin_folder / "python", "-c", "import harness; print(harness.__version__)", folder=folder)
    assert shown.stdout == f"{PROJECT['version']}\n"
    assert _run(bin_folder / "harness", "--help", folder=folder).returncode == 0
    listed = _run(bin_folder / "harness", "plugins", folder=folder)
    assert listed.returncode == 0
    assert {line.split()[-1] for line in listed.stdout.splitlines()[2:] if line.split()} <= {"ok", "─" * 80}


def test_doctor_shows_what_is_missing_and_that_nothing_is_broken(bin_folder: Path, folder: Path) -> None:
    result = _run(bin_folder / "harness", "doctor", "--json", "doctor.json", folder=folder)
    assert (result.returncode, result.stderr, result.stdout.splitlines()[-1]) == (0, "", "Nothing is broken.")
    rows = json.loads((folder / "doctor.json").read_text(encoding="utf-8"))
    features = {row["name"]: row for row in rows if row["area"] == "feature"}
    assert features["board"]["state"] == "ok"
    for name in ("evaluate", "hf", "metrics", "retrieval", "translate", "typology", "vllm"):
        assert features[name]["state"] == "missing"
        assert features[name]["advice"] == f"pip install 'multilingual-harness[{name}]'"
    versions = {row["name"] for row in rows if row["area"] == "version" and row["state"] == "ok"}
    assert versions >= {"numpy", "pyarrow", "pydantic", "scipy", "typer", "rich", "pluggy", "pyyaml"}


def test_the_benchmark_gives_the_scores_of_the_source_tree(bin_folder: Path, folder: Path) -> None:
    run = _run(bin_folder / "harness", *BENCHMARK, "--output", folder / "installed", folder=folder)
    assert run.returncode == 0, run.stderr
    path = os.pathsep.join(str(ROOT / name) for name in ("", "plugins", "model_adapters", "task_specs"))
    source = _run(
        *(sys.executable, "-m", "harness", *BENCHMARK, "--output", str(folder / "source")),
        folder=folder,
        path=path,
    )
    assert source.returncode == 0, source.stderr
    scores, expected = _scores(folder / "installed"), _scores(folder / "source")
    assert len([status for _, _, status in scores if status == "ok"]) == 80
    assert scores.keys() == expected.keys()
    for cell, values in scores.items():
        assert values == pytest.approx(expected[cell], rel=1e-9), cell
    report = _run(bin_folder / "harness", "report", folder / "installed", folder=folder)
    assert report.returncode == 0
    assert "Suite xtreme_r" in report.stdout


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        ("eval --tasks xnli:de --model hf:some/model --data sample", "huggingface_hub", "hf"),
        ("models hf:some/model", "huggingface_hub", "hf"),
        ("eval --tasks xnli:de --model hf:model --data sample", "torch", "hf"),
        ("eval --tasks vyakarana_pos --model hf:model --data sample --method probe", "torch", "hf"),
        ("eval --tasks xnli:de --model baseline:majority", "datasets", "hf"),
        ("eval --tasks xnli:de --model baseline:majority --data sample --num-processes 2", "torch", "hf"),
        ("translate --tasks xnli:de --translator hf-seq2seq:m --data sample --output t", "torch", "hf"),
        ("score small --metrics chrf", "sacrebleu", "metrics"),
        ("score small --metrics evaluate:rouge --allow-code", "evaluate", "evaluate"),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_command(
    bin_folder: Path, folder: Path, command: str, package: str, extra: str
) -> None:
    (folder / "model").mkdir(exist_ok=True)
    config = {"model_type": "bert", "architectures": ["BertModel"]}
    (folder / "model/config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "model/tokenizer.json").write_text("{}", encoding="utf-8")
    if not (folder / "small").exists():
        made = "eval --tasks xquad:de --model baseline:majority --data sample --limit 3 --output small"
        assert _run(bin_folder / "harness", *made.split(), folder=folder).returncode == 0
    result = _run(bin_folder / "harness", *command.split(), folder=folder)
    assert result.returncode == 2
    message = result.stderr.splitlines()[-1]
    assert message.startswith("Error: ")
    assert f"needs the package {package!r}, which is not installed." in message
    assert message.endswith(f"Run: pip install 'multilingual-harness[{extra}]'")


def test_a_type_checker_sees_the_types(bin_folder: Path, folder: Path) -> None:
    packages = sorted(
        path.parent.name for path in bin_folder.parent.glob("lib/python*/site-packages/harness*/py.typed")
    )
    script = folder / "user.py"
    script.write_text(
        "".join(f"import {name}\n" for name in packages)
        + 'run = harness.evaluate("xnli:sw", "baseline:majority", data="sample")\n'
        + "reveal_type(run)\n"
        + "harness.evaluate(1, 2)\n",
        encoding="utf-8",
    )
    checked = _run(
        *(sys.executable, "-m", "mypy", "--strict", "--python-executable", bin_folder / "python"),
        *("--config-file", os.devnull, "--cache-dir", folder / "mypy", script),
        folder=folder,
    )
    lines = checked.stdout.splitlines()
    at = len(packages) + 2
    roots = [ROOT, *(ROOT / name for name in ("plugins", "model_adapters", "task_specs"))]
    shipped = sorted(
        path.name for root in roots for path in root.glob("harness*") if (path / "__init__.py").is_file()
    )
    assert packages == shipped
    assert f'user.py:{at}: note: Revealed type is "harness.reporting.overview.overview.LoadedRun"' in lines[0]
    assert {line.split(":")[1] for line in lines[1:-1]} == {str(at + 1)}, checked.stdout
    assert checked.stdout.count("[arg-type]") == 2


def test_the_sdist_makes_the_same_wheel(bin_folder: Path, dist: Path, folder: Path) -> None:
    [sdist] = dist.glob("*.tar.gz")
    site = folder / "site"
    installed = _run(
        bin_folder / "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--target",
        site,
        sdist,
        folder=folder,
    )
    assert installed.returncode == 0, installed.stderr
    assert _digests(site) == _digests(next(bin_folder.parent.glob("lib/python*/site-packages")))
    where = "import harness, harness_task_specs as t; print(harness.__file__, t.__file__)"
    assert (
        _run(bin_folder / "python", "-c", where, folder=folder, path=str(site)).stdout.count(str(site)) == 2
    )
    run = _run(
        *(
            bin_folder / "python",
            "-m",
            "harness",
            "eval",
            "--tasks",
            "xnli:de",
            "--model",
            "baseline:majority",
        ),
        *("--data", "sample", "--output", folder / "from-sdist"),
        folder=folder,
        path=str(site),
    )
    assert run.returncode == 0, run.stderr


def _digests(site: Path) -> dict[str, str]:
    """Return the files of our package that a folder's record names, with their digests."""
    [record] = site.glob("multilingual_harness-*.dist-info/RECORD")
    with record.open(encoding="utf-8", newline="") as file:
        rows = {name: digest for name, digest, _ in csv.reader(file)}
    return {
        name: digest for name, digest in rows.items() if name.split("/")[0].startswith("harness") and digest
    }


def test_the_readme_names_the_repository() -> None:
    """The placeholder of the clone command is replaced, once the package states the URL of its repository."""
    url = PROJECT.get("urls", {}).get("Repository")
    if url is None:
        pytest.skip("pyproject.toml has no [project.urls] Repository: the project has no public address yet")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "<repository URL>" not in readme
    assert url in readme
