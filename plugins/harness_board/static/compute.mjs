// Pure functions of the board: choose, aggregate, rank, format. No document, no window.

const Z = 1.959964;
export const LABELS = {
  paper: "mean of the category means; a category is the mean of its tasks, a task the mean over its languages",
  flat: "mean of all tasks, each the mean over its languages",
  category: "the mean of each category's tasks; overall is the mean of the categories",
  worst: "mean over tasks of the lowest score of any language",
  gap: "mean over tasks of: source language minus the mean of the other languages; smaller is better",
};

/** @param {(number|null)[]} values @returns {number|null} the mean; null where one is missing or there is none */
export function mean(values) {
  if (!values.length || values.some((value) => value === null || value === undefined)) return null;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** @returns {string} one decimal, exact halves to the even digit as Python does; "-" for null */
export function format(value, digits = 1) {
  if (value === null || value === undefined) return "-";
  const rounded = Math.round(value * 1e6) / 1e6;
  const isTie = digits === 1 && Number.isInteger(rounded * 4) && !Number.isInteger(rounded * 2);
  const text = isTie ? (2 * Math.round((rounded * 10) / 2) / 10).toFixed(1) : rounded.toFixed(digits);
  const short = /^-0\.?0*$/.test(text) ? text.slice(1) : text;
  return short.replace(/\B(?=(\d{3})+(?!\d)(?=\.|$))/g, ",");
}

/** @returns {{paper: number|null, flat: number|null, categories: Record<string, number|null>}} as harness.metrics.suites.overall */
export function overall(scores, tasks, categories) {
  const means = {};
  for (const [name, members] of Object.entries(categories)) means[name] = mean(members.map((task) => scores[task] ?? null));
  return { paper: mean(Object.values(means)), flat: mean(tasks.map((task) => scores[task] ?? null)), categories: means };
}

export function shownLanguages(task) {
  return [...task.languages, ...(task.added || [])];
}

/** @returns {string[]} the languages of a task's mean: its own, or an added one where that alone is asked for */
function countedLanguages(task, languages) {
  const [only] = languages && languages.size === 1 ? languages : [];
  return (task.added || []).includes(only) ? [only] : task.languages;
}

/** Prepare the content of a page: scores by system, task and metric; languages by code. */
export function prepare(content) {
  const scores = content.systems.map(() => new Map());
  for (const [system, task, metric, m = null, se = null, low = null, high = null, whole = 1, note = "", values = null, ses = null, lows = null, highs = null] of content.scores) {
    const known = scores[system];
    if (!known.has(task)) known.set(task, new Map());
    known.get(task).set(metric, { mean: m, se, low, high, whole: !!whole, note, values, ses, lows, highs });
  }
  const languages = new Map(content.languages.map((language) => [language.code, language]));
  const tasks = new Map(content.tasks.map((task) => [task.task, { ...task, places: new Map(shownLanguages(task).map((code, place) => [code, place])) }]));
  return { content, scores, languages, tasks };
}

/** @returns {Set<string>|null} the languages that the filters leave, or null where they leave all */
export function chosenLanguages(board, state) {
  if (!state.language && !state.lang && !state.family && !state.script) return null;
  const wanted = state.language || state.lang;
  const fits = (item) =>
    (!wanted || item.code === wanted) && (!state.family || item.family === state.family) && (!state.script || item.script === state.script);
  return new Set(board.content.languages.filter(fits).map((item) => item.code));
}

export function chosenTasks(board, state, languages) {
  return [...board.tasks.values()].filter(
    (task) =>
      (!(state.task || state.only) || task.task === (state.task || state.only)) &&
      (!state.metric || task.metrics.includes(state.metric)) &&
      (!languages || shownLanguages(task).some((code) => languages.has(code))),
  );
}

/** @returns {string[]} the metrics whose mean is shown: of a whole task, or of single languages */
export function shownMetrics(task, state, byLanguage) {
  if (state.metric) return [state.metric];
  return byLanguage ? task.by_language : task.headline;
}

function absence(board, system, task, code) {
  const known = board.content.systems[system].absences || {};
  if (code) return known[`${task.task}:${code}`] || "no score in this language";
  return known[task.task] || Object.entries(known).find(([key]) => key.startsWith(`${task.task}:`))?.[1] || "no score of this system";
}

export function languageCell(board, system, task, code, state) {
  const place = task.places.get(code);
  if (place === undefined) return { value: null, se: null, whole: true, title: "this task does not have the language" };
  const scores = shownMetrics(task, state, true).map((metric) => board.scores[system].get(task.task)?.get(metric));
  const of = (field) => mean(scores.map((score) => score?.[field]?.[place] ?? null));
  const value = of("values");
  if (value === null) return { value, se: null, whole: true, title: absence(board, system, task, code) };
  return { value, se: of("ses"), low: of("lows"), high: of("highs"), whole: true, title: notes(scores, true) };
}

function notes(found, byLanguage) {
  const texts = new Set(found.map((score) => score?.note).filter(Boolean));
  if (!byLanguage && found.some((score) => score && !score.whole)) texts.add("over fewer languages than the task has");
  return [...texts].join(" ");
}

/** @returns {Cell} a task, over the chosen languages, in the way of an aggregation */
export function taskCell(board, system, task, languages, state) {
  const agg = state.agg || "paper";
  const whole = !languages || task.languages.every((code) => languages.has(code));
  if (whole && !task.forced && agg !== "worst" && agg !== "gap") {
    const found = shownMetrics(task, state, false).map((metric) => board.scores[system].get(task.task)?.get(metric));
    const of = (field) => mean(found.map((score) => score?.[field] ?? null));
    const value = of("mean");
    if (value === null) return { value, se: null, whole: true, title: absence(board, system, task, "") };
    return { value, se: of("se"), low: of("low"), high: of("high"), whole: found.every((score) => score.whole), title: notes(found, false) };
  }
  const codes = countedLanguages(task, languages).filter((code) => agg === "gap" || !languages || languages.has(code));
  return overLanguages(board, system, task, codes, state, agg);
}

function overLanguages(board, system, task, codes, state, agg) {
  const scores = shownMetrics(task, state, true).map((metric) => board.scores[system].get(task.task)?.get(metric));
  // F1 and exact match are of the same items: the mean of their errors never claims too much.
  const of = (field, code) => mean(scores.map((score) => score?.[field]?.[task.places.get(code)] ?? null));
  const values = new Map(codes.map((code) => [code, of("values", code)]).filter(([, value]) => value !== null));
  const known = [...values.keys()];
  const none = (title) => ({ value: null, se: null, whole: true, title });
  if (!codes.length) return none("no language is left");
  if (!known.length) return none(absence(board, system, task, codes[0]));
  const whole = known.length === codes.length;
  const title = [whole ? "" : `over ${known.length} of ${codes.length} languages`, notes(scores, true)].filter(Boolean).join("; ");
  const single = (code) => ({ value: values.get(code), se: of("ses", code), low: of("lows", code), high: of("highs", code) });
  const average = (some) => mean(some.map((code) => values.get(code)));
  if (agg === "gap") {
    const others = known.filter((code) => code !== task.source);
    if (!values.has(task.source) || !others.length) return none("the source language is not among its test languages");
    return { value: values.get(task.source) - average(others), se: null, whole, title };
  }
  if (agg === "worst") {
    const lowest = known.reduce((one, other) => (values.get(other) < values.get(one) ? other : one));
    return { ...single(lowest), whole, title: [lowest, title].filter(Boolean).join("; ") };
  }
  return { ...(known.length === 1 ? single(known[0]) : { value: average(known), se: null }), whole, title };
}

/** @returns {{cells: Record<string, Cell>, total: Cell, categories: Record<string, Cell>}} all tasks of a system and its overall score */
export function systemScores(board, system, tasks, languages, state) {
  const cells = {};
  for (const task of tasks) cells[task.task] = taskCell(board, system, task, languages, state);
  const agg = state.agg || "paper";
  let counted = tasks;
  if (agg === "gap") counted = tasks.filter((task) => !task.source || task.languages.includes(task.source));
  const names = counted.map((task) => task.task);
  const groups = {};
  const inCategories = agg === "paper" || agg === "category";
  for (const [name, members] of Object.entries(board.content.categories)) {
    const kept = members.filter((task) => names.includes(task));
    if (kept.length) groups[name] = kept;
  }
  const useGroups = inCategories && Object.keys(groups).length > 0;
  const used = useGroups ? Object.values(groups).flat() : names;
  const scores = Object.fromEntries(used.map((task) => [task, cells[task].value]));
  const found = overall(scores, used, groups);
  const weights = {};
  for (const task of used) weights[task] = 1 / used.length;
  if (useGroups) for (const members of Object.values(groups)) for (const task of members) weights[task] = 1 / members.length / Object.keys(groups).length;
  const missing = used.filter((task) => cells[task].value === null);
  const whole = used.every((task) => cells[task].whole);
  const total = {
    value: useGroups ? found.paper : found.flat,
    se: missing.length ? null : combinedError(used.map((task) => [weights[task], errorOf(cells[task])])),
    ...(used.length === 1 ? { low: cells[used[0]].low, high: cells[used[0]].high } : {}),
    whole,
    title: missing.length ? `no score for ${missing.join(", ")}` : whole ? "" : "over fewer languages than the tasks have",
  };
  const categories = {};
  for (const [name, value] of Object.entries(found.categories)) {
    categories[name] = { value, se: null, whole: groups[name].every((task) => cells[task].whole), title: value === null ? `no score for ${groups[name].filter((task) => cells[task].value === null).join(", ")}` : "" };
  }
  return { cells, total, categories };
}

/** @param {[number, number|null][]} parts weights and errors of independent scores @returns {number|null} */
export function combinedError(parts) {
  if (!parts.length || parts.some(([, se]) => se === null || se === undefined)) return null;
  return Math.sqrt(parts.reduce((sum, [weight, se]) => sum + (weight * se) ** 2, 0));
}

/** @returns {number|null} the standard error; of a score without spread the longer side of its interval over Z; null: unknown */
export function errorOf(cell) {
  if (cell.se) return cell.se;
  const hasEnds = cell.value !== null && typeof cell.low === "number" && typeof cell.high === "number";
  return hasEnds ? Math.max(cell.value - cell.low, cell.high - cell.value) / Z : null;
}

/** @returns {boolean} whether an unpaired 95 % comparison separates two scores; never where an error is not known */
function differ(a, b) {
  return a.error !== null && b.error !== null && Math.abs(a.value - b.value) > Z * Math.hypot(a.error, b.error);
}

/**
 * Ranks of complete scores. Where errors are known: tie groups (not separable from the best of the group) and rank
 * intervals, from unpaired differences. What has no known error is separable from nothing.
 * @param {(Cell|null)[]} cells @returns {{rank: string, group: string, range: string}[]}
 */
export function rank(cells, smallerIsBetter = false) {
  const sign = smallerIsBetter ? -1 : 1;
  const known = cells.map((cell, place) => ({ place, value: cell && cell.value !== null && cell.whole ? sign * cell.value : null, error: cell && errorOf(cell) })).filter((item) => item.value !== null);
  known.sort((a, b) => b.value - a.value || a.place - b.place);
  const result = cells.map(() => ({ rank: "", group: "", range: "" }));
  const hasErrors = known.length > 1 && known.some((item) => item.error !== null);
  let leader = null;
  let letter = -1;
  known.forEach((item, order) => {
    const same = order && Math.abs(known[order - 1].value - item.value) < 1e-9;
    result[item.place].rank = same ? result[known[order - 1].place].rank : String(order + 1);
    if (!hasErrors) return;
    if (!leader || differ(leader, item)) [leader, letter] = [item, letter + 1];
    else if (leader.error === null) leader = item;
    const better = known.filter((other) => other.value > item.value && differ(other, item)).length;
    const worse = known.filter((other) => other.value < item.value && differ(other, item)).length;
    result[item.place].group = letter < 26 ? String.fromCharCode(65 + letter) : `G${letter + 1}`;
    result[item.place].range = `${better + 1}–${known.length - worse}`;
  });
  return result;
}

/**
 * What fields of a column are coloured by: those that do not differ measurably from the first of their band, from the
 * best down, share the band's mean. Scores without a known error keep their own level.
 * @param {Cell[]} cells @returns {(number|null)[]}
 */
export function levels(cells) {
  const found = cells.map((cell) => cell.value);
  const known = cells.map((cell, place) => ({ place, value: cell.value, error: errorOf(cell) })).filter((item) => item.value !== null && item.error !== null);
  known.sort((a, b) => b.value - a.value || a.place - b.place);
  let start = 0;
  for (let end = 1; end <= known.length; end += 1) {
    if (end < known.length && !differ(known[start], known[end])) continue;
    const band = known.slice(start, end);
    const middle = band.reduce((sum, item) => sum + item.value, 0) / band.length;
    for (const item of band) found[item.place] = middle;
    start = end;
  }
  return found;
}

function lowest(task, metrics, agg) {
  return agg !== "gap" && metrics.length === 1 && metrics[0] === task.headline[0] ? task.chance ?? 0 : 0;
}

export function keepsSystem(system, state) {
  const same = (key) => !state[key] || String(system[key] ?? "") === state[key];
  const data = system.monolingual || null;
  const words = [system.label, system.protocol, system.method, system.adapter, system.paper, system.view].join(" ").toLowerCase();
  return (
    ["year", "adapter", "method", "protocol", "origin", "transfer", "reported"].every((key) => same(key)) &&
    (!state.pmin || (system.parameters ?? -1) >= Number(state.pmin) * 1e6) &&
    (!state.pmax || (system.parameters !== undefined && system.parameters <= Number(state.pmax) * 1e6)) &&
    (!state.unit || data?.unit === state.unit) &&
    (!state.dmin || !state.unit || (data && data.value >= Number(state.dmin))) &&
    (!state.q || words.includes(state.q.toLowerCase()))
  );
}

export function amount(value) {
  if (value === undefined || value === null) return "-";
  for (const [size, mark] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${String(Number((value / size).toPrecision(3)))}${mark}`;
  }
  return String(value);
}

export const FACTS = {
  setting: { head: "Setting", text: (s) => [s.protocol, s.view].filter(Boolean).join(" ").replaceAll("_", " ") },
  method: { head: "Method", text: (s) => s.method || "-" },
  adapter: { head: "Adapter", text: (s) => s.adapter || "-" },
  year: { head: "Year", text: (s) => String(s.year ?? "-") },
  parameters: { head: "Parameters", text: (s) => amount(s.parameters), sort: (s) => s.parameters ?? null },
  active: { head: "Active parameters", text: (s) => amount(s.active), sort: (s) => s.active ?? null },
  monolingual: { head: "Monolingual data", text: (s) => data(s.monolingual), unsortable: true },
  parallel: { head: "Parallel data", text: (s) => data(s.parallel), unsortable: true },
  languages_seen: { head: "Languages seen", text: (s) => String(s.languages_seen ?? "-"), sort: (s) => s.languages_seen ?? null },
  transfer: { head: "Transfer", text: (s) => (s.transfer || "-").replaceAll("_", " ") },
  fine_tuning: { head: "Fine-tuning data", text: (s) => s.fine_tuning || "-" },
  licence: { head: "Licence", text: (s) => s.licence || "-" },
  paper: { head: "Paper", text: (s) => s.paper || "-" },
  contamination: { head: "Contamination", text: (s) => s.contamination || "-" },
  reported: { head: "Reported", text: (s) => (s.reported || "-").replaceAll("_", " ") },
};

function data(found) {
  return found ? `${amount(found.value)} ${found.unit.replaceAll("_", " ")}` : "-";
}

/** @returns {string[]} the facts that are shown as columns: the chosen ones, or those in which systems differ */
export function shownFacts(board, state) {
  if (state.cols !== undefined) return state.cols.split(",").filter((name) => FACTS[name]);
  const systems = board.content.systems;
  return ["setting", "parameters"].filter((name) => new Set(systems.map((s) => FACTS[name].text(s))).size > 1);
}

function scoreColumns(board, state, tasks, languages) {
  const agg = state.agg || "paper";
  if (state.task && tasks.length === 1) {
    const [task] = tasks;
    const codes = shownLanguages(task).filter((code) => !languages || languages.has(code));
    const metrics = shownMetrics(task, state, true).join(", ");
    return codes.map((code) => ({ id: `l:${code}`, head: `${code}${task.marks?.[code] ?? ""}`, title: `${board.languages.get(code)?.name ?? code}: ${metrics}`, low: lowest(task, shownMetrics(task, state, true), ""), of: (system) => languageCell(board, system, task, code, state) }));
  }
  if (agg === "category" && Object.keys(board.content.categories).length) {
    const starts = new Map(tasks.map((task) => [task.task, lowest(task, shownMetrics(task, state, !!languages), agg)]));
    const lowOf = (members) => mean(members.filter((name) => starts.has(name)).map((name) => starts.get(name))) ?? 0;
    const kept = Object.entries(board.content.categories).filter(([, members]) => tasks.some((task) => members.includes(task.task)));
    return kept.map(([name, members]) => ({ id: `c:${name}`, head: name.replaceAll("_", " "), title: `mean of ${members.join(", ")}`, low: lowOf(members), of: (_, found) => found.categories[name] }));
  }
  const byLanguage = !!languages || agg === "worst" || agg === "gap";
  const marks = (task) => (state.language && task.marks?.[state.language]) || "";
  return tasks.map((task) => ({ id: `t:${task.task}`, head: `${task.task}${marks(task)}`, title: `${shownMetrics(task, state, byLanguage).join(", ")}: ${agg === "worst" ? "lowest language" : agg === "gap" ? "gap to the source language" : "mean over its languages"}`, low: lowest(task, shownMetrics(task, state, byLanguage), agg), of: (_, found) => found.cells[task.task] }));
}

/** What the table shows: columns, rows in their order, how many rows filters hide. */
export function view(board, state) {
  const languages = chosenLanguages(board, state);
  let tasks = chosenTasks(board, state, languages);
  const kept = board.content.systems.map((system, index) => index).filter((index) => keepsSystem(board.content.systems[index], state));
  let shared = languages;
  if (state.shared) {
    const all = new Set();
    for (const task of tasks) for (const code of task.languages) if ((!languages || languages.has(code)) && kept.every((index) => !board.scores[index].has(task.task) || languageCell(board, index, task, code, state).value !== null)) all.add(`${task.task}:${code}`);
    tasks = tasks.map((task) => {
      const codes = task.languages.filter((code) => all.has(`${task.task}:${code}`));
      return { ...task, languages: codes, places: task.places };
    }).filter((task) => task.languages.length);
    shared = new Set(tasks.flatMap((task) => task.languages));
  }
  const columns = scoreColumns(board, state, tasks, shared);
  const byShared = !!state.shared;
  const rows = [];
  for (const index of kept) {
    const found = systemScores(board, index, byShared ? tasks.map((task) => ({ ...task, forced: true })) : tasks, shared, state);
    const cells = columns.map((column) => column.of(index, found));
    const have = cells.filter((cell) => cell.value !== null).length;
    const coverage = columns.length ? (100 * have) / columns.length : 0;
    if (Number(state.cov || 0) <= coverage && (have || found.total.value !== null || !(state.language || state.task))) rows.push({ index, system: board.content.systems[index], cells, total: found.total, coverage });
  }
  const smaller = (state.agg || "paper") === "gap";
  const ranks = rank(rows.map((row) => row.total), smaller);
  rows.forEach((row, place) => Object.assign(row, ranks[place]));
  const facts = shownFacts(board, state);
  sortRows(rows, columns, state, smaller);
  const hidden = board.content.systems.length - rows.length;
  return { columns, rows, facts, hidden, hasErrors: rows.some((row) => row.range), smaller, tasks };
}

/** Sort rows in place: by a column where one is chosen, else by rank; rows without a value last. */
export function sortRows(rows, columns, state, smaller) {
  const key = state.sort || "total";
  const place = columns.findIndex((column) => column.id === key);
  const ofRow = (row) => {
    if (place >= 0) return row.cells[place].value;
    if (key === "label") return row.system.label.toLowerCase();
    if (key === "coverage") return row.coverage;
    if (FACTS[key]) return FACTS[key].unsortable ? null : (FACTS[key].sort || FACTS[key].text)(row.system);
    return row.total.value;
  };
  const falling = (state.dir || defaultDirection(key, smaller)) === "d";
  const order = rows.map((row, at) => [row, ofRow(row), at]);
  const incomplete = (row) => (key === "total" && !row.total.whole ? 1 : 0);
  order.sort(([a, x, i], [b, y, j]) => {
    if (x === null || y === null) return (x === null) - (y === null) || i - j;
    const worse = incomplete(a) - incomplete(b);
    return worse || (x < y ? -1 : x > y ? 1 : 0) * (falling ? -1 : 1) || i - j;
  });
  order.forEach(([row], at) => (rows[at] = row));
}

/** @returns {string} "a" for names and where smaller is better, else "d" */
export function defaultDirection(key, smaller) {
  if (key === "label" || (FACTS[key] && !FACTS[key].sort)) return "a";
  return smaller && key === "total" ? "a" : "d";
}

/** @returns {[number, number]|null} the 95 % interval: as the results keep it, or that of a mean made here */
export function endsOf(cell) {
  if (cell.value === null) return null;
  if (typeof cell.low === "number" && typeof cell.high === "number") return [cell.low, cell.high];
  return cell.se === null ? null : [Math.max(0, cell.value - Z * cell.se), Math.min(100, cell.value + Z * cell.se)];
}

/** @returns {string} "±3.1" for an interval that is symmetric about the score, else its ends: as all reports print it */
export function uncertainty(value, ends) {
  if (ends === null) return "";
  const [low, high] = ends;
  const [shown, half] = [Number(format(value)), Number(format((high - low) / 2))];
  const symmetric = Math.abs(value - (low + high) / 2) <= Math.max(0.05, (high - low) / 20);
  if (symmetric && Math.round(10 * (shown - half)) >= 0 && Math.round(10 * (shown + half)) <= 1000) return `±${format(half)}`;
  const end = (point) => format(point).replace(/^(0|100)\.0$/, "$1");
  return `(${end(low)}–${end(high)})`;
}

/** @returns {string} a cell as text; "~" marks a mean over fewer languages */
export function cellText(cell, withInterval = false) {
  if (cell.value === null) return "-";
  const interval = withInterval ? uncertainty(cell.value, endsOf(cell)) : "";
  return `${format(cell.value)}${cell.whole ? "" : "~"}${interval && ` ${interval}`}`;
}

export function cellTitle(cell) {
  const ends = endsOf(cell);
  return [cell.title, ends ? `95 % interval ${format(ends[0])} to ${format(ends[1])}` : ""].filter(Boolean).join("; ");
}

/** @returns {Record<string, unknown>[]} what is shown as plain rows: the CSV and JSON export */
export function exportRows(shown) {
  return shown.rows.map((row) => ({
    rank: row.rank, ...(shown.hasErrors ? { rank_interval: row.range, tie_group: row.group } : {}), system: row.system.label,
    ...Object.fromEntries(shown.facts.map((name) => [name, FACTS[name].text(row.system)])),
    overall: row.total.value, overall_se: row.total.se, overall_complete: row.total.whole,
    ...Object.fromEntries(shown.columns.map((column, place) => [column.id.slice(2), row.cells[place].value])),
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

/** @returns {State} of an address: "#/task/xnli?agg=flat" */
export function parseAddress(hash, route = {}) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  const state = Object.fromEntries(new URLSearchParams(query));
  const found = /^\/(task|language)\/([^/]+)$/.exec(path);
  delete state.task;
  delete state.language;
  try {
    if (found) state[found[1]] = decodeURIComponent(found[2]);
  } catch {
    return { ...route };
  }
  return { ...state, ...route };
}

export function formatAddress(state, route = {}) {
  const path = route.task || route.language ? "" : state.task ? `/task/${encodeURIComponent(state.task)}` : state.language ? `/language/${encodeURIComponent(state.language)}` : "/";
  const rest = Object.entries(state).filter(([key, value]) => key !== "task" && key !== "language" && value !== undefined && (value !== "" || key === "cols")).sort();
  const query = new URLSearchParams(rest).toString();
  return `#${path}${query ? `?${query}` : ""}`;
}
