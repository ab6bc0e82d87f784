// Wires the page: controls and tabs to the state, the state to the address, and both to what is drawn.

import { sourceChart, sizeChart } from "./chart.mjs";
import { compareParts } from "./compare.mjs";
import { SIZES, formula, metricNames, prepare, view } from "./compute.mjs";
import { drawHead, drawAll, drawRows, endonym, languageName, node, visible } from "./draw.mjs";
import { exportRows, formatAddress, parseAddress, toCsv, toLatex } from "./text.mjs";
import { whyParts } from "./why.mjs";

const byId = (id) => document.getElementById(id);
const content = JSON.parse(byId("board-data").textContent);
const board = prepare(content);
const TABS = [["", "Overall"], ["language", "By language"], ["task", "By task"], ["family", "By family"], ["compare", "Compare two"], ...(content.diagnosis?.length ? [["why", "Why (items)"]] : [])];
const ORDERS = [["", "Sort by average"], ["label", "Sort by name"], ["parameters", "Sort by size"], ["data", "Sort by data"], ["year", "Sort by year"]];
const AVERAGES = [["", "Average"], ["worst", "Worst language"], ["gap", "Transfer gap"]];
// What a tab does not use is dropped when another tab opens.
const KEPT = ["q", "size", "partial", "ci", "lang", "family", "script", "shared"];
let state = {};
let shown = null;
let pending = 0;
let slow = 0;
let isTyping = false;

