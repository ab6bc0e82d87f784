// Two systems side by side: differences, their intervals, and which of them hold after a correction.

import { Z, errorOf, format, languageCell, taskCell } from "./compute.mjs";
import { languageName, node, region, visible } from "./draw.mjs";
import { cellText } from "./text.mjs";

/** @returns {number} the two-sided p-value of a standard normal deviate (Abramowitz and Stegun 1964, 7.1.26; error below 2e-7) */
export function twoSided(z) {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  return t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x);
}

/** @returns {(number|null)[]} p-values after Holm's correction (Holm 1979); null stays null */
export function holm(values) {
  const order = values.map((value, place) => [value, place]).filter(([value]) => value !== null).sort((a, b) => a[0] - b[0]);
  const found = values.map(() => null);
  let highest = 0;
  order.forEach(([value, place], at) => {
    highest = Math.max(highest, Math.min(1, value * (order.length - at)));
    found[place] = highest;
  });
  return found;
}

/** @returns {{cells: Cell[], difference: number|null, error: number|null}} the first score minus the second, as `harness compare` has it */
export function contrast(first, second) {
  if (first.value === null || second.value === null || !first.whole || !second.whole) return { cells: [first, second], difference: null, error: null };
  const errors = [errorOf(first), errorOf(second)];
  const error = errors.includes(null) ? null : Math.sqrt(errors[0] ** 2 + errors[1] ** 2);
  return { cells: [first, second], difference: first.value - second.value, error };
}

/** A row for each task that both systems have, over the languages that both have; and for each language of unfolded tasks. */
export function contrasts(board, first, second, open) {
  const rows = [];
  for (const task of board.tasks.values()) {
    const value = (index, code) => languageCell(board, index, task, code, {}).value;
    const codes = task.languages.filter((code) => value(first, code) !== null && value(second, code) !== null);
    const isWhole = [first, second].every((index) => taskCell(board, index, task, null, {}).value !== null && taskCell(board, index, task, null, {}).whole);
    // Whole means are compared as they are; others over the languages that both systems have.
    const own = isWhole ? task : { ...task, languages: codes, forced: true };
    const row = contrast(taskCell(board, first, own, null, {}), taskCell(board, second, own, null, {}));
    if (row.difference === null) continue;
    rows.push({ ...row, task, of: isWhole ? task.languages.length : codes.length, codes });
    if (open === task.task) for (const code of codes) rows.push({ ...contrast(languageCell(board, first, task, code, {}), languageCell(board, second, task, code, {})), task, code });
  }
  for (const level of [rows.filter((row) => !row.code), rows.filter((row) => row.code)]) {
    const adjusted = holm(level.map((row) => (row.error ? twoSided(row.difference / row.error) : null)));
    level.forEach((row, at) => (row.p = adjusted[at]));
  }
  return rows;
}

/** @returns {string} what the tasks say, in one sentence */
export function verdict(rows, names) {
  const tested = rows.filter((row) => !row.code && row.p !== null);
  const known = rows.filter((row) => !row.code);
  if (!known.length) return "The two systems have no task in common.";
  if (!tested.length) return `No errors are known for both systems, so none of the ${known.length} differences is tested.`;
  const higher = (sign) => tested.filter((row) => row.p < 0.05 && Math.sign(row.difference) === sign).length;
  const noise = tested.filter((row) => row.p >= 0.05).map((row) => row.task.task);
  const found = `${names[0]} is measurably higher in ${higher(1)} and lower in ${higher(-1)} of ${tested.length} tested tasks than ${names[1]}`;
  const within = noise.length ? `; in ${noise.length} the difference is within the noise of so many items: ${noise.join(", ")}` : "";
  const left = known.filter((row) => row.p === null).map((row) => row.task.task);
  return `${found}${within}.${left.length ? ` Not tested, since no error is known: ${left.join(", ")}.` : ""}`;
}

