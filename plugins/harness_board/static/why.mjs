// Why: scores by attribute of the items, as charts whose buckets lead to examples.

import { bucketChart } from "./chart.mjs";
import { format, metricNames } from "./compute.mjs";
import { modelText, node, region, simpleTable, visible } from "./draw.mjs";

export const ANALYSES = { single: "One system", pairwise: "Two systems", data: "The items themselves" };
const ABOUT = {
  single: "Where one system is weak: its score by an attribute of the items, such as their length.",
  pairwise: "Where two systems differ: their scores on the same items, with a paired test for each group.",
  data: "What the items are like: how often each value of an attribute occurs.",
};

/** @returns {string} the systems that a row is about */
export function systemsOf(row) {
  return (row.systems || (row.system ? [row.system] : [])).join(" and ");
}

/** @returns {string} what a difference takes from what: a diagnosis gives the first system minus the second */
export function differenceOf(row) {
  return row.systems?.length === 2 ? `${row.systems[0]} minus ${row.systems[1]}` : "difference";
}

/** @returns {Record<string, string[]>} what can be chosen among groups of buckets of one kind, given what was chosen before */
export function choices(groups, picked) {
  const found = {};
  let left = groups;
  for (const [key, of] of [["dtask", (row) => row.task], ["dlang", (row) => row.language || "all"], ["dsys", systemsOf], ["dattr", (row) => row.attribute]]) {
    found[key] = [...new Set(left.map(of))];
    const value = found[key].includes(picked[key]) ? picked[key] : found[key][0];
    found[`${key}=`] = value;
    left = left.filter((row) => of(row) === value);
  }
  return { ...found, rows: left.flatMap(rowsOf) };
}

/** @returns {object[]} the buckets of a group as rows */
export function rowsOf(group) {
  const { buckets, columns, ...shared } = group;
  return buckets.map((bucket) => ({ ...shared, ...Object.fromEntries(columns.map((name, at) => [name, bucket[at]])) }));
}

/** @returns {number[]} the values of a row in points: one per system, a share for data */
export function rowValues(row) {
  const given = row.values ?? row.value ?? row.difference ?? null;
  return (Array.isArray(given) ? given : [given]).map((value) => (typeof value === "number" ? value * 100 : null));
}

/** @returns {Element[]} an analysis: what is chosen, its chart, its table, and the examples of a chosen bucket */
export function whyParts(board, state, change) {
  const groups = board.content.diagnosis || [];
  const kinds = Object.keys(ANALYSES).filter((kind) => groups.some((group) => group.kind === kind));
  const kind = kinds.includes(state.kind) ? state.kind : kinds[0];
  const buttons = kinds.map((name) => node("button", { type: "button", "data-kind": name, "aria-pressed": String(name === kind) }, ANALYSES[name]));
  const found = choices(groups.filter((group) => group.kind === kind), state);
  const select = (key, label) => {
    const box = node("select", { id: `why-${key}` }, ...found[key].map((value) => node("option", { value, selected: value === found[`${key}=`] }, visible(value) || "-")));
    box.addEventListener("change", () => change({ [key]: box.value, dbucket: "" }));
    return node("label", {}, `${label} `, box);
  };
  const controls = node("div", { class: "controls" }, node("div", { class: "segments", role: "group", "aria-label": "Analysis" }, ...buttons), select("dtask", "Task"), select("dlang", "Language"), kind === "data" ? null : select("dsys", kind === "single" ? "System" : "Systems"), select("dattr", "Attribute"));
  const chosen = found.rows.find((row) => String(row.bucket) === state.dbucket);
  return [controls, node("p", { class: "note" }, ABOUT[kind]), ...chartOf(board, found.rows, kind, found["dattr="]), tableOf(found.rows, kind, state, change), ...(chosen ? [examplesOf(chosen, board)] : [])];
}

