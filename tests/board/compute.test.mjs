// The pure functions of the board, on the fixtures that Python's aggregation is tested with too.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as board from "../../plugins/harness_board/static/compute.mjs";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url)));
const close = (a, b) => (a === null || b === null ? assert.equal(a, b) : assert.ok(Math.abs(a - b) < 1e-6, `${a} is not ${b}`));

for (const one of read("aggregation.json")) {
  test(`overall: ${one.name}`, () => {
    const found = board.overall(one.scores, one.tasks, one.categories);
    close(found.paper, one.paper);
    close(found.flat, one.flat);
    assert.deepEqual(Object.keys(found.categories), Object.keys(one.means));
    for (const [name, value] of Object.entries(one.means)) close(found.categories[name], value);
  });
}

test("numbers are rounded as Python rounds them", () => {
  for (const [value, text] of read("numbers.json")) assert.equal(board.format(value), text);
});

const content = {
  title: "T", suite: "", categories: { c: ["a"], d: ["b"] },
  tasks: [
    { task: "a", category: "c", metrics: ["f1", "em"], headline: ["f1", "em"], by_language: ["f1", "em"], languages: ["en", "sw", "de"], source: "en" },
    { task: "b", category: "d", metrics: ["acc"], headline: ["acc"], by_language: ["acc"], languages: ["sw", "de"], source: "en" },
  ],
  languages: [{ code: "de", name: "German", family: "Indo-European", script: "Latn" }, { code: "en", name: "English", family: "Indo-European", script: "Latn" }, { code: "sw", name: "Swahili", family: "Niger-Congo", script: "Latn" }],
  systems: [
    { label: "one", protocol: "zero_shot", parameters: 5e8, year: 2020, monolingual: { value: 1e12, unit: "tokens" } },
    { label: "two", protocol: "zero_shot", year: 2021, absences: { "b:sw": "failed: no data" } },
    { label: "=evil", protocol: "human" },
  ],
  scores: [
    [0, "a", "f1", 60, 1, null, null, 1, "", [80, 40, 60], [2, 2, 2]], [0, "a", "em", 50, 1, null, null, 1, "", [70, 30, 50], [2, 2, 2]], [0, "b", "acc", 30, 2, null, null, 1, "", [20, 40], [1, 1]],
    [1, "a", "f1", 61, 1, null, null, 1, "", [81, 41, 61]], [1, "a", "em", 51, 1, null, null, 1, "", [71, 31, 51]], [1, "b", "acc", 44, 2, null, null, 0, "", [null, 44]],
    [2, "a", "f1", 90],
  ],
};
const made = board.prepare(content);
const view = (state) => board.view(made, state);
const totals = (shown) => shown.rows.map((row) => [row.system.label, board.cellText(row.total)]);

test("the paper's way, and why scores are missing", () => {
  const shown = view({});
  assert.deepEqual(totals(shown), [["one", "42.5"], ["two", "50.0~"], ["=evil", "-"]]);
  assert.deepEqual(shown.rows.map((row) => row.rank), ["1", "", ""]);
  assert.equal(shown.rows[2].total.title, "no score for a, b");
  assert.match(shown.rows[1].cells[1].title, /fewer languages/);
});

test("worst language and transfer gap", () => {
  assert.deepEqual(totals(view({ agg: "worst" }))[0], ["one", "27.5"]);
  assert.equal(view({ agg: "worst" }).rows[0].cells[0].title, "sw");
  const gap = view({ agg: "gap" });
  assert.deepEqual(totals(gap)[0], ["one", "30.0"]);
  assert.match(gap.rows[0].cells[1].title, /source language/);
  assert.ok(gap.smaller);
});

test("by category, flat", () => {
  assert.deepEqual(view({ agg: "category" }).columns.map((column) => column.head), ["c", "d"]);
  assert.equal(board.cellText(view({ agg: "flat" }).rows[0].total), "42.5");
});