function forest(row, reach) {
  const made = node("span", { class: "forest", "aria-hidden": "true" });
  const at = (value) => Math.min(100, Math.max(0, 50 + (50 * value) / reach));
  const dot = node("i", { class: row.p !== null && row.p < 0.05 ? "sure" : "" });
  dot.style.left = `${at(row.difference)}%`;
  if (row.error !== null) {
    const whisker = node("b");
    const [low, high] = [at(row.difference - Z * row.error), at(row.difference + Z * row.error)];
    whisker.style.left = `${low}%`;
    whisker.style.width = `${high - low}%`;
    made.append(whisker);
  }
  made.append(dot);
  return made;
}

function chooser(board, key, label, chosen) {
  const box = node("select", { "data-key": key, id: `pick-${key}` }, ...board.content.systems.map((system, index) => node("option", { value: board.keys[index], selected: index === chosen }, visible([system.label, system.protocol, system.view, system.method].filter(Boolean).join(" · ").replaceAll("_", " ")))));
  return node("label", {}, `${label} `, box);
}

/** @returns {number[]} the two systems of a state: the chosen ones, else the first two that share most tasks */
export function chosenPair(board, state, order) {
  const [a, b] = [state.a, state.b].map((key) => board.keys.indexOf(key));
  const first = a >= 0 ? a : order.find((index) => index !== b) ?? 0;
  return [first, b >= 0 ? b : order.find((index) => index !== first) ?? first];
}

/** @returns {Element[]} the comparison of two systems */
export function compareParts(board, state, order) {
  const pair = chosenPair(board, state, order);
  const names = pair.map((index) => visible(board.content.systems[index].label));
  const rows = contrasts(board, pair[0], pair[1], state.open);
  const controls = node("div", { class: "controls" }, chooser(board, "a", "First", pair[0]), chooser(board, "b", "Second", pair[1]));
  const left = board.tasks.size - rows.filter((row) => !row.code).length;
  const reach = Math.max(5, ...rows.map((row) => Math.abs(row.difference) + Z * (row.error ?? 0)));
  const body = rows.map((row) => {
    const interval = row.error === null ? "–" : `${format(row.difference - Z * row.error)} to ${format(row.difference + Z * row.error)}`;
    const isOpen = state.open === row.task.task;
    const name = row.code
      ? [node("span", { class: "indent" }, ...languageName(board.languages.get(row.code) ?? { code: row.code, name: row.code }))]
      : [row.codes.length ? node("button", { type: "button", class: "link", "data-open": isOpen ? "" : row.task.task, "aria-expanded": String(isOpen) }, row.task.task) : row.task.task, node("small", {}, `${row.of} of ${row.task.languages.length} languages`)];
    const sign = row.difference > 0 ? "+" : "";
    return node("tr", {}, node("th", { scope: "row", class: "name" }, ...name), ...row.cells.map((cell) => node("td", { class: "n" }, cellText(cell))), node("td", { class: "n" }, `${sign}${format(row.difference)}`), node("td", { class: "n" }, interval), node("td", { class: "n" }, row.p === null ? "–" : row.p < 0.001 ? "<0.001" : row.p.toFixed(3)), node("td", {}, forest(row, reach)));
  });
  const heads = ["Task", names[0], names[1], "Difference", "95 % interval", "p", `−${format(reach, 0)} to +${format(reach, 0)}`];
  const table = node("table", { class: "list" }, node("caption", { class: "hidden" }, `${names[0]} minus ${names[1]}`), node("thead", {}, node("tr", {}, ...heads.map((text, at) => node("th", { scope: "col", class: at && at < 6 ? "n" : null }, text)))), node("tbody", {}, ...body));
  return [controls, node("p", { class: "verdict" }, verdict(rows, names)), region(table, "Differences by task"),
    node("p", { class: "note" }, left ? `${left} further tasks have no score of both in one language. ` : "", "First minus second, in points. The intervals treat the items of the two systems as different ones; p is two-sided, after Holm's correction over the tasks (or languages) shown. Published scores have the error of as many independent items as the task has. For two runs on the same items, ", node("code", {}, "harness compare A B"), " uses the pairing and separates more.")];
}
