// How numbers, amounts and addresses are written, and what is saved.

import { Z, format, inWords, rankText } from "./compute.mjs";

export function amount(value) {
  if (value === undefined || value === null) return "-";
  for (const [size, mark] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${String(Number((value / size).toPrecision(3)))}${mark}`;
  }
  return String(value);
}

function data(found) {
  return found ? `${amount(found.value)} ${found.unit.replaceAll("_", " ")}` : undefined;
}

/** @returns {string} protocol and view in words: "zero shot transfer" */
export function setting(system) {
  return [system.protocol, system.view].filter(Boolean).join(" ").replaceAll("_", " ");
}

/** @returns {string} the small line under a name: size, setting, where it is from */
export function subtitle(system) {
  return [system.parameters ? amount(system.parameters) : "", setting(system), system.adapter === "baseline" ? "baseline" : system.origin].filter(Boolean).join(" · ");
}

const FACTS = {
  Protocol: setting, Method: (s) => s.method, Adapter: (s) => s.adapter, Run: (s) => s.run, Year: (s) => s.year,
  Parameters: (s) => (s.parameters ? amount(s.parameters) : undefined), "Active parameters": (s) => (s.active ? amount(s.active) : undefined),
  "Monolingual data": (s) => data(s.monolingual), "Parallel data": (s) => data(s.parallel), "Languages seen": (s) => s.languages_seen,
  Transfer: (s) => s.transfer?.replaceAll("_", " "), "Fine-tuning data": (s) => s.fine_tuning, Licence: (s) => s.licence, Paper: (s) => s.paper,
  Address: (s) => s.url, Contamination: (s) => s.contamination, Reported: (s) => s.reported?.replaceAll("_", " "),
};

/** @returns {[string, string][]} what is stated about a system: name and text */
export function facts(system) {
  return Object.entries(FACTS).map(([name, of]) => [name, of(system)]).filter(([, text]) => text !== undefined && text !== null && text !== "").map(([name, text]) => [name, String(text)]);
}

/** @returns {[number, number]|null} the 95 % interval: as the results keep it, or that of a mean made here */
export function endsOf(cell) {
  if (cell.value === null) return null;
  if (typeof cell.low === "number" && typeof cell.high === "number") return [cell.low, cell.high];
  if (cell.se === null) return null;
  const ends = [cell.value - Z * cell.se, cell.value + Z * cell.se];
  return cell.isGap ? ends : [Math.max(0, ends[0]), Math.min(100, ends[1])];
}

/** @returns {string} "±3.1" for an interval that is symmetric about the score, else its ends: as all reports print it */
export function uncertainty(value, ends, isGap = false) {
  if (ends === null) return "";
  const [low, high] = ends;
  const [shown, half] = [Number(format(value)), Number(format((high - low) / 2))];
  const symmetric = Math.abs(value - (low + high) / 2) <= Math.max(0.05, (high - low) / 20);
  if (symmetric && isGap) return `±${format(half)}`;
  if (symmetric && Math.round(10 * (shown - half)) >= 0 && Math.round(10 * (shown + half)) <= 1000) return `±${format(half)}`;
  const end = (point) => format(point).replace(/^(0|100)\.0$/, "$1");
  return `(${end(low)}–${end(high)})`;
}

/** @returns {string} "°" after what is not comparable, "~" after a mean over fewer languages */
export function signOf(cell) {
  return cell.star ? "°" : cell.whole ? "" : "~";
}

/** @returns {string} a cell as text, with its sign */
export function cellText(cell, withInterval = false) {
  if (cell.value === null) return "-";
  const interval = withInterval ? uncertainty(cell.value, endsOf(cell), cell.isGap) : "";
  return `${format(cell.value)}${signOf(cell)}${interval && ` ${interval}`}`;
}

export function cellTitle(cell) {
  const ends = endsOf(cell);
  return [cell.title, ends ? `95 % interval ${format(ends[0])} to ${format(ends[1])}` : ""].filter(Boolean).join("; ");
}

/** @returns {string} what a saved score is marked with */
function markOf(cell) {
  return cell.value === null || cell.whole ? "" : cell.star ? "not comparable" : "fewer languages or tasks";
}

/** @returns {Record<string, unknown>[]} what is shown as plain rows: scores with the ends of their intervals and marks */
export function exportRows(shown) {
  const scores = (name, cell) => {
    const ends = endsOf(cell) ?? [null, null];
    return { [name]: cell.value, [`${name}_low`]: ends[0], [`${name}_high`]: ends[1], [`${name}_mark`]: markOf(cell) };
  };
  const columns = shown.columns.map((column, place) => [column, place]);
  // Tasks that are folded into their category are saved, too.
  const folded = shown.columns.some((column) => column.unfolds) ? shown.tasks.filter((task) => !shown.columns.some((column) => column.id === `t:${task.task}`)) : [];
  return [...shown.ranked, ...shown.partial].map((row) => ({
    rank: row.rank, rank_interval: rankText(row), tie_group: row.group, system: row.system.label, setting: setting(row.system),
    ...scores("average", row.total),
    ...Object.assign({}, ...columns.map(([column, place]) => scores(column.id.slice(2), row.cells[place]))),
    ...Object.assign({}, ...folded.map((task) => scores(task.task, row.tasks[task.task]))),
    known: `${row.have}/${shown.of}`,
  }));
}

/** @returns {string} CSV; a field that a spreadsheet would run as a formula gets a quote in front */
export function toCsv(rows) {
  if (!rows.length) return "";
  const field = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    const inert = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
  };
  const heads = Object.keys(rows[0]);
  return [heads.map(field).join(","), ...rows.map((row) => heads.map((head) => field(row[head])).join(","))].join("\n") + "\n";
}

const TEX = { "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "$": "\\$", "&": "\\&", "#": "\\#", "_": "\\_", "%": "\\%", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };

function tex(text) {
  return text.replace(/[\\{}$&#_%~^]/g, (found) => TEX[found]);
}

/** @returns {string} a LaTeX table of systems and columns; the best score of comparable systems is bold */
export function toLatex(shown, title) {
  const columns = [["Average", (row) => row.total], ...shown.columns.map((column, place) => [column.head, (row) => row.cells[place]])];
  const better = (a, b) => (shown.smaller ? a < b : a > b);
  const best = columns.map(([, of]) => shown.ranked.map((row) => of(row)).filter((cell) => cell.value !== null && cell.whole).reduce((top, cell) => (top === null || better(cell.value, top) ? cell.value : top), null));
  const line = (row) => {
    const cells = columns.map(([, of], place) => {
      const cell = of(row);
      const text = cell.value === null ? "--" : `${format(cell.value)}${cell.whole ? "" : cell.star ? "$^{\\circ}$" : "$^{\\sim}$"}`;
      return row.rank && cell.whole && cell.value !== null && format(cell.value) === format(best[place]) ? `\\textbf{${text}}` : text;
    });
    return `${tex(row.system.label)} (${tex(setting(row.system) || row.system.origin)}) & ${cells.join(" & ")} \\\\`;
  };
  return [
    `% ${title.replace(/\s+/g, " ")}: bold is the best of the ranked systems; ~ is over fewer languages or tasks, ° not comparable, so not ranked.`,
    `\\begin{tabular}{l${"r".repeat(columns.length)}}`, "\\toprule", `System & ${columns.map(([head]) => tex(inWords(head))).join(" & ")} \\\\`, "\\midrule",
    ...shown.ranked.map(line), ...(shown.ranked.length && shown.partial.length ? ["\\midrule"] : []), ...shown.partial.map(line), "\\bottomrule", "\\end{tabular}", "",
  ].join("\n");
}

const PAGES = ["language", "task", "family", "compare", "why"];

/** @returns {State} of an address: "#/task/xnli?q=mT5" */
export function parseAddress(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  const state = Object.fromEntries([...new URLSearchParams(query)].filter(([, value]) => value !== ""));
  for (const key of ["tab", "task", "language"]) delete state[key];
  const [, tab, rest] = /^\/([a-z]+)(?:\/([^/]+))?$/.exec(path) || [];
  if (!PAGES.includes(tab)) return state;
  state.tab = tab;
  try {
    if (rest && (tab === "task" || tab === "language")) state[tab] = decodeURIComponent(rest);
  } catch {
    delete state[tab];
  }
  return state;
}

/** @returns {string} the address of a state */
export function formatAddress(state) {
  const { tab, task, language, ...others } = state;
  const page = tab === "task" ? task : tab === "language" ? language : undefined;
  const path = tab ? `/${tab}${page ? `/${encodeURIComponent(page)}` : ""}` : "/";
  const query = new URLSearchParams(Object.entries(others).filter(([, value]) => value !== undefined && value !== "").sort()).toString();
  return `#${path}${query ? `?${query}` : ""}`;
}