/** Take an update into the state and the history: Back undoes it. Letters typed one after another are one step. */
function change(update, typing = false) {
  state = Object.fromEntries(Object.entries({ ...state, ...update }).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  const address = formatAddress(state);
  if (address !== location.hash) history[typing && isTyping ? "replaceState" : "pushState"](null, "", address);
  isTyping = typing;
  draw();
}

function restore() {
  state = parseAddress(location.hash);
  if (state.tab === "why" && !content.diagnosis?.length) delete state.tab;
  isTyping = false;
  draw();
}

/** What a tab shows where nothing is chosen: the language or task with most scores. */
function completed(all) {
  // Worst languages and gaps are of the whole board.
  const { agg, ...others } = all;
  const given = all.tab ? others : all;
  if (given.tab === "task" && !board.tasks.has(given.task)) return { ...given, task: content.tasks[0]?.task, isMissing: given.task !== undefined };
  if (given.tab === "language" && !board.languages.has(given.language)) return { ...given, language: fullestLanguage(), isMissing: given.language !== undefined };
  return given;
}

let fullest;
function fullestLanguage() {
  if (fullest) return fullest;
  const counts = new Map(content.languages.map((language) => [language.code, 0]));
  const sources = new Set(content.tasks.map((task) => task.source));
  for (const tasks of board.scores) for (const [name, metrics] of tasks) {
    const task = board.tasks.get(name);
    const values = [...metrics.values()].find((score) => score.values)?.values;
    for (const [code, place] of task.places) if ((values?.[place] ?? null) !== null && !sources.has(code)) counts.set(code, counts.get(code) + 1);
  }
  [fullest] = [...counts].reduce((best, one) => (one[1] > best[1] ? one : best));
  return fullest;
}

function draw() {
  const full = completed(state);
  const isTable = !["compare", "why"].includes(full.tab);
  shown = view(board, isTable ? full : {});
  drawTabs(full);
  for (const place of [...["controls", "words", "picker"].map(byId), ...document.querySelectorAll(".downloads [data-deed]:not([data-deed=link])")]) place.hidden = !isTable;
  byId("table-side").hidden = !isTable;
  byId("other").hidden = isTable;
  byId("below").hidden = Boolean(full.tab);
  if (isTable) drawTable(full);
  else byId("other").replaceChildren(...(full.tab === "compare" ? compareParts(board, full, [...shown.ranked, ...shown.partial].map((row) => row.index)) : whyParts(board, full, change)));
  if (!isTable) byId("chips-active").replaceChildren();
  clearTimeout(slow);
  slow = setTimeout(() => drawRail(full, isTable), 40);
}

function drawTable(full) {
  const hasPartial = full.partial !== "0";
  byId("board").classList.toggle("is-long", shown.ranked.length > 9);
  byId("board").classList.toggle("is-heat", shown.columns.some((column) => column.isHeat));
  drawHead(byId("board-head"), shown, full);
  drawRows(byId("board-rows"), shown, board, { ci: full.ci !== "0", isGap: shown.smaller, partial: hasPartial, open: full.sys, key: (index) => board.keys[index] });
  drawControls(full);
  drawChips();
  drawPicker(full);
  drawWords(full, hasPartial);
}

function drawWords(full, hasPartial) {
  const notes = [formula(shown, full)];
  if (full.tab === "family") notes.push(shown.familyTasks.length ? `Families: mean of ${shown.familyTasks.join(", ")}, which all ranked systems have by language.` : "No task has scores by language of all ranked systems.");
  if (full.isMissing) notes.unshift(`${visible(full.task && full.tab === "task" ? state.task : state.language)} is not on this board.`);
  if (shown.withoutError.length && shown.ranked.length > 1) notes.push(`${shown.hasErrors ? "Some ranked systems are separable from no other" : "Ranks follow the scores alone"}, since no error is known in ${shown.withoutError.join(", ")}.`);
  byId("basis").textContent = notes.join(" ");
  const total = shown.ranked.length + (hasPartial ? shown.partial.length : 0);
  byId("count").textContent = `${total} of ${content.systems.length} systems shown.`;
  byId("legend-heat").hidden = !shown.columns.some((column) => column.isHeat);
  const language = full.tab === "language" ? `: ${board.languages.get(full.language)?.name}` : full.tab === "task" ? `: ${full.task}` : "";
  byId("board").caption.textContent = visible(`${content.title}, ${TABS.find(([id]) => id === (full.tab ?? ""))?.[1] ?? ""}${language}`);
}

function drawTabs(full) {
  const tabs = TABS.map(([id, text]) => {
    const isOn = id === (full.tab ?? "");
    return node("button", { type: "button", role: "tab", id: `tab-${id || "overall"}`, "data-tab": id || "overall", "aria-selected": String(isOn), "aria-controls": "panel", tabindex: isOn ? "0" : "-1" }, text);
  });
  const focused = document.activeElement?.dataset?.tab;
  const before = byId("panel").getAttribute("aria-labelledby");
  byId("tabs").replaceChildren(...tabs);
  if (focused) byId(`tab-${full.tab || "overall"}`).focus();
  byId("panel").setAttribute("aria-labelledby", `tab-${full.tab || "overall"}`);
  if (before !== `tab-${full.tab || "overall"}`) byId("tabs").scrollLeft = byId(`tab-${full.tab || "overall"}`).offsetLeft - byId("tabs").offsetLeft - 30;
}

/** The languages or tasks of a tab, as links that open them. */
function drawPicker(full) {
  const made = [];
  if (full.tab === "task") {
    made.push(picker("Task", content.tasks.map((task) => task.task), full.task, (name) => [name]));
    const { metrics } = board.tasks.get(full.task) ?? { metrics: [] };
    if (metrics.length > 1) made.push(choice("metric", "Score", [["", "headline score"], ...metrics.map((name) => [name, metricNames(board, [name])])], full.metric));
  }
  if (full.tab === "language") made.push(picker("Language", content.languages.map((item) => item.code), full.language, (code) => languageName(board.languages.get(code))));
  byId("picker").replaceChildren(...made);
}

function picker(label, names, chosen, textsOf) {
  const links = names.map((name) => node("li", {}, node("a", { href: formatAddress({ ...kept(), tab: label.toLowerCase(), [label.toLowerCase()]: name }), "aria-current": name === chosen ? "true" : null }, ...textsOf(name))));
  return node("nav", { class: "picker", "aria-label": label }, node("ul", {}, ...links));
}

function kept() {
  return Object.fromEntries(Object.entries(state).filter(([key]) => KEPT.includes(key)));
}

function choice(key, label, options, chosen) {
  return node("select", { "data-key": key, "aria-label": label }, ...options.map(([value, text]) => node("option", { value, selected: value === (chosen ?? "") }, visible(text))));
}

function languageChoice(full) {
  const values = (key) => [...new Set(content.languages.map((item) => item[key]))].sort();
  const option = (value, text) => node("option", { value, selected: value === chosenScope(full) }, visible(text));
  const group = (label, options) => node("optgroup", { label }, ...options);
  return node("select", { "data-scope": "", "aria-label": "Languages" }, option("", `All ${content.languages.length} languages`), option("shared:1", "Those that all systems shown have"),
    group("Family", values("family").map((name) => option(`family:${name}`, name))), group("Script", values("script").map((name) => option(`script:${name}`, name))),
    group("Language", content.languages.map((item) => option(`lang:${item.code}`, [item.name, endonym(item.code)].filter(Boolean).join(" · ")))));
}

const SCOPES = ["shared", "family", "script", "lang"];

function chosenScope(full) {
  const key = SCOPES.find((name) => full[name]);
  return key ? `${key}:${full[key]}` : "";
}

let drawnControls = "";

/** Draw the controls anew where they changed; the search box stays the same element, so that typing goes on. */
function drawControls(full) {
  const search = byId("search");
  if (document.activeElement !== search) search.value = full.q ?? "";
  const signature = [full.sort, full.agg, chosenScope(full), full.size, full.partial, full.ci, full.tab].join("|");
  if (signature === drawnControls) return;
  drawnControls = signature;
  const press = (attributes, text, isOn) => node("button", { type: "button", "aria-pressed": String(isOn), ...attributes }, text);
  const focused = document.activeElement?.closest("#choices") ? focusKey(document.activeElement) : null;
  byId("choices").replaceChildren(
    ...(full.tab ? [] : [node("div", { class: "segments", role: "group", "aria-label": "Average" }, ...AVERAGES.map(([value, text]) => press({ "data-agg": value || "average" }, text, value === (full.agg ?? ""))))]),
    ...(full.tab === "language" || full.tab === "family" ? [] : [languageChoice(full)]),
    ...(content.systems.some((system) => system.parameters) ? [choice("size", "Size", [["", "Any size"], ...SIZES], full.size)] : []),
    choice("sort", "Order", ORDERS.filter(([key]) => ["", "label"].includes(key) || content.systems.some((system) => system[key === "data" ? "monolingual" : key])), full.sort),
    press({ "data-switch": "partial" }, "partial results below", full.partial !== "0"),
    press({ "data-switch": "ci" }, "intervals", full.ci !== "0"));
  if (focused) document.querySelector(`#choices ${focused}`)?.focus();
}

function focusKey(element) {
  const [name, value] = Object.entries(element.dataset)[0] ?? ["", ""];
  return `[data-${name}="${CSS.escape(value)}"]`;
}

/** A chip for each active filter; a click removes it. */
function drawChips() {
  const texts = {
    q: (value) => `“${value}”`, agg: (value) => AVERAGES.find(([id]) => id === value)?.[1] ?? value, size: (value) => SIZES.find(([id]) => id === value)?.[1] ?? value,
    lang: (value) => board.languages.get(value)?.name ?? value, family: (value) => `family: ${value}`, script: (value) => `script: ${value}`, shared: () => "languages of all systems shown",
    partial: () => "no partial results", ci: () => "no intervals", metric: (value) => metricNames(board, [value]),
  };
  const active = Object.keys(texts).filter((key) => state[key]);
  const chips = active.map((key) => node("li", {}, node("button", { type: "button", "data-drop": key, "aria-label": `Remove filter ${visible(texts[key](state[key]))}` }, `${visible(texts[key](state[key]))} ×`)));
  byId("chips-active").replaceChildren(...chips, ...(active.length > 1 ? [node("li", {}, node("button", { type: "button", class: "link", "data-drop": active.join(",") }, "remove all"))] : []));
}

function drawRail(full, isTable) {
  const rows = full.partial === "0" ? shown.ranked : [...shown.ranked, ...shown.partial];
  const hasRail = isTable && !full.tab && !full.agg;
  const charts = hasRail ? [sourceChart(board, shown, rows), sizeChart(shown, "Average")].filter(Boolean) : [];
  byId("rail").hidden = !charts.length;
  byId("rail").replaceChildren(...charts);
}

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = node("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    byId("said").textContent = "Link copied.";
  } catch {
    const box = byId("link");
    box.value = location.href;
    box.hidden = false;
    box.select();
    byId("said").textContent = "The browser does not let this page copy: the link is in the field.";
  }
}

