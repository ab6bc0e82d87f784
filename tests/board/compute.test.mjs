// The pure functions of the board, on the fixtures that Python's aggregation is tested with too.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as chart from "../../plugins/harness_board/static/chart.mjs";
import * as compare from "../../plugins/harness_board/static/compare.mjs";
import * as board from "../../plugins/harness_board/static/compute.mjs";
import * as text from "../../plugins/harness_board/static/text.mjs";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url)));
const close = (a, b) => (a === null || b === null ? assert.equal(a, b) : assert.ok(Math.abs(a - b) < 1e-6, `${a} is not ${b}`));

for (const one of read("aggregation.json")) {
  test(`overall: ${one.name}`, () => {
    const cells = Object.fromEntries(one.tasks.map((task) => [task, { value: one.scores[task] ?? null, se: null, whole: true, title: "" }]));
    const tasks = one.tasks.map((task) => ({ task, languages: [] }));
    const { weights } = board.averaged({ content: { categories: one.categories } }, tasks, {});
    close(board.total(cells, weights).value, Object.keys(one.categories).length ? one.paper : one.flat);
    for (const [name, value] of Object.entries(one.means)) {
      const found = board.partialMean(cells, one.categories[name]);
      close(found.whole ? found.value : null, value);
    }
  });
}

test("numbers are rounded as Python rounds them", () => {
  for (const [value, shown] of read("numbers.json")) assert.equal(board.format(value), shown);
});

