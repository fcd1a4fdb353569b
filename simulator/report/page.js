
"use strict";

// Sorting: a click on a column's name orders the rows by it, numbers by size with "1.2 s" after "900 ms".
const UNITS = { s: 1000 };

function worth(text) {
  const found = text.trim().match(/^[$+]?(-?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*(ms|s|x)?(?![\w.])/i);
  return found ? Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] ?? 1) : null;
}

function compare(one, other) {
  const [a, b] = [worth(one), worth(other)];
  if (a !== null && b !== null) return a - b;
  if (a !== null || b !== null) return a !== null ? -1 : 1;
  return one.localeCompare(other, "en");
}

function sort(table, heading, column) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((a, b) => compare(a.cells[column].textContent, b.cells[column].textContent));
  body.append(...(down ? rows.reverse() : rows));
}

for (const table of document.querySelectorAll("table")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (heading.tagName !== "TH") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(table, heading, column));
  });
}

// Size: on a phone a drawing is as wide as the page, and becomes legible, and scrolls, when asked.
const LARGER = "Enlarge the figure", FITTED = "Fit the figure to the page";

for (const drawing of document.querySelectorAll(".drawing")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = LARGER;
  button.addEventListener("click", () => {
    button.textContent = drawing.classList.toggle("large") ? FITTED : LARGER;
  });
  drawing.after(button);
}

// Values: the words of the nearest mark of a curve, beside the pointer. Without this script a viewer shows the same
// words where the pointer rests on the mark itself.
const NEAR = 28;
const box = document.createElement("div");
box.id = "value";
box.hidden = true;
box.setAttribute("role", "status");
document.body.append(box);

function nearest(drawing, x, y) {
  let best = null, least = NEAR * NEAR;
  for (const mark of drawing.querySelectorAll(".mark")) {
    const place = mark.getBoundingClientRect();
    const away = (place.x + place.width / 2 - x) ** 2 + (place.y + place.height / 2 - y) ** 2;
    if (away < least) [best, least] = [mark, away];
  }
  return best;
}

function show(event) {
  const mark = nearest(event.currentTarget, event.clientX, event.clientY);
  box.hidden = mark === null;
  if (mark === null) return;
  box.textContent = mark.querySelector("title").textContent;
  const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - box.offsetWidth - 4);
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${event.clientY > 60 ? event.clientY - box.offsetHeight - 10 : event.clientY + 18}px`;
}

for (const drawing of document.querySelectorAll(".drawing svg")) {
  drawing.addEventListener("pointermove", show);
  drawing.addEventListener("pointerdown", show);
  drawing.addEventListener("pointerleave", () => { box.hidden = true; });
}