const DEEDS = {
  csv: () => save("board.csv", "text/csv", toCsv(exportRows(shown))),
  latex: () => save("board.tex", "text/x-tex", toLatex(shown, content.title)),
  link: copyLink,
};

function sortBy(id) {
  const falling = state.tab === "family" || !shown.smaller;
  const first = id === "label" ? "a" : falling || id === "known" ? "d" : "a";
  const isOn = (state.sort || "total") === id;
  const next = isOn ? ((state.dir || first) === "d" ? "a" : "d") : first;
  change({ sort: id === "total" ? "" : id, dir: next === first ? "" : next });
}

function toggled(name) {
  const open = new Set((state.open || "").split(",").filter(Boolean));
  if (!open.delete(name)) open.add(name);
  return [...open].join(",");
}

/** What a click on a button with data of a kind does. */
const CLICKS = {
  tab: (value) => change({ ...Object.fromEntries(Object.keys(state).map((key) => [key, KEPT.includes(key) ? state[key] : ""])), ...(value === "language" ? { lang: "", family: "", script: "" } : {}), tab: value === "overall" ? "" : value }),
  sort: sortBy,
  unfold: (value) => change({ open: toggled(value) }),
  system: (value) => change({ sys: state.sys === value ? "" : value }),
  agg: (value) => change({ agg: value === "average" ? "" : value, sort: "", dir: "" }),
  switch: (value) => change({ [value]: state[value] === "0" ? "" : "0" }),
  drop: (value) => change(Object.fromEntries(value.split(",").map((key) => [key, ""]))),
  kind: (value) => change({ kind: value, dbucket: "" }),
  open: (value) => change({ open: value }),
  deed: (value) => DEEDS[value](),
};

