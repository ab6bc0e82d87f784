// Charts as SVG: no library, since they hold at most a few dozen marks.

import { format, languageCell } from "./compute.mjs";
import { node, region, simpleTable, svg, visible } from "./draw.mjs";
import { amount, setting } from "./text.mjs";

const WIDE = 340;
const HIGH = 270;
const BOX = { left: 34, right: WIDE - 12, top: 22, bottom: HIGH - 34 };
const MOST_LABELS = 25;

/**
 * Where labels of points go: right, left, above or below, the first place that covers no other label and no point.
 * @param {{x: number, y: number, label: string}[]} points
 * @returns {({x: number, y: number, width: number}|null)[]} left end and baseline; null where there is no room
 */
export function placeLabels(points, box, width = (text) => text.length * 6.6) {
  const taken = points.map((point) => [point.x - 5, point.y - 5, point.x + 5, point.y + 5]);
  const isFree = ([x0, y0, x1, y1]) => x0 >= box.left && x1 <= box.right && y0 >= box.top - 8 && y1 <= box.bottom + 4 && taken.every(([a0, b0, a1, b1]) => x1 <= a0 || x0 >= a1 || y1 <= b0 || y0 >= b1);
  return points.map((point) => {
    const wide = width(point.label);
    for (const [x, y] of [[point.x + 8, point.y + 4], [point.x - 8 - wide, point.y + 4], [point.x - wide / 2, point.y - 8], [point.x - wide / 2, point.y + 18], [point.x + 6, point.y + 16], [point.x + 6, point.y - 8]]) {
      const place = [x, y - 11, x + wide, y + 3];
      if (!isFree(place)) continue;
      taken.push(place);
      return { x, y, width: wide };
    }
    return null;
  });
}

/** @returns {(text: string) => number} the width of a label as the browser will draw it */
function textWidth() {
  const pen = document.createElement("canvas").getContext("2d");
  if (!pen) return undefined;
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return (text) => pen.measureText(text).width + 2;
}

/** @returns {string[]} short labels: a name, with its setting where an earlier point has the same name */
function labelsOf(systems) {
  const seen = new Set();
  return systems.map((system) => {
    const label = seen.has(system.label) ? nameOf(system) : system.label;
    seen.add(system.label);
    return label;
  });
}

function figure(title, note, points, axes, lines, heads) {
  const description = `${title}: ${points.map((point) => `${point.name} ${point.texts.join(", ")}`).join("; ")}`;
  const drawing = svg("svg", { role: "img", "aria-label": visible(description.slice(0, 600)), viewBox: `0 0 ${WIDE} ${HIGH}`, class: "plot" });
  drawing.append(...axes.flat(), ...lines);
  const marks = points.map((point) => ({ x: axes.across(point.x), y: axes.up(point.y), label: visible(point.label) }));
  marks.forEach((mark, at) => drawing.append(svg("circle", { cx: mark.x, cy: mark.y, r: 4, class: points[at].hollow ? "dot hollow" : "dot" }, svg("title", {}, visible(`${points[at].name}: ${points[at].texts.join(", ")}`)))));
  const places = points.length <= MOST_LABELS ? placeLabels(marks, { left: 0, right: WIDE, top: 12, bottom: BOX.bottom }, textWidth()) : marks.map(() => null);
  places.forEach((place, at) => place && drawing.append(svg("text", { x: place.x, y: place.y, class: "label" }, marks[at].label)));
  const table = simpleTable(heads, points.map((point) => [visible(point.name), ...point.texts]));
  return node("figure", {}, node("h2", {}, title), node("p", { class: "note" }, note), drawing, node("details", { class: "data" }, node("summary", {}, "Data of this chart"), region(table, `Data: ${title}`)));
}

function scale(low, high, from, to) {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

function tens(values) {
  const low = Math.max(0, Math.floor(Math.min(...values) / 10) * 10);
  const high = Math.min(100, Math.ceil(Math.max(...values) / 10) * 10);
  return low === high ? [Math.max(0, low - 10), Math.min(100, high + 10)] : [low, high];
}

function ticks(low, high) {
  const step = high - low > 50 ? 20 : 10;
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, at) => low + at * step);
}

function frame(across, up, xs, ys, xLabel, yLabel) {
  const axes = [
    ...xs.map(([value, text]) => [svg("line", { x1: across(value), x2: across(value), y1: BOX.top, y2: BOX.bottom, class: "grid" }), svg("text", { x: across(value), y: BOX.bottom + 15, class: "mid soft" }, text)]),
    ...ys.map(([value, text]) => [svg("line", { x1: BOX.left, x2: BOX.right, y1: up(value), y2: up(value), class: "grid" }), svg("text", { x: BOX.left - 5, y: up(value) + 4, class: "end soft" }, text)]),
    [svg("text", { x: BOX.right, y: HIGH - 4, class: "end soft" }, xLabel), svg("text", { x: 0, y: 11, class: "soft" }, yLabel)],
  ];
  return Object.assign(axes, { across, up });
}

const nameOf = (system) => [system.label, setting(system)].filter(Boolean).join(", ");

/**
 * Each system's score in the source language and its mean in the other languages, of the task that most systems have.
 * @returns {{task: string, source: string, points: object[]}|null}
 */
