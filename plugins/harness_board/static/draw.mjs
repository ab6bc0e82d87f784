// Draws what compute.mjs computed. Texts become text nodes only: nothing here parses markup.

import { cellText, cellTitle, endsOf, facts, signOf, subtitle, uncertainty } from "./text.mjs";
import { defaultDirection, format, levels, rankText } from "./compute.mjs";

const SVG = "http://www.w3.org/2000/svg";
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff\ufff9-\ufffb]/g;

/** @returns {Element} an HTML element; attributes by name, children as texts or nodes */
export function node(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** @returns {string} a text with its invisible and reordering characters shown */
export function visible(text) {
  return String(text).replace(CONTROL, (found) => `⟦U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);
}

/** @returns {Element} a text of a model: own direction, its language, folded where it is long */
export function modelText(value, language) {
  const text = visible(typeof value === "string" ? value : JSON.stringify(value));
  const attributes = { class: "text", dir: "auto", lang: language };
  if (text.length <= 400) return node("span", attributes, text);
  const head = node("span", attributes, `${text.slice(0, 400)}…`);
  return node("details", { class: "long" }, node("summary", {}, head, node("span", { class: "more" }, `show all ${text.length.toLocaleString("en")} characters`)), node("div", attributes, text));
}

/** @returns {string} the class that colours a score from low to 100 */
export function heat(level, low) {
  return `h${Math.min(8, Math.max(0, Math.floor((9 * (level - low)) / (100 - low))))}`;
}

/** @returns {Element} what is too wide scrolls, with the keyboard too */
export function region(content, label) {
  return node("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": label }, content);
}

/** @returns {Element} a table of texts; fields may be nodes */
export function simpleTable(heads, rows) {
  const head = node("thead", {}, node("tr", {}, ...heads.map((text) => node("th", { scope: "col" }, text))));
  const body = node("tbody", {}, ...rows.map((row) => node("tr", {}, ...row.map((field, place) => node(place ? "td" : "th", place ? { class: typeof field === "string" && /^[-\d]/.test(field) ? "n" : null } : { scope: "row" }, field)))));
  return node("table", {}, head, body);
}

let names = null;

/** @returns {string} what the speakers of a language call it, as far as the browser knows; else empty */
export function endonym(code) {
  names ??= new Map();
  if (!names.has(code)) names.set(code, ownName(code));
  return names.get(code);
}

function ownName(code) {
  try {
    const found = new Intl.DisplayNames([code], { type: "language", fallback: "none" });
    return found.resolvedOptions().locale.split("-")[0] === code.split("-")[0] ? found.of(code) ?? "" : "";
  } catch {
    return "";
  }
}

/** @returns {(Node|string)[]} a language's name, and its own name in its own script and direction */
export function languageName(language) {
  const own = endonym(language.code);
  const known = own && own.toLowerCase() !== language.name.toLowerCase();
  return [visible(language.name), ...(known ? [" ", node("bdi", { lang: language.code, class: "own" }, own)] : [])];
}

/** Draw the head of the table: a button a column that sorts, and one that unfolds a category into its tasks. */
export function drawHead(head, shown, state) {
  const sorted = state.sort || "total";
  const add = (id, text, { title, cls, column } = {}) => {
    const falling = sorted === id ? (state.dir || defaultDirection(id, shown.smaller)) === "d" : null;
    const order = falling === null ? null : falling ? "descending" : "ascending";
    const parts = [node("button", { type: "button", "data-sort": id, title }, text)];
    if (column?.unfolds) parts.push(node("button", { type: "button", class: "unfold", "data-unfold": column.unfolds, "aria-expanded": String(column.isOpen), "aria-label": `tasks of ${text}` }, column.isOpen ? "◂" : "▸"));
    return node("th", { scope: "col", class: cls, "aria-sort": order }, node("span", { class: "headline" }, ...parts));
  };
  head.replaceChildren(node("tr", {},
    node("th", { scope: "col", class: "rank" }, "Rank"),
    add("label", "System", { cls: "name" }),
    add("total", state.agg === "gap" ? "Gap" : state.agg === "worst" ? "Worst" : shown.basis.kind === "common" ? `Average of ${shown.basis.tasks.length} of ${shown.used.length} tasks` : "Average", { cls: "total" }),
    ...shown.columns.map((column) => add(column.id, column.head, { title: column.title, cls: column.isHeat ? "heat" : column.isPart ? "part" : column.unfolds ? "group" : null, column })),
    add("known", "Known", { title: shown.tasks.length === 1 ? "languages with a score" : "tasks with a score; half a box: fewer languages than the task has, or not comparable" })));
}

function bar(cell, isGap, withInterval) {
  const fill = node("i");
  fill.style.width = `${Math.min(100, Math.max(0, cell.value))}%`;
  const made = node("span", { class: `bar${isGap ? " gap" : ""}${cell.whole ? "" : " quiet"}`, "aria-hidden": "true" }, fill);
  const ends = withInterval ? endsOf(cell) : null;
  if (ends) {
    const whisker = node("b");
    const low = Math.max(0, ends[0]);
    whisker.style.left = `${low}%`;
    whisker.style.width = `${Math.max(0.5, Math.min(100, ends[1]) - low)}%`;
    made.append(whisker);
  }
  return made;
}

function scoreCell(cell, tools, cls = "") {
  if (cell.value === null) return node("td", { class: `${cls} none`, title: cell.title }, "–");
  const interval = tools.ci ? uncertainty(cell.value, endsOf(cell), cell.isGap) : "";
  const parts = [node(cell.whole ? "strong" : "span", {}, format(cell.value))];
  if (cell.count) parts.push(node("small", {}, ` ${cell.count}`));
  else if (!cell.whole) parts.push(node("small", {}, signOf(cell)));
  if (interval) parts.push(node("small", { class: "ci" }, ` ${interval}`));
  return node("td", { class: `${cls}${cell.whole ? "" : " quiet"}`, title: cellTitle(cell) }, ...parts, bar(cell, tools.isGap, tools.ci));
}

function totalCell(row, tools) {
  if (row.rank) return scoreCell(row.total, tools, "total");
  const known = row.total.value === null ? [] : [node("span", {}, `${format(row.total.value)}${signOf(row.total)}`), " "];
  return node("td", { class: "total quiet", title: row.total.title }, ...known, node("small", {}, "not ranked"));
}

function knownCell(row, shown) {
  const text = `${row.have}/${shown.of}`;
  if (shown.tasks.length === 1) return node("td", { class: "known", title: "languages with a score" }, text);
  const words = ["no score", "fewer languages or not comparable", "all languages"];
  const label = `${text} tasks known: ${shown.tasks.map((task, place) => `${task.task} ${words[row.known[place]]}`).join(", ")}`;
  const boxes = node("span", { class: "boxes", role: "img", "aria-label": label, title: label }, ...row.known.map((level) => node("i", { class: level === 2 ? "full" : level ? "half" : "" })));
  return node("td", { class: "known" }, boxes, node("small", {}, ` ${text}`));
}

function oneRow(row, shown, tools, levelsOf) {
  const { system } = row;
  const name = node("button", { type: "button", class: "link", "data-system": tools.key(row.index), "aria-expanded": String(tools.open === tools.key(row.index)) }, visible(system.label));
  const rank = node("td", { class: "rank", title: row.group ? `tie group ${row.group}` : null }, rankText(row));
  const cells = row.cells.map((cell, place) => {
    const column = shown.columns[place];
    if (!column.isHeat) return scoreCell(cell, tools, column.isPart ? "part" : "");
    if (cell.value === null) return node("td", { class: "heat none", title: cell.title }, "–");
    return node("td", { class: `heat ${heat(levelsOf[place](row), column.low)}`, title: cellTitle(cell) }, cellText(cell));
  });
  return node("tr", {}, rank, node("th", { scope: "row", class: "name" }, name, node("small", {}, visible(subtitle(system)))), totalCell(row, tools), ...cells, knownCell(row, shown));
}

function detailsRow(row, board, width) {
  const known = facts(row.system).flatMap(([name, text]) => [node("dt", {}, name), node("dd", {}, /^https?:\/\//.test(text) ? node("a", { href: text, rel: "noreferrer" }, visible(text)) : visible(text))]);
  const notes = [];
  for (const [task, metrics] of board.scores[row.index]) for (const note of new Set([...metrics.values()].map((score) => score.note).filter(Boolean))) notes.push(node("dt", {}, task), node("dd", {}, visible(note)));
  const byReason = new Map();
  for (const [key, reason] of board.absences[row.index]) byReason.set(reason, [...(byReason.get(reason) ?? []), key]);
  const reasons = [...byReason].map(([reason, keys]) => node("li", {}, `${visible(keys.length === 1 ? keys[0] : `${keys.length} cells`)}: ${visible(reason)}`));
  const list = reasons.length ? node("details", {}, node("summary", {}, "Why scores are missing"), node("ul", {}, ...reasons)) : null;
  return node("tr", { class: "about" }, node("td", { colspan: width }, node("div", { class: "sheet" }, node("dl", {}, ...known, ...notes), list)));
}

const FIRST = 30;
const PIECE = 60;
let drawMore = null;
let watcher = null;

/** Draw the first rows; the others follow in pieces as the reader scrolls to them, and all at once for paper. */
export function drawRows(body, shown, board, tools) {
  const width = shown.columns.length + 4;
  // A colour is shared by the rows of one block: partial scores are not comparable with whole ones.
  const shades = (rows, place) => {
    let found = null;
    return (row) => {
      found ??= new Map(levels(rows.map((one) => one.cells[place])).map((level, at) => [rows[at], level]));
      return found.get(row);
    };
  };
  const blocks = [shown.ranked, tools.partial ? shown.partial : []];
  const queue = [];
  blocks.forEach((rows, at) => {
    const levelsOf = shown.columns.map((column, place) => (column.isHeat ? shades(rows, place) : null));
    if (at && rows.length) queue.push(() => node("tr", { class: "line" }, node("td", { class: "rank" }), node("th", { scope: "rowgroup", colspan: width - 1 }, node("span", {}, `Partial results: not comparable, not ranked (${rows.length}), those with most tasks first`))));
    for (const row of rows) {
      queue.push(() => oneRow(row, shown, tools, levelsOf));
      if (tools.open === tools.key(row.index)) queue.push(() => detailsRow(row, board, width));
    }
  });
  let drawn = 0;
  body.replaceChildren();
  body.parentElement.setAttribute("aria-rowcount", queue.length + 1);
  drawMore = (count) => {
    const part = document.createDocumentFragment();
    for (const one of queue.slice(drawn, drawn + count)) part.append(one());
    drawn += count;
    body.append(part);
    watcher?.disconnect();
    if (drawn >= queue.length) return;
    watcher ??= new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && drawMore(PIECE), { rootMargin: "400px" });
    watcher.observe(body.lastElementChild);
  };
  drawMore(FIRST);
}

/** Draw the rows that wait. */
export function drawAll() {
  drawMore?.(Infinity);
}
