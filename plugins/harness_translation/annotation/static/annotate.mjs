// One row at a time; labels stay in this browser until they are saved as a file.
const job = JSON.parse(document.getElementById("job").textContent);
const store = `harness-annotate:${job.key}`;
const at = (id) => document.getElementById(id);
const radios = [...document.querySelectorAll('#labels input[type="radio"]')];
const given = new Map(job.rows.map(({ row }) => [row, { label: "", comment: "" }]));
let current = 0;

const notice = (text) => { at("notice").textContent = text; };
const done = () => [...given.values()].filter(({ label }) => label !== "").length;

function take(rows) {
  let strange = 0;
  for (const entry of Array.isArray(rows) ? rows : []) {
    const own = entry && given.get(entry.row);
    const label = entry && entry.label;
    if (!own || (label !== "" && !job.labels.includes(label))) { strange += 1; continue; }
    own.label = label;
    own.comment = typeof entry.comment === "string" ? entry.comment : "";
  }
  return strange;
}

function saved() {
  const rows = job.rows.map(({ row }) => ({ row, ...given.get(row) }));
  return { schema: 1, sheet: job.sheet, annotator: job.annotator, rows };
}

function keep() {
  try {
    localStorage.setItem(store, JSON.stringify({ ...saved(), current }));
  } catch {
    notice("This browser stores nothing: save a file before you close the page.");
  }
}

function restore() {
  try {
    const kept = JSON.parse(localStorage.getItem(store) ?? "null");
    if (kept === null) return;
    take(kept.rows);
    if (Number.isInteger(kept.current) && kept.current >= 0 && kept.current < job.rows.length) current = kept.current;
  } catch {
    notice("The labels stored in this browser cannot be read.");
  }
}

function field(name, text) {
  const box = document.createElement("div");
  const caption = document.createElement("div");
  const content = document.createElement("div");
  box.className = "field";
  caption.className = "caption";
  caption.textContent = name;
  content.className = "text";
  content.dir = "auto";
  content.lang = job.language;
  content.textContent = text;
  box.append(caption, content);
  return box;
}

function count() {
  at("progress").textContent = `${done()} of ${job.rows.length} rows have a label.`;
  at("bar").max = job.rows.length;
  at("bar").value = done();
  const marks = at("rows").querySelectorAll("button");
  job.rows.forEach(({ row }, number) => {
    const { label } = given.get(row);
    const mark = marks[number];
    mark.classList.toggle("done", label !== "");
    mark.setAttribute("aria-current", String(number === current));
    mark.setAttribute("aria-label", `Row ${number + 1}, ${label || "no label"}`);
  });
}

function show(number, focus = true) {
  current = Math.min(Math.max(number, 0), job.rows.length - 1);
  const { row, fields, choices } = job.rows[current];
  at("place").textContent = `Row ${current + 1} of ${job.rows.length}`;
  at("texts").replaceChildren(...fields.map(([name, text]) => field(name, text)));
  for (const box of document.querySelectorAll("#labels .choice")) {
    box.textContent = choices[box.dataset.label] ?? "";
    box.lang = job.language;
  }
  for (const radio of radios) radio.checked = radio.value === given.get(row).label;
  at("comment").value = given.get(row).comment;
  count();
  keep();
  if (focus) at("place").focus({ preventScroll: true });
}

function label(value) {
  given.get(job.rows[current].row).label = value;
  for (const radio of radios) radio.checked = radio.value === value;
  count();
  keep();
}

function nextOpen() {
  const order = job.rows.map((_, step) => (current + 1 + step) % job.rows.length);
  const found = order.find((number) => given.get(job.rows[number].row).label === "");
  if (found === undefined) notice("All rows have a label. Save the file and send it back.");
  else show(found);
}

const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

function csv() {
  const lines = saved().rows.map((one) => [one.row, job.annotator, one.label, one.comment].map(quoted).join(","));
  return `\ufeff${["row,annotator,label,comment", ...lines].join("\n")}\n`;
}

// One row per line, so that a fault can be reported by its line.
function json() {
  const { rows, ...head } = saved();
  const lines = rows.map((one) => `  ${JSON.stringify(one)}`).join(",\n");
  return `${JSON.stringify(head).slice(0, -1)},"rows":[\n${lines}\n]}\n`;
}

function download(text, type, suffix) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = `${job.sheet}.annotator-${job.annotator}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  const left = job.rows.length - done();
  notice(left ? `Saved; ${left} rows still have no label.` : "Saved: all rows have a label.");
}

async function load(file) {
  try {
    const content = JSON.parse(await file.text());
    if (content.sheet !== job.sheet) throw new Error(`it is of the sheet ${content.sheet}`);
    const strange = take(content.rows);
    show(current);
    notice(strange ? `Loaded, but ${strange} rows are not in this sheet or have unknown labels.` : "Loaded.");
  } catch (error) {
    notice(`The file cannot be used: ${error.message}.`);
  }
}

job.rows.forEach((_, number) => {
  const entry = document.createElement("li");
  const mark = document.createElement("button");
  mark.type = "button";
  mark.textContent = String(number + 1);
  mark.addEventListener("click", () => show(number));
  entry.append(mark);
  at("rows").append(entry);
});
for (const radio of radios) radio.addEventListener("change", () => label(radio.value));
at("comment").addEventListener("input", (event) => {
  given.get(job.rows[current].row).comment = event.target.value;
  keep();
});
at("previous").addEventListener("click", () => show(current - 1));
at("next").addEventListener("click", () => show(current + 1));
at("open").addEventListener("click", nextOpen);
at("save-csv").addEventListener("click", () => download(csv(), "text/csv", "csv"));
at("save-json").addEventListener("click", () => download(json(), "application/json", "json"));
at("load").addEventListener("change", (event) => { if (event.target.files[0]) load(event.target.files[0]); });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === at("comment")) {
    if (event.key === "Escape") at("place").focus({ preventScroll: true });
    return;
  }
  const arrows = event.target.type === "radio"; // arrows choose among radio buttons
  const chosen = /^[1-9]$/.test(event.key) ? job.labels[Number(event.key) - 1] : undefined;
  if (chosen !== undefined) { label(chosen); if (current < job.rows.length - 1) show(current + 1); }
  else if (event.key === "ArrowRight" && !arrows) show(current + 1);
  else if (event.key === "ArrowLeft" && !arrows) show(current - 1);
  else if (event.key === "u") nextOpen();
  else if (event.key === "c") at("comment").focus();
  else return;
  event.preventDefault();
});
restore();
document.querySelector(".instructions").open = done() === 0;
show(current, false);
globalThis.harnessAnnotate = { saved, csv, json };
