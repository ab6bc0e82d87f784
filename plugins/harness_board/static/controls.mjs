// The controls above the table: what is searched, filtered, aggregated and shown.

import { FACTS } from "./compute.mjs";
import { node, visible } from "./draw.mjs";
import { ANALYSES } from "./drill.mjs";

const AGGREGATIONS = [["", "paper: mean of category means"], ["flat", "flat: mean of tasks"], ["category", "by category"], ["worst", "worst language"], ["gap", "transfer gap"]];
const SAVED = { csv: "CSV", json: "JSON", link: "Copy link", reset: "Reset" };
const SWITCHES = { shared: "only languages that every shown system has", ci: "show intervals", plain: "no colours" };
const OF_SYSTEMS = { protocol: "Setting", method: "Method", adapter: "Adapter", year: "Year", transfer: "Transfer", origin: "Origin", reported: "Reported" };

function select(key, label, options) {
  const box = node("select", { "data-key": key });
  for (const [value, text] of options) {
    const option = node("option", {}, visible(text));
    option.value = value;
    box.append(option);
  }
  return node("label", {}, label, box);
}

function input(key, label, type) {
  return node("label", {}, label, node("input", { type, "data-key": key, min: type === "number" ? "0" : null }));
}

function check(attributes, text) {
  return node("label", { class: "check" }, node("input", { type: "checkbox", ...attributes }), text);
}

function valuesOf(found) {
  const known = [...new Set(found.filter((value) => value !== undefined && value !== null && value !== "").map(String))].sort();
  return known.map((value) => [value, value.replaceAll("_", " ")]);
}

/** @returns {Element[]} the controls of a page */
export function controls(content, route) {
  const { systems, languages, tasks } = content;
  const named = (items) => items.map((name) => [name, name]);
  const all = (options, every = "all") => [["", every], ...options];
  const ofLanguage = (key) => all(valuesOf(languages.map((item) => item[key])));
  const scope = [
    route.task || route.language ? null : select("only", "Task", all(named(tasks.map((item) => item.task)))),
    select("metric", "Metric", all(named([...new Set(tasks.flatMap((item) => item.metrics))]), "each task's own")),
    ...(route.language ? [] : [
      select("lang", "Language", all(languages.map((item) => [item.code, `${item.name} (${item.code})`]))),
      select("family", "Family", ofLanguage("family")),
      select("script", "Script", ofLanguage("script")),
    ]),
  ];
  const about = Object.entries(OF_SYSTEMS).map(([key, label]) => [key, label, valuesOf(systems.map((item) => item[key]))]);
  const sizes = [
    input("pmin", "Parameters from (millions)", "number"),
    input("pmax", "Parameters to (millions)", "number"),
    select("unit", "Pre-training data in", all(valuesOf(systems.map((item) => item.monolingual?.unit)))),
    input("dmin", "at least (of that unit)", "number"),
    input("cov", "Known columns, at least %", "number"),
  ];
  const aggregation = select("agg", "Aggregation", AGGREGATIONS);
  aggregation.lastChild.setAttribute("aria-describedby", "formula");
  const button = (attributes, text) => node("button", { type: "button", ...attributes }, text);
  return [
    node("div", { class: "row" }, input("q", "Search systems", "search"), aggregation, ...scope),
    node("details", { class: "filters" }, node("summary", {}, "More filters and columns"),
      node("div", { class: "row" }, ...about.filter(([, , options]) => options.length > 1).map(([key, label, options]) => select(key, label, all(options))), ...sizes),
      node("div", { class: "row" }, ...Object.entries(SWITCHES).map(([key, text]) => check({ "data-key": key }, text))),
      node("fieldset", {}, node("legend", {}, "Columns"), ...Object.entries(FACTS).map(([name, fact]) => check({ "data-fact": name }, fact.head)))),
    node("div", { class: "row" },
      ...Object.entries(ANALYSES).map(([kind, text]) => button({ "data-panel": kind, "aria-pressed": "false" }, text)),
      ...Object.entries(SAVED).map(([name, text]) => button({ "data-deed": name }, text)),
      node("span", { id: "said", role: "status", class: "note" }),
      node("input", { id: "link", type: "text", readonly: true, hidden: true, "aria-label": "Link to this view" })),
  ];
}