export function againstSource(board, shown, rows) {
  let found = null;
  for (const task of shown.tasks.map((one) => board.tasks.get(one.task))) {
    if (!task.source || !task.languages.includes(task.source)) continue;
    const points = rows.map((row) => sourcePoint(board, task, row)).filter(Boolean);
    if (!found || points.length > found.points.length) found = { task: task.task, source: task.source, points };
  }
  return found && found.points.length ? found : null;
}

function sourcePoint(board, task, row) {
  const value = (code) => languageCell(board, row.index, task, code, {}).value;
  const codes = task.languages.filter((code) => code !== task.source);
  const others = codes.map(value).filter((score) => score !== null);
  const own = value(task.source);
  if (own === null || !others.length) return null;
  return { row, x: own, y: others.reduce((sum, one) => sum + one, 0) / others.length, hollow: others.length < codes.length, of: [others.length, codes.length] };
}

/** @returns {Element|null} the source language against the mean of the others, with the line of no loss */
export function sourceChart(board, shown, rows) {
  const found = againstSource(board, shown, rows);
  if (!found) return null;
  const source = board.languages.get(found.source)?.name ?? found.source;
  const labels = labelsOf(found.points.map((point) => point.row.system));
  const points = found.points.map((point, at) => ({ ...point, label: labels[at], name: nameOf(point.row.system), texts: [format(point.x), format(point.y), `${point.of[0]} of ${point.of[1]}`] }));
  const [low, high] = tens(points.flatMap((point) => [point.x, point.y]));
  const across = scale(low, high, BOX.left, BOX.right);
  const up = scale(low, high, BOX.bottom, BOX.top);
  const marks = ticks(low, high).map((value) => [value, String(value)]);
  const line = [svg("line", { x1: across(low), y1: up(low), x2: across(high), y2: up(high), class: "diagonal" }), svg("text", { x: across(high) - 8, y: up(high) + 26, class: "end soft" }, "no loss")];
  const hollow = points.some((point) => point.hollow) ? " A ring: fewer languages than the task has." : "";
  return figure(`${source} against the rest`, `${found.task}: below the line is what leaving ${source} costs.${hollow}`, points, frame(across, up, marks, marks, `${source}, ${found.task}`, "mean of the other languages"), line, ["system", source, "others", "languages"]);
}

/** @returns {Element|null} the average of ranked systems against their size, on a logarithmic axis */
export function sizeChart(shown, name) {
  const kept = shown.ranked.filter((row) => row.system.parameters);
  if (kept.length < 2) return null;
  const labels = labelsOf(kept.map((row) => row.system));
  const points = kept.map((row, at) => ({ x: row.system.parameters, y: row.total.value, label: labels[at], name: nameOf(row.system), texts: [amount(row.system.parameters), format(row.total.value)] }));
  const logs = points.map((point) => Math.log10(point.x));
  const [left, right] = [Math.min(...logs) - 0.15, Math.max(...logs) + 0.15];
  const [low, high] = tens(points.map((point) => point.y));
  const linear = scale(left, right, BOX.left, BOX.right);
  const across = (value) => linear(Math.log10(value));
  const up = scale(low, high, BOX.bottom, BOX.top);
  const steps = [];
  for (let power = Math.floor(left); power <= right; power += 1) for (const part of [1, 3]) if (Math.log10(part) + power >= left && Math.log10(part) + power <= right) steps.push([part * 10 ** power, amount(part * 10 ** power)]);
  return figure(`${name} against size`, "Parameters on a logarithmic axis; ranked systems whose size is known.", points, frame(across, up, steps, ticks(low, high).map((value) => [value, String(value)]), "parameters", name.toLowerCase()), [], ["system", "parameters", name.toLowerCase()]);
}

/** @returns {Element} vertical bars, one a bucket and system, from 0, with whiskers */
export function bucketChart(title, buckets, series) {
  const ends = series.flatMap((one) => [...one.values, ...one.ends.flat()]).filter((value) => typeof value === "number");
  const low = Math.floor(Math.min(0, ...ends) / 10) * 10;
  const high = Math.ceil(Math.max(0, ...ends) / 10) * 10 || 10;
  const names = buckets.map((bucket) => (bucket.length > 24 ? `${bucket.slice(0, 23)}…` : bucket));
  const widest = Math.max(70, series.length * 28 + 18, ...names.map((name) => name.length * 7.5 + 8));
  const width = Math.max(420, 60 + buckets.length * widest);
  const slot = (width - 60) / buckets.length;
  const bar = Math.min(34, (slot - 14) / series.length);
  const up = (value) => 200 - ((value - low) / (high - low)) * 180;
  const description = series.map((one) => `${one.label}: ${buckets.map((bucket, at) => `${bucket} ${one.values[at]?.toFixed(1) ?? "-"}`).join(", ")}`).join("; ");
  const drawing = svg("svg", { role: "img", "aria-label": `${title}. ${description}`, viewBox: `0 0 ${width} 236`, width, height: 236 }, svg("title", {}, title), svg("desc", {}, description));
  for (const value of new Set([low, (low + high) / 2, high])) drawing.append(svg("line", { x1: 48, x2: width - 8, y1: up(value), y2: up(value), class: "grid" }), svg("text", { x: 42, y: up(value) + 4, class: "end soft" }, format(value, 0)));
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
