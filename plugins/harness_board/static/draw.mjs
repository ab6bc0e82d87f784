// Draws what compute.mjs computed. Texts become text nodes only: nothing here parses markup.

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
    if (value !== null && value !== undefined && value !== false && value !== "") made.setAttribute(name, value === true ? "" : String(value));
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

/** @returns {string} the class that colours a cell from low to 100; gaps have colours of their own */
export function heat(level, low, isGap) {
  const part = (level - low) / (100 - low);
  return `${isGap ? "e" : "h"}${Math.min(8, Math.max(0, Math.floor(part * 9)))}`;
}

/** Draw the head of the table: one button a column, which sorts. */
export function drawHead(head, shown, state, links) {
  const row = node("tr");
  const sorted = state.sort || "total";
  const add = (id, text, title, isNumber, sortable = true) => {
    const falling = sorted === id ? (state.dir || links.direction(id)) === "d" : null;
    const order = falling === null ? null : falling ? "descending" : "ascending";
    const label = sortable ? node("button", { type: "button", "data-sort": id, title }, text) : text;
    row.append(node("th", { scope: "col", class: isNumber ? "n" : null, "aria-sort": order }, label));
  };
  add("rank", "Rank", null, true, false);
  if (shown.hasErrors) add("range", "Rank interval", null, true, false);
  add("label", "System", "", false);
  for (const name of shown.facts) add(name, links.facts[name].head, "", false, !links.facts[name].unsortable);
  add("total", "Overall", links.formula, true);
  for (const column of shown.columns) add(column.id, column.head, column.title, true);
  add("coverage", "Known", "share of the columns with a score", true);
  head.replaceChildren(row);
}

const FIRST = 40;
let later = 0;

/** Draw the rows; what no screen shows at once follows in pieces. */
export function drawRows(body, shown, tools) {
  clearTimeout(later);
  const shades = shown.columns.map((_, place) => tools.levels(shown.rows.map((row) => row.cells[place])));
  const orders = new Map(shown.rows.map((row, order) => [row, order]));
  // A gap is one of scores by task, not of the languages of one task.
  const isGap = (column) => shown.smaller && !column.id.startsWith("l:");
  const make = (row) => {
    const level = (place) => heat(shades[place][orders.get(row)], shown.columns[place].low, isGap(shown.columns[place]));
    const classes = row.cells.map((cell, place) => (cell.value === null ? "n absent" : tools.colours ? `n ${level(place)}` : "n"));
    const texts = row.cells.map((cell) => tools.text(cell));
    return oneRow(row, shown, classes, texts, tools);
  };
  body.replaceChildren(...shown.rows.slice(0, FIRST).map(make));
  const follow = (start) => {
    if (start >= shown.rows.length) {
      later = 0;
      return;
    }
    body.append(...shown.rows.slice(start, start + FIRST).map(make));
    later = setTimeout(follow, 0, start + FIRST);
  };
  later = setTimeout(follow, 30, FIRST);
}

export function isDrawn() {
  return later === 0;
}

function oneRow(row, shown, classes, texts, tools) {
  const unranked = row.total.value === null ? row.total.title : `not ranked: ${row.total.title}`;
  const facts = shown.facts.map((name) => visible(tools.facts[name].text(row.system)));
  return node("tr", {},
    node("td", { class: "n", title: row.rank ? null : unranked }, row.rank || "-"),
    shown.hasErrors ? node("td", { class: "n", title: row.group && `tie group ${row.group}` }, row.range ? `${row.range} ${row.group}` : "-") : null,
    node("th", { scope: "row" }, visible(row.system.label)),
    ...facts.map((text) => node("td", { class: text.length > 30 ? "wide" : null }, text)),
    node("td", { class: row.total.value === null ? "n absent" : "n total", title: tools.title(row.total) }, tools.text(row.total)),
    ...row.cells.map((cell, place) => node("td", { class: classes[place], title: tools.title(cell) }, texts[place])),
    node("td", { class: "n" }, `${Math.round(row.coverage)} %`));
}

