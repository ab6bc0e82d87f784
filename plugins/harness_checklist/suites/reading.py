"""Reads the tests of a language file: contexts, questions, fill-ins with their forms and conditions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import cast

import yaml

from harness import near_names
from harness_checklist.suites.node import Reader
from harness_checklist.suites.suite import (
    Condition,
    ContextTemplate,
    Entry,
    FillIn,
    Form,
    Gender,
    ListedFillIn,
    PairFillIn,
    Place,
    QuestionTemplate,
    TestTemplate,
)

__all__ = ["TestReader"]

_TEST_KEYS = ("names", "balance", "contexts", "questions", "fill", "zip")
_PAIR_KEYS = ("pairs", "named", "ordered")


class TestReader:
    """Reads all tests of a file; keeps the place of every text and the ids of faulty tests."""

    __test__ = False

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.places: dict[tuple[int, str | int], Place] = {}
        """As `harness_checklist.suites.checking.Places`; a whole test has the part ``""``."""
        self.faulty: set[str] = set()
        """Tests with a wrong shape: their contents are not checked."""
        self._fill_nodes: dict[str, yaml.Node] = {}
        self._fills: dict[str, dict[str, FillIn]] = {}

    def read(self, node: yaml.Node, declared: Collection[str]) -> dict[str, TestTemplate]:
        """Return the tests by id, in the order in which the suite declares them."""
        found = self._reader.mapping(node, "tests")
        if not found:
            self._reader.fault("no tests are given", node, "tests")
        tests: dict[str, dict[str, yaml.Node]] = {}
        for name, item in found.items():
            if name not in declared:
                near = near_names(name, declared)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                self._reader.fault(f"suite.yaml declares no test {name!r}{hint}", item, "tests")
                continue
            tests[name] = self._reader.mapping(item, f"tests.{name}", _TEST_KEYS, ("contexts", "questions"))
            if "fill" in tests[name]:
                self._fill_nodes[name] = tests[name]["fill"]
        read = {}
        for name in declared:
            if name in tests:
                before = len(self._reader.problems)
                read[name] = self._test(name, tests[name])
                for part in ("balance", "zip"):
                    if part in tests[name]:
                        self.places[id(read[name]), part] = self._reader.text_place(tests[name][part])
                self.places[id(read[name]), ""] = replace(self._reader.place(found[name]), column=None)
                if len(self._reader.problems) > before:
                    self.faulty.add(name)
        return read

    def _test(self, name: str, keys: dict[str, yaml.Node]) -> TestTemplate:
        key, reader = f"tests.{name}", self._reader
        contexts = reader.sequence(keys["contexts"], f"{key}.contexts") if "contexts" in keys else []
        questions = reader.sequence(keys["questions"], f"{key}.questions") if "questions" in keys else []
        genders = ("any", "male", "female")
        zips = reader.sequence(keys["zip"], f"{key}.zip") if "zip" in keys else []
        gender = reader.choice(keys["names"], f"{key}.names", genders) if "names" in keys else "any"
        return TestTemplate(
            contexts=tuple([self._context(item, f"{key}.contexts") for item in contexts]),
            questions=tuple([self._question(item, f"{key}.questions") for item in questions]),
            fills=self._fills_of(name, ()),
            names=cast("Gender", gender),
            zips=tuple([reader.texts(item, f"{key}.zip") for item in zips]),
            balance=reader.text(keys["balance"], f"{key}.balance") if "balance" in keys else None,
        )

    def _context(self, node: yaml.Node, key: str) -> ContextTemplate:
        reader = self._reader
        if isinstance(node, yaml.ScalarNode):
            return ContextTemplate(text=reader.text(node, key), place=reader.text_place(node))
        keys = reader.mapping(node, key, ("text", "when"), ("text",))
        if "text" not in keys:
            return ContextTemplate(text="")
        place = reader.text_place(keys["text"])
        return ContextTemplate(text=reader.text(keys["text"], key), when=self._when(keys, key), place=place)

    def _question(self, node: yaml.Node, key: str) -> QuestionTemplate:
        reader = self._reader
        keys = reader.mapping(node, key, ("ask", "answer", "when"), ("ask", "answer"))
        texts = {part: reader.text(keys[part], key) for part in ("ask", "answer") if part in keys}
        question = QuestionTemplate(
            ask=texts.get("ask", ""),
            answer=texts.get("answer", ""),
            when=self._when(keys, key),
            place=reader.place(node),
        )
        for part in texts:
            self.places[id(question), part] = reader.text_place(keys[part])
        return question

    def _when(self, keys: dict[str, yaml.Node], key: str) -> Condition:
        if "when" not in keys:
            return {}
        found = self._reader.mapping(keys["when"], f"{key}.when")
        return {slot: frozenset(self._reader.texts(ids, f"{key}.when.{slot}")) for slot, ids in found.items()}

    def _fills_of(self, name: str, users: tuple[str, ...]) -> dict[str, FillIn]:
        """Return the fill-ins of a test, those that it uses of another before its own."""
        if name in self._fills or name not in self._fill_nodes:
            return self._fills.get(name, {})
        node, key = self._fill_nodes[name], f"tests.{name}.fill"
        found = self._reader.mapping(node, key)
        fills: dict[str, FillIn] = {}
        used = found.pop("use", None)
        if used is not None:
            other = self._reader.text(used, f"{key}.use")
            if other in (name, *users) or other not in self._fill_nodes:
                others = [item for item in self._fill_nodes if item not in (name, *users)]
                known = ", ".join(others) or "none"
                self._reader.fault(
                    f"no test {other!r} whose fill-ins could be used: {known}", used, f"{key}.use"
                )
            else:
                fills |= self._fills_of(other, (name, *users))
        for slot, item in found.items():
            fills[slot] = self._fill(slot, item, f"{key}.{slot}")
        self._fills[name] = fills
        return fills

    def _fill(self, slot: str, node: yaml.Node, key: str) -> FillIn:
        reader = self._reader
        if isinstance(node, yaml.SequenceNode):
            entries = [self._entry(None, item, key) for item in reader.sequence(node, key)]
            return ListedFillIn(entries=tuple(entries), place=reader.place(node))
        keys = reader.mapping(node, key)
        if "pairs" in keys and keys.keys() <= set(_PAIR_KEYS):
            return PairFillIn(
                of=reader.texts(keys["pairs"], key),
                named=reader.text(keys["named"], key) if "named" in keys else None,
                ordered=reader.flag(keys["ordered"], key) if "ordered" in keys else True,
                place=reader.place(node),
            )
        entries = [self._entry(name, item, key) for name, item in keys.items()]
        return ListedFillIn(entries=tuple(entries), place=reader.place(node))

    def _entry(self, name: str | None, node: yaml.Node, key: str) -> Entry:
        """Return a value of a fill-in; one without an id is called by its first text."""
        key = key if name is None else f"{key}.{name}"
        varied = isinstance(node, yaml.SequenceNode) and any(
            isinstance(item, yaml.MappingNode) for item in node.value
        )
        forms = [self._form(item, key) for item in (node.value if varied else [node])]
        if not forms or not all(form.texts for form in forms):
            self._reader.fault("a fill-in without any form", node, key)
            return Entry(id=name or "", forms=())
        return Entry(id=forms[0].texts[0] if name is None else name, forms=tuple(forms))

    def _form(self, node: yaml.Node, key: str) -> Form:
        reader = self._reader
        texts, keys = node, {}
        if isinstance(node, yaml.MappingNode):
            keys = reader.mapping(node, key, ("form", "when"), ("form",))
            texts = keys.get("form", node)
            if texts is node:
                return Form(texts=("",))
        form = Form(texts=reader.texts(texts, key), when=self._when(keys, key), place=reader.place(node))
        for number, item in enumerate(texts.value if isinstance(texts, yaml.SequenceNode) else [texts]):
            if "{" in item.value or "}" in item.value:
                self.places[id(form), number] = reader.text_place(item)
        return form