function onClick(event) {
  const button = event.target.closest?.("button");
  const kind = button && Object.keys(CLICKS).find((name) => name in button.dataset);
  if (!kind) return;
  const again = `button[data-${kind}="${CSS.escape(button.dataset[kind])}"]`;
  CLICKS[kind](button.dataset[kind]);
  // What was clicked was drawn anew: the focus goes on from there, or to the table where it is gone.
  if (!button.isConnected) (document.querySelector(again) ?? byId("panel")).focus();
}

function onKey(event) {
  const tabs = [...byId("tabs").children];
  const at = tabs.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -at, End: tabs.length - 1 - at }[event.key];
  if (at < 0 || step === undefined) return;
  event.preventDefault();
  tabs[(at + step + tabs.length) % tabs.length].click();
}

function take(box) {
  if (box.id === "search") return;
  if ("scope" in box.dataset) {
    const [key, ...rest] = box.value.split(":");
    change({ ...Object.fromEntries(SCOPES.map((name) => [name, ""])), ...(key ? { [key]: rest.join(":") } : {}) });
  } else if (box.dataset.key) change({ [box.dataset.key]: box.value });
}

/** On paper a wide table is made as small as the page needs. */
function fitPaper(isPrinting) {
  const table = byId("board");
  table.style.zoom = "";
  document.body.classList.toggle("paper", isPrinting);
  if (isPrinting) drawAll();
  if (isPrinting) table.style.zoom = String(Math.min(1, 1000 / Math.max(1, table.scrollWidth)));
}

function listen() {
  document.addEventListener("click", onClick);
  byId("tabs").addEventListener("keydown", onKey);
  document.addEventListener("change", (event) => take(event.target));
  byId("search").addEventListener("input", (event) => {
    clearTimeout(pending);
    pending = setTimeout(() => change({ q: event.target.value }, true), 60);
  });
  addEventListener("popstate", restore);
  addEventListener("beforeprint", () => fitPaper(true));
  addEventListener("afterprint", () => fitPaper(false));
}

for (const place of document.querySelectorAll(".scripted")) place.hidden = false;
byId("plain").hidden = true;
byId("panel").setAttribute("role", "tabpanel");
listen();
restore();
window.harnessBoard = { draw: (update) => change(update), shown: () => shown, drawAll };
