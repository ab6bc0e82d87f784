// Pure functions of the board: choose, aggregate, rank, order. No document, no window.

export const Z = 1.959964;
export const LABELS = {
  categories: "mean of the category means; a category is the mean of its tasks, a task the mean over its languages",
  tasks: "mean of the tasks, each the mean over its languages",
  task: "the task's mean over its languages",
  worst: "mean over tasks of the lowest score of any language",
  gap: "mean over tasks of: source language minus the mean of the other languages; smaller is better",
};
export const SIZES = [["0-200", "under 200M"], ["200-1000", "200M to 1B"], ["1000-10000", "1B to 10B"], ["10000-", "over 10B"]];

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

export function shownLanguages(task) {
  return [...task.languages, ...(task.added || [])];
}

/** @returns {string[]} the languages of a task's mean: its own, or an added one where that alone is asked for */
function countedLanguages(task, languages) {
  const [only] = languages && languages.size === 1 ? languages : [];
  return (task.added || []).includes(only) ? [only] : task.languages;
}

/** Prepare the content of a page: scores by system, task and metric; languages by code; systems with their keys. */
export function prepare(content) {
  const scores = content.systems.map(() => new Map());
  for (const [system, task, metric, m = null, se = null, low = null, high = null, whole = 1, note = "", values = null, ses = null, lows = null, highs = null] of content.scores) {
    const known = scores[system];
    if (!known.has(task)) known.set(task, new Map());
    // A score that is not comparable is no whole one: it is shown with °, and neither ranked nor subtracted.
    known.get(task).set(metric, { mean: m, se, low, high, whole: whole === 1, star: whole > 1, note, values, ses, lows, highs });
  }
  const absences = content.systems.map((system) => new Map(Object.entries(system.absences || {}).map(([key, place]) => [key, content.reasons[place]])));
  const words = content.systems.map((system) => Object.entries(system).filter(([name]) => name !== "absences").map(([, value]) => (typeof value === "object" ? JSON.stringify(value) : value)).join(" ").replaceAll("_", " ").toLowerCase());
  const keys = content.systems.map(systemKey);
  const languages = new Map(content.languages.map((language) => [language.code, language]));
  const tasks = new Map(content.tasks.map((task) => [task.task, { ...task, places: new Map(shownLanguages(task).map((code, place) => [code, place])) }]));
  return { content, scores, absences, words, keys, languages, tasks, series: content.systems.map(() => new Map()) };
}

/** @returns {string} the name of a system in addresses: systems of one board differ in it */
export function systemKey(system) {
  return [system.label, system.protocol, system.method, system.view].filter(Boolean).join(" · ");
}

/** @returns {Set<string>|null} the languages that the filters leave, or null where they leave all */
export function chosenLanguages(board, state) {
  const wanted = pageLanguage(state) || state.lang;
  if (!wanted && !state.family && !state.script) return null;
  const fits = (item) =>
    (!wanted || item.code === wanted) && (!state.family || item.family === state.family) && (!state.script || item.script === state.script);
  return new Set(board.content.languages.filter(fits).map((item) => item.code));
}

export function pageLanguage(state) {
  return state.tab === "language" ? state.language : undefined;
}

export function pageTask(state) {
  return state.tab === "task" ? state.task : undefined;
}

export function chosenTasks(board, state, languages) {
  return [...board.tasks.values()].filter(
    (task) => (!pageTask(state) || task.task === pageTask(state)) && (!languages || shownLanguages(task).some((code) => languages.has(code))),
  );
}

/** @returns {string} the printed names of metrics, as all reports have them */
export function metricNames(board, metrics) {
  return metrics.map((name) => board.content.metrics?.[name] ?? name.replaceAll("_", " ")).join(", ");
}

/** @returns {string[]} the metrics whose mean is shown: of a whole task, or of single languages */
export function shownMetrics(task, state, byLanguage) {
  if (pageTask(state) && task.metrics.includes(state.metric)) return [state.metric];
  return byLanguage ? task.by_language : task.headline;
}

function absence(board, system, task, code) {
  const known = board.absences[system];
  if (code) return known.get(`${task.task}:${code}`) || "no score in this language";
  if (known.has(task.task)) return known.get(task.task);
  for (const [key, reason] of known) if (key.startsWith(`${task.task}:`)) return reason;
  return "no score of this system";
}

