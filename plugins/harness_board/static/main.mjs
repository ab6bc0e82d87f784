// Wires the page: controls to the state, the state to the address, and both to what is drawn.

import { FACTS, LABELS, cellText, cellTitle, defaultDirection, exportRows, formatAddress, levels, parseAddress, prepare, shownFacts, toCsv, view } from "./compute.mjs";
import { controls } from "./controls.mjs";
import { drawHead, drawRows, isDrawn, node, scatter, visible } from "./draw.mjs";
import { drawDrill } from "./drill.mjs";

const byId = (id) => document.getElementById(id);
const content = JSON.parse(byId("board-data").textContent);
const route = content.route || {};
const board = prepare(content);
let state = {};
let shown = null;
let pending = 0;
let slow = 0;

function change(update) {
  state = Object.fromEntries(Object.entries({ ...state, ...update }).filter(([key, value]) => value !== undefined && value !== null && (value !== "" || key === "cols")));
  history.replaceState(null, "", formatAddress(state, route));
  draw();
}

function draw() {
  shown = view(board, state);
  const formula = formulaOf(state.agg || "paper");
  const links = { facts: FACTS, formula, direction: (id) => defaultDirection(id, shown.smaller) };
  drawHead(byId("board-head"), shown, state, links);
  drawRows(byId("board-rows"), shown, toolsOf());
  drawWords(formula);
  clearTimeout(slow);
  slow = setTimeout(() => byId("scatter").replaceChildren(...scatterOf()), 50);
  const panel = byId("drill");
  panel.hidden = !state.panel;
  if (state.panel) drawDrill(panel, board, state, change);
  for (const button of document.querySelectorAll("[data-panel]")) button.setAttribute("aria-pressed", String(button.dataset.panel === state.panel));
}

function toolsOf() {
  return { facts: FACTS, levels, colours: state.plain !== "1", text: (cell) => cellText(cell, state.ci === "1"), title: cellTitle };
}

function drawWords(formula) {
  const place = state.task ? `Task ${state.task}` : state.language ? `Language ${board.languages.get(state.language)?.name ?? state.language}` : content.title;
  const known = (state.task && !board.tasks.has(state.task)) || (state.language && !board.languages.has(state.language));
  byId("place").textContent = visible(known ? `${place} is not on this board` : place);
  byId("board").caption.textContent = byId("place").textContent;
  byId("formula").textContent = `Overall: ${formula}.`;
  const hidden = shown.hidden ? `${shown.hidden} hidden by filters or without a score here` : "none hidden";
  byId("count").textContent = `${shown.rows.length} of ${content.systems.length} systems shown, ${hidden}.`;
  const isGap = shown.smaller && !state.task;
  byId("legends").hidden = state.plain === "1";
  byId("legend-score").hidden = isGap;
  byId("legend-gap").hidden = !isGap;
  byId("back").hidden = !(state.task || state.language);
}

function formulaOf(agg) {
  if (!state.task) return LABELS[agg];
  return agg === "worst" || agg === "gap" ? LABELS[agg].replace("mean over tasks of", "the task's") : "the task's mean over its languages";
}

function scatterOf() {
  const points = shown.rows.filter((row) => row.system.parameters && row.total.value !== null && row.total.whole).map((row) => ({ label: [visible(row.system.label), FACTS.setting.text(row.system)].join(", "), x: row.system.parameters, y: row.total.value }));
  return points.length > 1 ? [scatter(points, "overall score")] : [node("p", { class: "note" }, "Score against parameters needs two systems with an overall score whose size is known.")];
}

function fillControls() {
  for (const box of document.querySelectorAll("[data-key]")) {
    const value = state[box.dataset.key] ?? "";
    if (box.type === "checkbox") box.checked = value === "1";
    else box.value = value;
  }
  const facts = shownFacts(board, state);
  for (const box of document.querySelectorAll("[data-fact]")) box.checked = facts.includes(box.dataset.fact);
}

function restore() {
  state = parseAddress(location.hash, route);
  fillControls();
  draw();
}

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = node("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

async function copyLink(button) {
  try {
    await navigator.clipboard.writeText(location.href);
    byId("said").textContent = "Link copied.";
  } catch {
    const box = byId("link");
    box.value = location.href;
    box.hidden = false;
    box.select();
    byId("said").textContent = "The browser does not let a file copy: the link is next to the button.";
  }
  button.focus();
}

const DEEDS = {
  csv: () => save("board.csv", "text/csv", toCsv(exportRows(shown))),
  json: () => save("board.json", "application/json", `${JSON.stringify(exportRows(shown), null, 1)}\n`),
  link: (button) => copyLink(button),
  reset: () => {
    state = Object.fromEntries(Object.entries(state).filter(([key]) => ["task", "language"].includes(key)));
    change({});
    fillControls();
  },
};

function listen() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button");
    if (!button) return;
    if (button.dataset.sort) {
      const id = button.dataset.sort;
      const current = (state.sort || "total") === id ? state.dir || defaultDirection(id, shown.smaller) : null;
      change({ sort: id, dir: current === null ? defaultDirection(id, shown.smaller) : current === "d" ? "a" : "d" });
      document.querySelector(`[data-sort="${CSS.escape(id)}"]`)?.focus();
    } else if (button.dataset.panel) {
      change({ panel: state.panel === button.dataset.panel ? "" : button.dataset.panel });
    } else if (button.dataset.deed) DEEDS[button.dataset.deed](button);
  });
  const take = (box) => {
    if (box.dataset.fact) {
      const facts = [...document.querySelectorAll("[data-fact]")].filter((item) => item.checked).map((item) => item.dataset.fact);
      change({ cols: facts.join(",") });
    } else if (box.dataset.key) change({ [box.dataset.key]: box.type === "checkbox" ? (box.checked ? "1" : "") : box.value });
  };
  document.addEventListener("change", (event) => take(event.target));
  document.addEventListener("input", (event) => {
    if (event.target.type !== "search" && event.target.type !== "number") return;
    clearTimeout(pending);
    pending = setTimeout(() => take(event.target), 60);
  });
  addEventListener("hashchange", restore);
}

byId("controls").append(...controls(content, route));
byId("controls").hidden = false;
listen();
restore();
window.harnessBoard = { draw: (update) => change(update), shown: () => shown, isDrawn };