test("choosing one language keeps only its scores", () => {
  const shown = view({ language: "sw" });
  assert.deepEqual(shown.rows.map((row) => row.cells.map((cell) => board.cellText(cell))), [["35.0", "20.0"], ["36.0", "-"]]);
  assert.equal(shown.rows[1].cells[1].title, "failed: no data");
  assert.equal(shown.hidden, 1);
  assert.deepEqual(view({ family: "Niger-Congo" }).rows[0].cells.map((cell) => board.cellText(cell)), ["35.0", "20.0"]);
});

test("a task shows its languages; a metric leaves its tasks", () => {
  assert.deepEqual(view({ task: "a" }).columns.map((column) => column.head), ["en", "sw", "de"]);
  assert.deepEqual(view({ metric: "em" }).columns.map((column) => column.head), ["a"]);
  assert.equal(board.cellText(view({ metric: "em" }).rows.find((row) => row.index === 0).cells[0]), "50.0");
});

test("filters about systems", () => {
  const labels = (state) => view(state).rows.map((row) => row.system.label);
  assert.deepEqual(labels({ year: "2020" }), ["one"]);
  assert.deepEqual(labels({ q: "TWO" }), ["two"]);
  assert.deepEqual(labels({ pmin: "100", pmax: "600" }), ["one"]);
  assert.deepEqual(labels({ unit: "bytes" }), []);
  assert.deepEqual(labels({ unit: "tokens", dmin: "1e11" }), ["one"]);
  assert.deepEqual(labels({ protocol: "human" }), ["=evil"]);
  assert.deepEqual(labels({ cov: "60" }), ["one", "two"]);
});

test("languages that all shown systems have", () => {
  const shown = view({ shared: "1", protocol: "zero_shot" });
  assert.deepEqual(totals(shown), [["two", "50.0"], ["one", "47.5"]]);
});

test("sorting: missing values last, data never across units", () => {
  assert.deepEqual(view({ sort: "t:b", dir: "a" }).rows.map((row) => row.system.label), ["one", "two", "=evil"]);
  assert.deepEqual(view({ sort: "label", dir: "d" }).rows.map((row) => row.system.label), ["two", "one", "=evil"]);
  assert.ok(board.FACTS.monolingual.unsortable && board.FACTS.parallel.unsortable);
});

test("ranks, tie groups and rank intervals", () => {
  const cell = (value, se = 1) => ({ value, se, whole: true, title: "" });
  const found = board.rank([cell(50), cell(51), cell(60), null, cell(40)]);
  assert.deepEqual(found.map((one) => one.rank), ["3", "2", "1", "", "4"]);
  assert.deepEqual(found.map((one) => one.group), ["B", "B", "A", "", "C"]);
  assert.deepEqual(found.map((one) => one.range), ["2–3", "2–3", "1–1", "", "4–4"]);
  assert.deepEqual(board.rank([cell(50, null), cell(50, null)]).map((one) => one.rank), ["1", "1"]);
  assert.equal(board.rank([cell(1, null), cell(2, null)])[0].range, "");
  // What has no known error is separable from nothing, and takes the intervals of no other system away.
  const mixed = board.rank([cell(90, null), cell(80), cell(20), { value: 100, se: 0, low: 60, high: 100, whole: true }]);
  assert.deepEqual(mixed.map((one) => one.range), ["1–4", "1–3", "3–4", "1–3"]);
  assert.deepEqual(mixed.map((one) => one.group), ["A", "A", "B", "A"]);
});