const content = {
  title: "T", suite: "", reasons: ["failed: no data"], categories: { c: ["a"], d: ["b"] },
  tasks: [
    { task: "a", category: "c", metrics: ["f1", "em"], headline: ["f1", "em"], by_language: ["f1", "em"], languages: ["en", "sw", "de"], source: "en" },
    { task: "b", category: "d", metrics: ["acc"], headline: ["acc"], by_language: ["acc"], languages: ["sw", "de"], source: "en" },
  ],
  languages: [{ code: "de", name: "German", family: "Indo-European", script: "Latn" }, { code: "en", name: "English", family: "Indo-European", script: "Latn" }, { code: "sw", name: "Swahili", family: "Niger-Congo", script: "Latn" }],
  systems: [
    { label: "one", protocol: "zero_shot", parameters: 5e8, year: 2020, monolingual: { value: 1e12, unit: "tokens" } },
    { label: "two", protocol: "zero_shot", year: 2021, absences: { "b:sw": 0 } },
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
const all = (shown) => [...shown.ranked, ...shown.partial];
const totals = (shown) => all(shown).map((row) => [row.system.label, text.cellText(row.total)]);
const texts = (row) => row.cells.map((cell) => text.cellText(cell));

test("the paper's way, and why scores are missing", () => {
  const shown = view({});
  assert.deepEqual(totals(shown), [["one", "42.5"], ["two", "50.0~"], ["=evil", "-"]]);
  assert.deepEqual(shown.ranked.map((row) => row.rank), ["1"]);
  assert.equal(shown.partial[1].total.title, "no score for a, b");
  assert.match(shown.partial[0].cells[1].title, /fewer languages/);
  assert.deepEqual(shown.columns.map((column) => column.head), ["C", "D"]);
  assert.deepEqual(all(shown).map((row) => [row.have, row.known]), [[2, [2, 2]], [2, [2, 1]], [0, [0, 0]]]);
});

test("categories unfold into their tasks", () => {
  const shown = view({ open: "d" });
  assert.deepEqual(shown.columns.map((column) => column.id), ["c:c", "c:d", "t:b"]);
  assert.deepEqual(texts(shown.ranked[0]), ["55.0", "30.0", "30.0"]);
});

test("worst language and transfer gap", () => {
  assert.deepEqual(totals(view({ agg: "worst" }))[0], ["one", "27.5"]);
  assert.equal(view({ agg: "worst", open: "c" }).ranked[0].tasks.a.title, "lowest: sw");
  const gap = view({ agg: "gap" });
  assert.deepEqual(totals(gap).slice(0, 2), [["one", "30.0"], ["two", "30.0"]]);
  assert.match(gap.ranked[0].tasks.b.title, /source language/);
  assert.ok(gap.smaller);
  // The error of a gap is at most that of the source and the mean error of the others.
  close(gap.ranked[0].tasks.a.se, 4);
  assert.deepEqual(text.endsOf({ value: -1, se: 2, isGap: true }).map((end) => end < 0), [true, false]);
});

test("choosing one language keeps only its scores", () => {
  const shown = view({ tab: "language", language: "sw" });
  assert.deepEqual(all(shown).map(texts), [["35.0", "20.0"], ["36.0", "-"]]);
  assert.equal(all(shown)[1].cells[1].title, "failed: no data");
  assert.equal(shown.hidden, 1);
  assert.deepEqual(view({ family: "Niger-Congo" }).ranked.map((row) => row.total.value), [27.5]);
});

test("a mean over some languages claims no smaller error than the mean of theirs", () => {
  const one = view({ family: "Indo-European" }).ranked.find((row) => row.system.label === "one");
  close(one.tasks.a.se, 2);
  close(one.tasks.a.value, 65);
});

test("a task shows its languages; a metric leaves it alone", () => {
  const shown = view({ tab: "task", task: "a" });
  assert.deepEqual(shown.columns.map((column) => column.head), ["en", "sw", "de"]);
  assert.equal(shown.of, 3);
  assert.deepEqual(totals(view({ tab: "task", task: "a", metric: "em" })), [["two", "51.0"], ["one", "50.0"]]);
});

test("families are means over tasks that all ranked systems have by language", () => {
  const shown = view({ tab: "family" });
  assert.deepEqual(shown.familyTasks, ["a", "b"]);
  assert.deepEqual(shown.columns.map((column) => column.head), ["Indo-European", "Niger-Congo"]);
  assert.deepEqual(texts(shown.ranked[0]), ["52.5", "27.5"]);
  assert.deepEqual(texts(shown.partial[0]), ["55.0", "36.0~"]);
});

test("filters about systems", () => {
  const labels = (state) => all(view(state)).map((row) => row.system.label);
  assert.deepEqual(labels({ q: "TWO" }), ["two"]);
  assert.deepEqual(labels({ q: "zero shot" }), ["one", "two"]);
  assert.deepEqual(labels({ size: "200-1000" }), ["one"]);
  assert.deepEqual(labels({ size: "1000-10000" }), []);
});

test("languages that all shown systems have", () => {
  assert.deepEqual(totals(view({ shared: "1", q: "zero" })), [["two", "50.0"], ["one", "47.5"]]);
});

test("where no system has all tasks, those that all have decide", () => {
  const has = (...tasks) => new Set(tasks);
  assert.deepEqual(board.basis([has("a", "b"), has("a")], ["a", "b"]), { kind: "all", tasks: ["a", "b"] });
  assert.deepEqual(board.basis([has("a", "b"), has("b", "c")], ["a", "b", "c"]), { kind: "common", tasks: ["b"] });
  assert.deepEqual(board.basis([has("a", "b"), has("a", "b"), has("c"), has()], ["a", "b", "c"]), { kind: "common", tasks: ["a", "b"] });
  assert.deepEqual(board.basis([has("a"), has("b")], ["a", "b"]), { kind: "none", tasks: [] });
  const shown = view({ q: "two", shared: "0" });
  assert.deepEqual(shown.basis, { kind: "common", tasks: ["a"] });
  assert.deepEqual(totals(shown), [["two", "56.0"]]);
  assert.match(board.formula(shown, {}), /one task that the one ranked system has: a\./);
  assert.deepEqual(totals(view({ q: "two" })), [["two", "50.0"]]);
});

test("sorting: blocks stay apart, missing values last, partial results in one order", () => {
  const labels = (state) => all(view(state)).map((row) => row.system.label);
  assert.deepEqual(labels({ sort: "c:d", dir: "a" }), ["one", "two", "=evil"]);
  assert.deepEqual(labels({ sort: "label", dir: "d" }), ["one", "two", "=evil"]);
  assert.deepEqual(labels({ dir: "a" }), labels({}));
  const many = board.prepare({ ...content, systems: ["p", "q", "r", "s"].map((label) => ({ label })), scores: [[1, "a", "f1", 9, null, null, null, 0], [1, "a", "em", 9, null, null, null, 0], [3, "b", "acc", 80], [0, "b", "acc", 10]] });
  for (const dir of ["", "a", "d"]) assert.deepEqual(board.view(many, { dir, q: "" }).partial.map((row) => row.system.label), ["q", "r"], dir);
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

test("ranks are printed as intervals only where scores cannot be separated", () => {
  assert.deepEqual([{ rank: "1", range: "1–3" }, { rank: "2", range: "2–2" }, { rank: "4", range: "" }, { rank: "", range: "" }].map(board.rankText), ["1–3", "2", "4", ""]);
});

test("columns are coloured from chance, and no colour differs inside the noise", () => {
  const chance = board.prepare({ ...content, tasks: content.tasks.map((task) => (task.task === "b" ? { ...task, chance: 25 } : task)) });
  assert.deepEqual(board.view(chance, { tab: "task", task: "b" }).columns.map((column) => column.low), [25, 25]);
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
  for (const state of [{}, { tab: "task", task: "a" }, { tab: "language", language: "sw", q: "x" }, { q: "a b&c=#?/" }, { tab: "task", task: "x/y z" }, { tab: "family" }, { tab: "compare", a: "x · y" }]) {
    assert.deepEqual(text.parseAddress(text.formatAddress(state)), state);
  }
  assert.deepEqual(text.parseAddress("#/task/%E0%A4%A"), { tab: "task" });
  assert.deepEqual(text.parseAddress("#/evil/x?task=evil&q=1&sys="), { q: "1" });
});

test("CSV has intervals and marks, the tasks of folded categories, and is inert", () => {
  const rows = text.exportRows(view({}));
  const [one, two] = rows;
  assert.deepEqual([one.rank, one.rank_interval, one.average, one.a, one.a_mark, one.known], ["1", "1", 42.5, 55, "", "2/2"]);
  close(one.a_high - one.a, 1.959964);
  assert.deepEqual([two.b, two.b_mark, two.b_low === null], [44, "fewer languages or tasks", false]);
  const csv = text.toCsv(rows);
  assert.match(csv, /^rank,rank_interval,tie_group,system,setting,average,average_low,average_high,average_mark,c,/);
  assert.match(csv, /\n,,,'=evil,human/);
  assert.equal(csv.trim().split("\n").length, 4);
  assert.equal(text.toCsv([{ a: 'x"y,z\n' }]), 'a\n"x""y,z\n"\n');
});

test("LaTeX escapes names, and the best comparable score is bold", () => {
  const evil = board.prepare({ ...content, systems: [{ label: "a_b & 50%", protocol: "zero_shot" }, ...content.systems.slice(1)] });
  const made = text.toLatex(board.view(evil, {}), "T");
  assert.match(made, /a\\_b \\& 50\\%.* & \\textbf\{42\.5\}/);
  assert.match(made, /two .*50\.0\$\^\{\\sim\}\$/);
  assert.equal(made.match(/\\textbf/g).length, 3);
});

test("amounts are short", () => {
  assert.deepEqual([178e6, 13e9, 6.3e12, 85e9, 999, 1234].map(text.amount), ["178M", "13B", "6.3T", "85B", "999", "1.23k"]);
});

test("intervals are printed as in all reports", () => {
  for (const [value, low, high, shown] of read("uncertainty.json")) assert.equal(text.uncertainty(value, [low, high]), shown);
  assert.equal(text.uncertainty(50, null), "");
  const cell = { value: 100, se: 0, low: 86.2, high: 100, whole: true, title: "" };
  assert.equal(text.cellText(cell, true), "100.0 (86.2–100)");
  assert.equal(text.cellTitle(cell), "95 % interval 86.2 to 100.0");
  assert.equal(text.cellText({ value: 98, se: 2, whole: true, title: "" }, true), "98.0 (94.1–100)");
});

test("p-values are those of the normal distribution, corrected as Holm (1979) does", () => {
  // R: 2 * pnorm(-c(0, 1, 1.959964, 3))
  [1, 0.3173105, 0.05, 0.002699796].forEach((p, at) => close(compare.twoSided([0, 1, 1.959964, 3][at]), p));
  // R: p.adjust(c(0.01, 0.04, 0.03), "holm")
  compare.holm([0.01, null, 0.04, 0.03]).forEach((p, at) => close(p, [0.03, null, 0.06, 0.06][at]));
});

test("two systems are compared over the languages that both have", () => {
  const rows = compare.contrasts(made, 0, 1, "a");
  assert.deepEqual(rows.map((row) => [row.task.task, row.code, row.difference]), [["a", undefined, -1], ["a", "en", -1], ["a", "sw", -1], ["a", "de", -1], ["b", undefined, -4]]);
  assert.equal(rows.at(-1).of, 1);
  assert.equal(rows.at(-1).p, null);
  close(rows[0].error, Math.sqrt(2));
  assert.equal(compare.verdict(rows, ["one", "two"]), "one is measurably higher in 0 and lower in 0 of 1 tested tasks than two; in 1 the difference is within the noise of so many items: a. Not tested, since no error is known: b.");
});

test("ranks without intervals name the tasks that have no error", () => {
  const errorless = board.prepare({ ...content, scores: content.scores.map((row) => row.map((value, at) => (row[1] === "b" && (at === 4 || at === 10) ? null : value))) });
  const shown = board.view(errorless, {});
  assert.deepEqual([shown.hasErrors, shown.withoutError], [false, ["b"]]);
  assert.deepEqual(view({}).withoutError, []);
});

test("labels of a chart cover neither each other nor a point", () => {
  const points = Array.from({ length: 12 }, (_, at) => ({ x: 100 + (at % 4) * 6, y: 100 + at * 3, label: `system ${at}` }));
  const placed = chart.placeLabels(points, { left: 0, right: 340, top: 0, bottom: 240 });
  const boxes = placed.filter(Boolean).map(({ x, y, width }) => [x, y - 11, x + width, y + 3]);
  assert.ok(boxes.length >= 2 && boxes.length < 12);
  const apart = ([a, b, c, d], [e, f, g, h]) => c <= e || g <= a || d <= f || h <= b;
  boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => assert.ok(apart(one, other))));
  for (const box of boxes) for (const { x, y } of points) assert.ok(apart(box, [x - 4, y - 4, x + 4, y + 4]));
  assert.ok(boxes.every(([left, , right]) => left >= 0 && right <= 340));
});

test("a score that is not comparable has its sign, no rank and no difference", () => {
  const own = board.prepare({ ...content, scores: [...content.scores.filter(([index]) => index === 0), ...content.scores.filter(([index]) => index === 0).map(([, task, metric, value, se, low, high, whole, ...rest]) => [1, task, metric, value + 5, se, low, high, task === "b" ? 2 : 1, ...rest])] });
  const shown = board.view(own, {});
  assert.deepEqual(totals(shown).slice(0, 2), [["one", "42.5"], ["two", "47.5°"]]);
  assert.deepEqual(shown.ranked.map((row) => row.system.label), ["one"]);
  assert.deepEqual(texts(shown.partial[0]), ["60.0", "35.0°"]);
  assert.deepEqual(compare.contrasts(own, 0, 1).map((row) => [row.task.task, row.difference]), [["a", -5]]);
  assert.equal(text.exportRows(shown)[1].d_mark, "not comparable");
  assert.match(text.toLatex(shown, "T"), /35\.0\$\^\{\\circ\}\$/);
  const language = board.view(own, { tab: "task", task: "b" });
  assert.deepEqual(texts(language.partial.find((row) => row.system.label === "two")), ["20.0°", "40.0°"]);
});

test("systems are sorted by size, data and year, unknown ones last", () => {
  const order = (sort, dir) => {
    const rows = content.systems.map((system, index) => ({ index, system, cells: [], total: { value: 0 } }));
    board.sortRows(rows, [], { sort, dir }, false);
    return rows.map((row) => row.system.label);
  };
  assert.deepEqual(order("year"), ["two", "one", "=evil"]);
  assert.deepEqual(order("year", "a"), ["one", "two", "=evil"]);
  assert.deepEqual(order("parameters"), ["one", "two", "=evil"]);
  const units = [["tokens", 3], ["bytes", 9], ["tokens", 5]].map(([unit, value], index) => ({ index, system: { monolingual: { unit, value } }, cells: [], total: { value: 0 } }));
  board.sortRows(units, [], { sort: "data" }, false);
  assert.deepEqual(units.map((row) => row.index), [2, 0, 1], "amounts of another unit are not compared");
});
