from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import Field, create_model

from harness.errors import AdapterError, MissingExtraError, UsageError
from harness.models.adapters import AdapterEntry, ModelReference
from harness.models.capabilities import ModelDescription
from harness.models.options import AdapterOptions, option_meanings
from harness.planning.planner import resolve_model
from harness.running.session import open_session
from tests.conftest import InstallPlugin


class WordOptions(AdapterOptions):
    """Options with every way to describe them."""

    first: int = 0
    """The first word,
    in two lines."""
    second: str = Field(default="", description="Described.")
    """Not shown."""
    third: bool = False


class InheritedOptions(WordOptions):
    third: bool = True
    """Described later."""


def test_an_option_means_its_description_or_its_docstring() -> None:
    own = {"first": "The first word, in two lines.", "second": "Described.", "third": ""}
    assert option_meanings(WordOptions) == own
    assert option_meanings(InheritedOptions) == own | {"third": "Described later."}
    made = create_model("made", __base__=WordOptions, fourth=(int, Field(default=1, description="Made.")))
    assert option_meanings(made) == own | {"fourth": "Made."}


def _entry(**fields: Any) -> AdapterEntry:
    given = {"name": "mine", "target": "mine:open", "describe": "mine:describe", "options": "mine:Options"}
    return AdapterEntry(**{**given, "summary": "s", **fields})


def test_a_reference_is_split_at_its_first_colon() -> None:
    reference = ModelReference.parse("vllm:http://127.0.0.1:8000")
    assert (reference.scheme, reference.ref) == ("vllm", "http://127.0.0.1:8000")
    assert str(reference) == "vllm:http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("xlm-r", "'xlm-r' is not of the form ADAPTER:NAME_OR_PATH. Did you mean 'hf:xlm-r'"),
        *((text, f"{text!r} is not of the form ADAPTER:NAME_OR_PATH. Run") for text in ("hf:", ":x", "")),
    ],
)
def test_a_reference_without_an_adapter_or_a_name_is_rejected(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ModelReference.parse(text)


def test_a_missing_extra_names_the_command_that_installs_it(install_plugin: InstallPlugin) -> None:
    install_plugin("mine", "import not_installed_anywhere")
    with pytest.raises(MissingExtraError, match=r"pip install 'multilingual-harness\[hf\]'"):
        _entry(extra="hf").load("mine:open")
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        _entry().load("mine:open")
    with pytest.raises(ModuleNotFoundError, match="no_such_adapter"):
        _entry(extra="hf").load("no_such_adapter.inner:open")


def test_what_is_opened_must_be_an_adapter(install_plugin: InstallPlugin) -> None:
    install_plugin("mine", "def open(description, options): return object()\n")
    description = ModelDescription(adapter="mine", ref="x", offers=frozenset())
    with pytest.raises(AdapterError, match=r"'mine'.*identity\(\).*close\(\)"):
        _entry().open(description, AdapterOptions())


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_no_garbage_is_looked_for_while_a_model_is_opened(
    install_plugin: InstallPlugin, enabled: bool, fails: bool
) -> None:
    body = "assert not gc.isenabled()\ndef open(description, options):\n    assert not gc.isenabled()\n"
    body += "    raise KeyError" if fails else "    return types.SimpleNamespace(identity=None, close=None)"
    install_plugin("mine", f"import gc, types\n{body}\n")
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(KeyError) if fails else nullcontext():
            _entry().open(ModelDescription(adapter="mine", ref="x", offers=frozenset()), AdapterOptions())
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_a_description_may_lead_to_another_adapter(install_plugin: InstallPlugin) -> None:
    install_plugin(
        "mine",
        """
from harness import hookimpl
from harness.models import AdapterEntry, ModelDescription
from harness.models.options import AdapterOptions, option_meanings

class Options(AdapterOptions):
    size: int = 1

class LargeOptions(Options):
    depth: int = 2

def describe(ref, options):
    return ModelDescription(adapter="mine-large", ref=ref, offers=frozenset())

@hookimpl
def harness_register_adapters():
    return [
        AdapterEntry(name="mine", target="mine:x", describe="mine:describe", options="mine:Options", summary="s"),
        AdapterEntry(name="mine-large", target="mine:x", describe="mine:describe", options="mine:LargeOptions",
                     summary="s"),
    ]
""",
    )
    model = resolve_model(open_session().registry.adapters, "mine:model", {"size": "3"})
    assert (str(model.reference), model.entry.name) == ("mine:model", "mine-large")
    assert model.options.model_dump() == {"size": 3, "depth": 2}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("openai", "openai:https://"),
        ("openai:", "openai:https://"),
        ("vllm", "vllm:models/"),
        ("hf", "hf:"),
        ("baseline", "baseline:"),
        ("openai:gpt-4o", "-o model=gpt-4o"),
    ],
)
def test_an_adapter_without_a_model_gets_its_first_example(text: str, wanted: str) -> None:
    if text == "openai:gpt-4o":
        pytest.importorskip("httpx", reason="httpx is not installed: pip install '.[endpoints]'")
    with pytest.raises(UsageError) as caught:
        resolve_model(open_session().registry.adapters, text, {})
    assert wanted in str(caught.value.hint)


def test_callbacks_are_those_that_adapters_declare(install_plugin: InstallPlugin) -> None:
    declaration = """
from harness import hookimpl
from harness.models import AdapterEntry

class Follow:
    pass

@hookimpl
def harness_register_adapters():
    given = dict(target="mine:x", describe="mine:x", options="mine:x", summary="s")
    return [AdapterEntry(name="mine", callbacks=("mine:Follow", "needy:Leave"), extra="hf", **given)]
"""
    install_plugin("mine", {"mine.py": declaration, "needy.py": "import not_installed_anywhere\n"})
    from harness import callbacks

    assert callbacks.Follow.__module__ == "mine"
    with pytest.raises(MissingExtraError):
        _ = callbacks.Leave
    with pytest.raises(ImportError, match="Folow"):
        from harness.callbacks import Folow  # noqa: F401