function chartOf(board, rows, kind, attribute) {
  const buckets = rows.map((row) => String(row.bucket));
  const width = Math.max(...rows.map((row) => rowValues(row).length));
  const label = (at) => (rows[0].systems?.length === width ? rows[0].systems[at] : systemsOf(rows[0]) || "share of items");
  const total = rows.reduce((sum, row) => sum + (row.n || 0), 0);
  const values = (row, at) => (kind === "data" && rowValues(row)[0] === null ? (100 * (row.n || 0)) / (total || 1) : rowValues(row)[at] ?? null);
  const series = Array.from({ length: width }, (_, at) => ({ label: label(at), values: rows.map((row) => values(row, at)), ends: rows.map((row) => (width === 1 && row.ci ? row.ci.map((end) => end * 100) : [])) }));
  const charts = [bucketChart(`${attribute}: ${rows[0].metric ? metricNames(board, [rows[0].metric]) : "items"} by bucket`, buckets, series)];
  if (kind === "pairwise" && width > 1 && rows.some((row) => typeof row.difference === "number")) {
    const ends = rows.map((row) => (row.ci ? row.ci.map((end) => end * 100) : []));
    charts.push(bucketChart(`${attribute}: ${differenceOf(rows[0])}`, buckets, [{ label: "difference", values: rows.map((row) => (typeof row.difference === "number" ? row.difference * 100 : null)), ends }]));
  }
  return charts;
}

function tableOf(rows, kind, state, change) {
  const heads = ["bucket", "n", ...(kind === "data" ? ["share"] : kind === "pairwise" ? ["scores", "difference"] : ["score"]), "interval", ...(kind === "pairwise" ? ["p", "q"] : [])];
  const total = rows.reduce((sum, row) => sum + (row.n || 0), 0);
  const body = rows.map((row) => {
    const button = node("button", { type: "button", "data-bucket": String(row.bucket), "aria-expanded": String(String(row.bucket) === state.dbucket) }, `${row.bucket}`);
    button.addEventListener("click", () => change({ dbucket: String(row.bucket) === state.dbucket ? "" : String(row.bucket) }));
    const values = rowValues(row);
    const scores = values.map((value) => format(value)).join(" / ");
    const interval = row.ci ? `${format(row.ci[0] * 100)} to ${format(row.ci[1] * 100)}` : "-";
    const share = values[0] === null ? format((100 * (row.n || 0)) / (total || 1)) : scores;
    const middle = kind === "data" ? [share] : kind === "pairwise" ? [scores, typeof row.difference === "number" ? format(row.difference * 100) : "-"] : [scores];
    const tests = kind === "pairwise" ? [probability(row.p), probability(row.q)] : [];
    return [button, (row.n ?? 0).toLocaleString("en"), ...middle, interval, ...tests];
  });
  const sign = kind === "pairwise" ? node("p", { class: "note" }, visible(`Difference: ${differenceOf(rows[0])}.`)) : null;
  const few = rows.some((row) => row.n < 30) ? node("p", { class: "note" }, "Buckets with fewer than 30 items say little.") : null;
  return node("div", {}, ...[region(simpleTable(heads, body), "Buckets"), sign, few].filter(Boolean), node("p", { class: "note" }, "Choose a bucket to see its examples."));
}

function probability(value) {
  return typeof value === "number" ? (value < 0.001 ? "<0.001" : value.toFixed(3)) : "-";
}

function examplesOf(row, board) {
  const keys = row.examples || [];
  const found = keys.map((key) => (typeof key === "object" ? key : board.content.examples[key])).filter(Boolean);
  const part = node("section", { class: "examples", "aria-label": "Examples" }, node("h2", {}, `Examples of bucket ${row.bucket}`));
  if (!found.length) part.append(node("p", { class: "note" }, "The board keeps no examples of this bucket; they are in the run's records."));
  for (const example of found) {
    const fields = Object.entries(example.inputs || {}).map(([name, text]) => [name, modelText(text, example.language)]);
    if (example.reference !== undefined) fields.push(["reference", modelText(example.reference, example.language)]);
    const predictions = example.predictions || (example.prediction === undefined ? {} : { prediction: example.prediction });
    for (const [system, text] of Object.entries(predictions)) fields.push([visible(system), modelText(text, example.language)]);
    part.append(node("article", {}, node("h3", {}, visible(example.id)), node("dl", {}, ...fields.flatMap(([name, value]) => [node("dt", {}, name), node("dd", {}, value)]))));
  }
  return part;
}