test("ranks leave incomplete scores out, and one unknown error leaves others their intervals", () => {
  const cell = (value, se = 1, whole = true) => ({ value, se, whole, title: "" });
  const found = board.rank([cell(50), cell(51), cell(60), cell(null), cell(99, 1, false)]);
  assert.deepEqual(found.map((one) => [one.rank, one.group, one.range]), [["3", "B", "2–3"], ["2", "B", "2–3"], ["1", "A", "1–1"], ["", "", ""], ["", "", ""]]);
  const many = board.rank([...Array.from({ length: 499 }, (_, place) => cell(50 + (place % 7) / 10, 2)), cell(100, null)]);
  assert.deepEqual(many[499], { rank: "1", range: "1–500", group: "A" });
  assert.deepEqual([...new Set(many.map((one) => `${one.group} ${one.range}`))], ["A 1–500"]);
});

test("a score without spread is as sure as its interval", () => {
  const sure = { value: 60, se: 1, whole: true, title: "" };
  const right = (low) => ({ value: 100, se: 0, low, high: 100, whole: true, title: "" });
  assert.deepEqual(board.rank([sure, right(56.6)]).map((one) => one.range), ["1–2", "1–2"]);
  assert.deepEqual(board.rank([sure, right(99)]).map((one) => one.range), ["2–2", "1–1"]);
});

test("columns are coloured from chance, and no colour differs inside the noise", () => {
  const chance = board.prepare({ ...content, tasks: content.tasks.map((task) => (task.task === "b" ? { ...task, chance: 25 } : task)) });
  assert.deepEqual(board.view(chance, {}).columns.map((column) => column.low), [0, 25]);
  const cell = (value, se) => ({ value, se: se / 1.959964, whole: true, title: "" });
  const mean = (54 + 49 + 52 + 46) / 4;
  board.levels([cell(54, 6), cell(49, 6), cell(52, 6), cell(46, 6), cell(81, 4)]).forEach((level, place) => close(level, place < 4 ? mean : 81));
  assert.deepEqual(board.levels([cell(90, 6), cell(83, 6), cell(76, 6)]), [86.5, 86.5, 76]);
});

test("errors of means of independent scores", () => {
  close(board.combinedError([[0.5, 3], [0.5, 4]]), 2.5);
  assert.equal(board.combinedError([[0.5, 3], [0.5, null]]), null);
});

test("an address keeps the state", () => {
  for (const state of [{}, { task: "a" }, { language: "sw", agg: "gap" }, { q: "a b&c=#?/", cols: "" }, { task: "x/y z" }]) {
    assert.deepEqual(board.parseAddress(board.formatAddress(state)), state);
  }
  assert.deepEqual(board.parseAddress("#/task/%E0%A4%A"), {});
  assert.deepEqual(board.parseAddress("#?task=evil&q=1"), { q: "1" });
  assert.deepEqual(board.parseAddress(board.formatAddress({ task: "a", q: "x" }, { task: "a" }), { task: "a" }), { task: "a", q: "x" });
});

test("CSV is what is shown, and inert", () => {
  const text = board.toCsv(board.exportRows(view({})));
  assert.match(text, /^rank,system,setting,parameters,overall/);
  assert.match(text, /\n,'=evil,human/);
  assert.equal(text.trim().split("\n").length, 4);
  assert.equal(board.toCsv([{ a: 'x"y,z\n' }]), 'a\n"x""y,z\n"\n');
});

test("amounts are short", () => {
  assert.deepEqual([178e6, 13e9, 6.3e12, 85e9, 999, 1234].map(board.amount), ["178M", "13B", "6.3T", "85B", "999", "1.23k"]);
});

test("intervals are printed as in all reports", () => {
  for (const [value, low, high, text] of read("uncertainty.json")) assert.equal(board.uncertainty(value, [low, high]), text);
  assert.equal(board.uncertainty(50, null), "");
  const cell = { value: 100, se: 0, low: 86.2, high: 100, whole: true, title: "" };
  assert.equal(board.cellText(cell, true), "100.0 (86.2–100)");
  assert.equal(board.cellTitle(cell), "95 % interval 86.2 to 100.0");
  assert.equal(board.cellText({ value: 98, se: 2, whole: true, title: "" }, true), "98.0 (94.1–100)");
});