/** @returns {Element} score against parameters on a logarithmic axis, and the line of the best trade-offs */
export function scatter(points, label) {
  const width = 720;
  const xs = points.map((point) => Math.log10(point.x));
  const ys = points.map((point) => point.y);
  const [left, right] = [Math.min(...xs) - 0.2, Math.max(...xs) + 0.2];
  const margin = (Math.max(...ys) - Math.min(...ys)) * 0.08 || 1;
  const [low, high] = [Math.min(...ys) - margin, Math.max(...ys) + margin];
  const across = (x) => 50 + ((Math.log10(x) - left) / (right - left)) * (width - 190);
  const up = (y) => 280 - ((y - low) / (high - low)) * 256;
  const front = [...points].sort((a, b) => a.x - b.x || b.y - a.y).reduce((kept, point) => (!kept.length || point.y > kept.at(-1).y ? [...kept, point] : kept), []);
  const description = `${label} against parameters for ${points.length} systems; best trade-offs: ${front.map((point) => point.label).join(", ")}`;
  const drawing = svg("svg", { role: "img", "aria-label": description, viewBox: `0 0 ${width} 330`, width, height: 330 }, svg("title", {}, "Score against parameters"), svg("desc", {}, description));
  for (let power = Math.ceil(left); power <= right; power += 1) {
    const x = across(10 ** power);
    drawing.append(svg("line", { x1: x, x2: x, y1: 24, y2: 280, class: "grid" }), svg("text", { x, y: 298, class: "mid soft" }, `10^${power}`));
  }
  for (const y of [low + margin, (low + high) / 2, high - margin]) drawing.append(svg("line", { x1: 50, x2: width - 140, y1: up(y), y2: up(y), class: "grid" }), svg("text", { x: 44, y: up(y) + 4, class: "end soft" }, y.toFixed(0)));
  drawing.append(svg("text", { x: width - 140, y: 318, class: "end soft" }, "parameters"), svg("text", { x: 10, y: 14, class: "soft" }, label));
  if (front.length > 1) drawing.append(svg("path", { class: "front", d: `M${front.map((point) => `${across(point.x)},${up(point.y)}`).join("L")}` }));
  let last = -99;
  for (const point of [...points].sort((a, b) => b.y - a.y)) {
    const y = up(point.y);
    drawing.append(svg("circle", { cx: across(point.x), cy: y, r: 5, class: "dot c0" }, svg("title", {}, `${point.label}: ${point.y.toFixed(1)}`)));
    if (points.length <= 25) {
      last = Math.max(y + 4, last + 12);
      drawing.append(svg("text", { x: across(point.x) + 9, y: last }, point.label));
    }
  }
  const table = simpleTable(["system", "parameters", label], points.map((point) => [point.label, point.x.toLocaleString("en"), point.y.toFixed(1)]));
  return node("figure", {}, node("figcaption", {}, "Score against parameters"), region(drawing, "Score against parameters"), node("details", { class: "data" }, node("summary", {}, "Data of this chart"), region(table, "Data of this chart")));
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

/** @returns {Element} vertical bars, one a bucket and system, from 0, with whiskers */
export function bucketChart(title, buckets, series) {
  const ends = series.flatMap((one) => [...one.values, ...one.ends.flat()]).filter((value) => typeof value === "number");
  const low = Math.min(0, ...ends);
  const high = Math.max(0, ...ends) || 1;
  const names = buckets.map((bucket) => (bucket.length > 24 ? `${bucket.slice(0, 23)}…` : bucket));
  const widest = Math.max(70, series.length * 28 + 18, ...names.map((name) => name.length * 7.5 + 8));
  const width = Math.max(420, 60 + buckets.length * widest);
  const slot = (width - 60) / buckets.length;
  const bar = Math.min(34, (slot - 14) / series.length);
  const up = (value) => 200 - ((value - low) / (high - low)) * 180;
  const description = series.map((one) => `${one.label}: ${buckets.map((bucket, at) => `${bucket} ${one.values[at]?.toFixed(1) ?? "-"}`).join(", ")}`).join("; ");
  const drawing = svg("svg", { role: "img", "aria-label": `${title}. ${description}`, viewBox: `0 0 ${width} 236`, width, height: 236 }, svg("title", {}, title), svg("desc", {}, description));
  for (const value of new Set([low, (low + high) / 2, high])) drawing.append(svg("line", { x1: 48, x2: width - 8, y1: up(value), y2: up(value), class: "grid" }), svg("text", { x: 42, y: up(value) + 4, class: "end soft" }, value.toFixed(1)));
  buckets.forEach((bucket, at) => {
    const middle = 54 + (at + 0.5) * slot;
    series.forEach((one, order) => {
      const value = one.values[at];
      if (typeof value !== "number") return;
      const x = middle + (order - series.length / 2) * bar;
      drawing.append(svg("rect", { x, y: Math.min(up(value), up(0)), width: bar - 2, height: Math.abs(up(value) - up(0)), class: `c${order % 8}` }, svg("title", {}, `${visible(`${one.label}, ${bucket}`)}: ${value.toFixed(1)}`)));
      if (one.ends[at]?.length === 2) drawing.append(svg("path", { class: "whisker", d: `M${x + bar / 2},${up(one.ends[at][0])}V${up(one.ends[at][1])}` }));
    });
    drawing.append(svg("text", { x: middle, y: 220, class: "mid" }, visible(names[at])));
  });
  drawing.append(svg("line", { x1: 48, x2: width - 8, y1: up(0), y2: up(0), class: "axis" }));
  const key = series.length > 1 ? node("ul", { class: "legend" }, ...series.map((one, order) => node("li", {}, svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { x: 1, y: 1, width: 12, height: 12, class: `c${order % 8}` })), ` ${one.label}`))) : null;
  return node("figure", {}, node("figcaption", {}, title), key, region(drawing, title));
}