const NOTHING = { values: null, ses: null, lows: null, highs: null, note: "", star: false };

/** @returns {{values: (number|null)[]|null, ses, lows, highs, note: string}} a system's scores by language: means over metrics */
function series(board, system, task, metrics) {
  if (metrics.length === 1) return board.scores[system].get(task.task)?.get(metrics[0]) ?? NOTHING;
  const kept = board.series[system];
  const key = `${task.task} ${metrics.join(" ")}`;
  let found = kept.get(key);
  if (found) return found;
  const scores = metrics.map((metric) => board.scores[system].get(task.task)?.get(metric));
  // F1 and exact match are of the same items: the mean of their errors never claims too much.
  const join = (field) => {
    if (scores.some((score) => !score?.[field])) return null;
    return scores[0][field].map((_, place) => mean(scores.map((score) => score[field][place])));
  };
  found = { values: join("values"), ses: join("ses"), lows: join("lows"), highs: join("highs"), note: notesOf(scores), star: isStarred(scores) };
  kept.set(key, found);
  return found;
}

function notesOf(scores) {
  return [...new Set(scores.map((score) => score?.note).filter(Boolean))].join(" ");
}

function isStarred(scores) {
  return scores.some((score) => score?.star);
}

function noScore(title) {
  return { value: null, se: null, whole: true, title };
}

/** @returns {Cell} a system's score of a task in one language */
export function languageCell(board, system, task, code, state) {
  const place = task.places.get(code);
  if (place === undefined) return noScore("this task does not have the language");
  const found = series(board, system, task, shownMetrics(task, state, true));
  const value = found.values?.[place] ?? null;
  if (value === null) return noScore(absence(board, system, task, code));
  return { value, se: found.ses?.[place] ?? null, low: found.lows?.[place] ?? null, high: found.highs?.[place] ?? null, whole: !found.star, star: found.star, title: found.note };
}

const scopes = new WeakMap();

/** @returns {{codes: string[], places: number[], isAll: boolean}} the languages of a task that count, the same for all systems */
function scopeOf(task, languages, isGap) {
  const known = scopes.get(task);
  if (known && known.languages === languages && known.isGap === isGap) return known;
  const codes = countedLanguages(task, languages).filter((code) => isGap || !languages || languages.has(code));
  const isAll = !languages || task.languages.every((code) => languages.has(code));
  const made = { ...scope(task, codes), languages, isGap, isAll };
  scopes.set(task, made);
  return made;
}

function scope(task, codes) {
  return { codes, places: codes.map((code) => task.places.get(code)) };
}

/** @returns {Cell} a task, over the chosen languages, in the way of an aggregation */
export function taskCell(board, system, task, languages, state) {
  const agg = state.agg || "";
  const own = scopeOf(task, languages, agg === "gap");
  if (!own.isAll || task.forced || agg) return overLanguages(board, system, task, own, state, agg);
  const metrics = shownMetrics(task, state, false);
  const known = board.scores[system].get(task.task);
  if (metrics.length === 1) {
    const score = known?.get(metrics[0]);
    if (!score || score.mean === null) return noScore(absence(board, system, task, ""));
    return { value: score.mean, se: score.se, low: score.low, high: score.high, whole: score.whole, star: score.star, title: wholeTitle(score.note, score.whole || score.star) };
  }
  const scores = metrics.map((metric) => known?.get(metric));
  const of = (field) => mean(scores.map((score) => score?.[field] ?? null));
  const value = of("mean");
  if (value === null) return noScore(absence(board, system, task, ""));
  const [whole, star] = [scores.every((score) => score.whole), isStarred(scores)];
  return { value, se: of("se"), low: of("low"), high: of("high"), whole, star, title: wholeTitle(notesOf(scores), whole || star) };
}

function wholeTitle(note, whole) {
  return whole ? note : [note, "over fewer languages than the task has"].filter(Boolean).join(" ");
}

/** @returns {{sum: number, count: number, lowest: number}} of values at places, but one; null counts as unknown */
function tally(values, places, but = -1) {
  let [sum, count, lowest] = [0, 0, -1];
  for (const place of places) {
    const value = values?.[place] ?? null;
    if (value === null || place === but) continue;
    sum += value;
    count += 1;
    if (lowest < 0 || value < values[lowest]) lowest = place;
  }
  return { sum, count, lowest };
}

