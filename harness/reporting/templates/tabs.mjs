// Turns the contents of a page into tabs. Without this script, and on paper, all parts follow each other.
const list = document.querySelector("nav.contents .tabs");
const tabs = [...list.querySelectorAll("a")];
const panels = tabs.map((tab) => document.getElementById(tab.hash.slice(1)));

// On a narrow screen the tabs are a menu, which a button with the name of the open one unfolds.
const menu = document.createElement("button");
menu.type = "button";
menu.className = "menu";
menu.addEventListener("click", () => unfold(menu.getAttribute("aria-expanded") !== "true"));
list.before(menu);

function unfold(isOpen) {
  menu.setAttribute("aria-expanded", String(isOpen));
  list.parentElement.classList.toggle("open", isOpen);
}

function select(chosen) {
  menu.textContent = `☰ ${tabs[chosen].textContent}`;
  unfold(false);
  tabs.forEach((tab, place) => {
    tab.setAttribute("aria-selected", String(place === chosen));
    tab.tabIndex = place === chosen ? 0 : -1;
    panels[place].hidden = place !== chosen;
  });
}

function show() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const place = panels.indexOf(target && target.closest(".panel"));
  if (place < 0) {
    if (!location.hash) select(0);
    return;
  }
  select(place);
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (target === panels[place]) scrollTo(0, 0);
  else target.scrollIntoView();
}

// A plain step to the address would take the focus from the tab.
function open(place) {
  history.pushState(null, "", tabs[place].hash);
  select(place);
  tabs[place].focus({ preventScroll: true });
}

list.setAttribute("role", "tablist");
tabs.forEach((tab, place) => {
  tab.id = `${panels[place].id}-label`;
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", panels[place].id);
  panels[place].setAttribute("role", "tabpanel");
  panels[place].setAttribute("aria-labelledby", tab.id);
});
list.addEventListener("keydown", (event) => {
  const place = tabs.indexOf(document.activeElement);
  const last = tabs.length - 1;
  const next = { ArrowRight: place === last ? 0 : place + 1, ArrowLeft: place === 0 ? last : place - 1, Home: 0, End: last }[event.key];
  if (place < 0 || next === undefined) return;
  event.preventDefault();
  open(next);
});
list.addEventListener("click", (event) => {
  const place = tabs.indexOf(event.target);
  if (place < 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open(place);
});
addEventListener("hashchange", show);
// A second click on the same link changes no hash.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.hash === location.hash) show();
});
select(0);
show();
document.documentElement.classList.add("tabbed");
for (const button of document.querySelectorAll("button.print")) {
  button.hidden = false;
  button.addEventListener("click", () => print());
}