function overLanguages(board, system, task, own, state, agg) {
  if (!own.codes.length) return noScore("no language is left");
  const { values, ses, lows, highs, note, star } = series(board, system, task, shownMetrics(task, state, true));
  const source = agg === "gap" ? task.places.get(task.source) ?? -1 : -1;
  const { sum, count, lowest } = tally(values, own.places, source);
  const known = count + (source >= 0 && (values?.[source] ?? null) !== null ? 1 : 0);
  if (!known) return noScore(absence(board, system, task, own.codes[0]));
  const isAll = known === own.codes.length;
  const whole = isAll && !star;
  const title = isAll ? note : [`over ${known} of ${own.codes.length} languages`, note].filter(Boolean).join("; ");
  // Languages may share items. The error of their mean is never larger than the mean of their errors.
  const errors = tally(ses, own.places, source);
  const error = count && errors.count === count ? errors.sum / count : null;
  const at = (field, place) => field?.[place] ?? null;
  if (agg === "gap") {
    if (at(values, source) === null || !count) return noScore("the source language is not among its test languages");
    const ofSource = at(ses, source);
    return { value: values[source] - sum / count, se: error === null || ofSource === null ? null : ofSource + error, whole, star, isGap: true, title };
  }
  const single = { value: at(values, lowest), se: at(ses, lowest), low: at(lows, lowest), high: at(highs, lowest), whole, star };
  if (agg === "worst") return { ...single, title: [`lowest: ${shownLanguages(task)[lowest]}`, title].filter(Boolean).join("; ") };
  return known === 1 ? { ...single, title } : { value: sum / count, se: error, whole, star, title };
}

/** @returns {{used: string[], weights: Map<string, number>}} the tasks of an average, and what each weighs in it: the same in its category */
export function averaged(board, tasks, state) {
  const agg = state.agg || "";
  const counted = agg === "gap" ? tasks.filter((task) => !task.source || task.languages.includes(task.source)) : tasks;
  const names = counted.map((task) => task.task);
  const groups = {};
  for (const [name, members] of Object.entries(agg ? {} : board.content.categories)) {
    const kept = members.filter((task) => names.includes(task));
    if (kept.length) groups[name] = kept;
  }
  const parts = Object.values(groups);
  const weights = parts.length ? parts.flatMap((members) => members.map((task) => [task, 1 / members.length / parts.length])) : names.map((task) => [task, 1 / names.length]);
  return { used: weights.map(([task]) => task), weights: new Map(weights), groups };
}

/** @returns {Cell} the average of a system: the sum of weighted tasks; without a value where one is missing */
export function total(cells, weights) {
  let [value, variance, whole, isGap, star, last] = [0, 0, weights.size > 0, false, false, null];
  const missing = [];
  for (const [task, weight] of weights) {
    const cell = cells[task];
    last = cell;
    if (cell.value === null) missing.push(task);
    const error = errorOf(cell);
    value += weight * cell.value;
    variance = error === null || variance === null ? null : variance + (weight * error) ** 2;
    whole &&= cell.whole;
    isGap ||= Boolean(cell.isGap);
    star ||= Boolean(cell.star);
  }
  if (missing.length || !weights.size) return { ...noScore(`no score for ${missing.join(", ")}`), whole: false };
  const one = weights.size === 1 ? { low: last.low, high: last.high } : {};
  return { value, se: variance === null ? null : Math.sqrt(variance), ...one, whole, star, isGap, title: whole ? "" : star ? "with scores that are not comparable" : "over fewer languages than the tasks have" };
}

/** @returns {Cell} the mean of those of some tasks that have a score; whole only where all have a whole one */
export function partialMean(cells, members) {
  const known = members.filter((task) => cells[task].value !== null);
  if (!known.length) return { ...noScore(`no score for ${members.join(", ")}`), count: `0/${members.length}` };
  const whole = known.length === members.length && known.every((task) => cells[task].whole);
  const missing = members.filter((task) => cells[task].value === null);
  const star = isStarred(known.map((task) => cells[task]));
  return {
    value: mean(known.map((task) => cells[task].value)),
    isGap: cells[known[0]].isGap,
    se: combinedError(known.map((task) => [1 / known.length, errorOf(cells[task])])),
    ...(known.length === 1 ? { low: cells[known[0]].low, high: cells[known[0]].high } : {}),
    whole,
    star,
    count: whole || star ? "" : `${known.length}/${members.length}`,
    title: missing.length ? `no score for ${missing.join(", ")}` : whole ? "" : "over fewer languages than the tasks have",
  };
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
  return a.error !== null && b.error !== null && Math.abs(a.value - b.value) > Z * Math.sqrt(a.error * a.error + b.error * b.error);
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

/** @returns {string} "2", or "1–3" where scores cannot be separated; empty for systems without a rank */
export function rankText(row) {
  if (!row.range) return row.rank;
  const [low, high] = row.range.split("–");
  return low === high ? low : row.range;
}

function lowest(task, metrics, agg) {
  return agg !== "gap" && metrics.length === 1 && metrics[0] === task.headline[0] ? task.chance ?? 0 : 0;
}

export function keepsSystem(board, index, state) {
  const [from, to] = (state.size || "").split("-");
  const size = board.content.systems[index].parameters;
  return (
    (!state.size || (size !== undefined && size >= Number(from) * 1e6 && (!to || size < Number(to) * 1e6))) &&
    (!state.q || board.words[index].includes(state.q.toLowerCase().trim()))
  );
}

/** @returns {Task[]} tasks with only the languages that all of some systems have, where those have the task */
function sharedTasks(board, tasks, kept, languages, state) {
  const found = [];
  for (const task of tasks) {
    const having = kept.filter((index) => board.scores[index].has(task.task));
    const codes = task.languages.filter((code) => (!languages || languages.has(code)) && having.every((index) => languageCell(board, index, task, code, state).value !== null));
    if (codes.length && having.length) found.push({ ...task, languages: codes, forced: true });
  }
  return found;
}

/**
 * What systems are ranked by: all tasks where a system has them whole, else those that all shown systems have whole.
 * Systems with the fewest tasks are left out until the others have a task in common.
 * @param {Set<string>[]} having the tasks that each system has whole @returns {{kind: string, tasks: string[]}}
 */
export function basis(having, used) {
  if (having.some((own) => used.every((task) => own.has(task)))) return { kind: "all", tasks: used };
  let left = having.filter((own) => own.size);
  while (left.length) {
    const common = used.filter((task) => left.every((own) => own.has(task)));
    if (common.length) return { kind: "common", tasks: common };
    const fewest = Math.min(...left.map((own) => own.size));
    left = left.filter((own) => own.size > fewest);
  }
  return { kind: "none", tasks: [] };
}

function taskColumns(board, tasks, state, byLanguage) {
  const agg = state.agg || "";
  const marks = (task) => task.marks?.[pageLanguage(state)] ?? "";
  const way = agg === "worst" ? "lowest language" : agg === "gap" ? "gap to the source language" : "mean over its languages";
  return tasks.map((task) => {
    const metrics = shownMetrics(task, state, byLanguage);
    return { id: `t:${task.task}`, head: `${task.task}${marks(task)}`, title: `${metricNames(board, metrics)}: ${pageLanguage(state) ? "in this language" : way}`, low: lowest(task, metrics, agg), of: (_, cells) => cells[task.task] };
  });
}

function languageColumns(board, task, state, languages) {
  const codes = shownLanguages(task).filter((code) => !languages || languages.has(code));
  const metrics = shownMetrics(task, state, true);
  return codes.map((code) => ({ id: `l:${code}`, head: `${code}${task.marks?.[code] ?? ""}`, code, isHeat: true, title: `${board.languages.get(code)?.name ?? code}: ${metricNames(board, metrics)}`, low: lowest(task, metrics, ""), of: (index) => languageCell(board, index, task, code, state) }));
}

/** Categories, each followed by its tasks where it is unfolded; tasks where there are no categories. */
function overallColumns(board, state, tasks, languages) {
  const byLanguage = !!languages || !!state.agg;
  const entries = Object.entries(board.content.categories).map(([name, members]) => [name, tasks.filter((task) => members.includes(task.task))]).filter(([, members]) => members.length);
  if (pageLanguage(state) || !entries.length) return taskColumns(board, tasks, state, byLanguage);
  const open = new Set((state.open || "").split(","));
  const loose = tasks.filter((task) => !entries.some(([, members]) => members.includes(task)));
  return [
    ...entries.flatMap(([name, members]) => {
      const names = members.map((task) => task.task);
      const column = { id: `c:${name}`, head: inWords(name), unfolds: name, isOpen: open.has(name), title: `mean of ${names.join(", ")}`, low: 0, of: (_, cells) => partialMean(cells, names) };
      return [column, ...(column.isOpen ? taskColumns(board, members, state, byLanguage).map((one) => ({ ...one, isPart: true })) : [])];
    }),
    ...taskColumns(board, loose, state, byLanguage),
  ];
}

/** @returns {string} "Question answering" for question_answering */
export function inWords(name) {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A column for each family: the mean over the tasks that all ranked systems have by language, in its languages. */
function familyColumns(board, state, tasks, indexes) {
  const has = (index, task) => tally(series(board, index, task, shownMetrics(task, state, true)).values, scopeOf(task, null, false).places).count === task.languages.length;
  const kept = tasks.filter((task) => indexes.length && indexes.every((index) => has(index, task)));
  const families = new Map();
  for (const task of kept) for (const code of task.languages) {
    const family = board.languages.get(code)?.family ?? "unknown";
    if (!families.has(family)) families.set(family, new Set());
    families.get(family).add(code);
  }
  const columns = [...families].map(([family, codes]) => {
    const own = kept.map((task) => [task, scope(task, task.languages.filter((code) => codes.has(code)))]).filter(([, part]) => part.codes.length);
    const names = own.map(([task]) => task.task);
    const of = (index) => partialMean(Object.fromEntries(own.map(([task, part]) => [task.task, overLanguages(board, index, task, part, state, "")])), names);
    return { id: `f:${family}`, head: family, isHeat: true, title: `${[...codes].join(", ")}: mean of ${names.join(", ")}`, low: 0, of };
  });
  return { columns, tasks: kept.map((task) => task.task) };
}

/**
 * What the table shows: columns, ranked rows and those below the line, and what the ranks are by. Where no system has
 * every task whole, and more tasks count on the languages that all systems with a task have, these languages are shown.
 */
export function view(board, state) {
  const plain = viewOf(board, state);
  if (state.shared !== undefined || pageLanguage(state) || plain.basis.kind === "all") return plain;
  const shared = viewOf(board, { ...state, shared: "1" });
  return shared.basis.tasks.length > plain.basis.tasks.length && shared.ranked.length >= plain.ranked.length ? { ...shared, isShared: true } : plain;
}

function viewOf(board, state) {
  const languages = chosenLanguages(board, state);
  const kept = board.content.systems.map((_, index) => index).filter((index) => keepsSystem(board, index, state));
  let tasks = chosenTasks(board, state, languages);
  if (state.shared === "1") tasks = sharedTasks(board, tasks, kept, languages, state);
  const counted = state.shared === "1" ? new Set(tasks.flatMap((task) => task.languages)) : languages;
  const { used, weights, groups } = averaged(board, tasks, state);
  const all = kept.map((index) => ({ index, system: board.content.systems[index], tasks: Object.fromEntries(tasks.map((task) => [task.task, taskCell(board, index, task, counted, state)])) }));
  const isPart = pageLanguage(state) || pageTask(state) || !!languages;
  const rows = all.filter((row) => !isPart || tasks.some((task) => row.tasks[task.task].value !== null));
  const by = basis(rows.map((row) => new Set(used.filter((task) => row.tasks[task].value !== null && row.tasks[task].whole))), used);
  const weighted = by.kind === "common" ? new Map(by.tasks.map((task) => [task, 1 / by.tasks.length])) : weights;
  for (const row of rows) row.total = total(row.tasks, weighted);
  const smaller = state.agg === "gap";
  const ranks = rank(rows.map((row) => (by.kind === "none" ? null : row.total)), smaller);
  rows.forEach((row, place) => Object.assign(row, ranks[place]));
  const ranked = rows.filter((row) => row.rank);
  const family = state.tab === "family" ? familyColumns(board, state, tasks, ranked.map((row) => row.index)) : null;
  const columns = family ? family.columns : pageTask(state) && tasks.length === 1 ? languageColumns(board, tasks[0], state, counted) : overallColumns(board, state, tasks, counted);
  for (const row of rows) {
    row.cells = columns.map((column) => column.of(row.index, row.tasks));
    row.known = tasks.map((task) => (row.tasks[task.task].value === null ? 0 : row.tasks[task.task].whole ? 2 : 1));
    row.have = pageTask(state) ? row.cells.filter((cell) => cell.value !== null).length : row.known.filter(Boolean).length;
  }
  const partial = rows.filter((row) => !row.rank);
  sortRows(ranked, columns, state, smaller);
  partial.sort((a, b) => b.have - a.have || a.index - b.index);
  if (state.sort && state.sort !== "total") sortRows(partial, columns, state, smaller);
  return { columns, tasks, of: pageTask(state) ? columns.length : tasks.length, ranked, partial, used, groups, smaller, basis: by, familyTasks: family?.tasks ?? [], hidden: board.content.systems.length - rows.length, hasErrors: ranked.some((row) => row.range), withoutError: by.tasks.filter((task) => ranked.some((row) => errorOf(row.tasks[task]) === null)) };
}

/** Sort rows in place by a column; those without a value last, equal ones in the board's order. */
export function sortRows(rows, columns, state, smaller) {
  const key = state.sort || "total";
  const place = columns.findIndex((column) => column.id === key);
  const unit = key === "data" ? commonUnit(rows) : null;
  const ofRow = (row) => {
    if (place >= 0) return row.cells[place].value;
    if (key === "label") return row.system.label.toLowerCase();
    if (key === "known") return row.have;
    if (key === "parameters" || key === "year") return row.system[key] ?? null;
    if (key === "data") return dataOf(row.system, unit);
    return row.total.value;
  };
  const falling = (state.dir || defaultDirection(key, smaller)) === "d";
  const order = rows.map((row) => [row, ofRow(row)]);
  order.sort(([a, x], [b, y]) => {
    if (x === null || y === null) return (x === null) - (y === null) || a.index - b.index;
    return (x < y ? -1 : x > y ? 1 : 0) * (falling ? -1 : 1) || a.index - b.index;
  });
  order.forEach(([row], at) => (rows[at] = row));
}

/** @returns {string|undefined} the unit in which most systems state their pre-training data: amounts of others are not compared */
function commonUnit(rows) {
  const counts = new Map();
  for (const { system } of rows) if (system.monolingual) counts.set(system.monolingual.unit, (counts.get(system.monolingual.unit) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

function dataOf(system, unit) {
  return system.monolingual?.unit === unit ? system.monolingual?.value ?? null : null;
}

/** @returns {string} "a" for names and where smaller is better, else "d" */
export function defaultDirection(key, smaller) {
  return key === "label" || (smaller && !["known", "parameters", "data", "year"].includes(key)) ? "a" : "d";
}

/** @returns {string} how the average is made, in one sentence */
export function formula(shown, state) {
  if (shown.isShared) return `${formula({ ...shown, isShared: false }, state)} Every task over the languages that all systems shown with a score in it have.`;
  const { kind, tasks } = shown.basis;
  if (kind === "none") return "No task has a whole score of the systems shown, so no system is ranked.";
  if (kind === "common") {
    const few = shown.ranked.length === 1 ? "the one ranked system has" : `all ${shown.ranked.length} ranked systems have`;
    return `No system has every task. Ranked by the mean of the ${tasks.length === 1 ? "one task" : `${tasks.length} tasks`} that ${few}: ${tasks.join(", ")}.`;
  }
  if (state.agg) return `${state.agg === "gap" ? "Transfer gap" : "Worst language"}: ${LABELS[state.agg]}.`;
  if (pageLanguage(state)) return `Average: mean of ${Object.keys(shown.groups).length ? "the category means of " : ""}the ${shown.used.length} tasks in this language.`;
  if (pageTask(state)) return `Average: ${LABELS.task}.`;
  return `Average: ${Object.keys(shown.groups).length ? LABELS.categories : LABELS.tasks}.`;
}
