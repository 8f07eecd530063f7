"use strict";
// A click on a heading sorts by its column: best first, then the other way, then as written.
for (const table of document.querySelectorAll("table.sortable")) {
  const bodies = [...table.tBodies].filter((body) => !body.classList.contains("fixed"));
  const written = bodies.map((body) => [...body.rows]);
  const headings = [...table.querySelectorAll("th[data-column]")];
  const value = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.value;
    return number === undefined ? cell.textContent.trim() : number === "" ? null : Number(number);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const sort = (heading) => {
    const first = heading.dataset.better === "higher" ? "descending" : "ascending";
    const second = first === "ascending" ? "descending" : "ascending";
    const next = { none: first, [first]: second, [second]: "none" }[heading.getAttribute("aria-sort") || "none"];
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    if (next === "none") {
      bodies.forEach((body, place) => body.append(...written[place]));
      return;
    }
    heading.setAttribute("aria-sort", next);
    const column = Number(heading.dataset.column);
    const known = written.flat().map((row) => [value(row, column), row]);
    const present = known.filter(([key]) => key !== null);
    present.sort(([a], [b]) => (next === "ascending" ? compare(a, b) : compare(b, a)));
    bodies[0].append(...present.map(([, row]) => row), ...known.filter(([key]) => key === null).map(([, row]) => row));
  };
  headings.forEach((heading) => heading.querySelector("button").addEventListener("click", () => sort(heading)));
}
// A click on a row, or on its line in a picture, marks it wherever it stands on the page; on what is marked, no more.
const marked = [...document.querySelectorAll("[data-row]")];
document.addEventListener("click", ({ target }) => {
  const row = target.closest("tr[data-row], .mark[data-row]");
  if (!row || target.closest("a")) return;
  const now = !row.classList.contains("chosen");
  marked.forEach((other) => { if (other.dataset.row === row.dataset.row) other.classList.toggle("chosen", now); });
});
// Under each number stands its difference from the row that is chosen, as the page has it; a link may name the row.
const choice = document.querySelector(".choice");
if (choice) {
  const known = JSON.parse(document.querySelector("#differences").textContent);
  const select = choice.querySelector("select");
  const told = choice.querySelector(".told");
  const table = document.querySelector("table.marked");
  const lines = [...table.querySelectorAll("tr[data-row]")];
  const beside = (difference) => {
    const place = document.createElement("span");
    place.className = "against";
    place.textContent = difference ? difference[0] : "—";
    if (difference && difference[1]) {
      place.append(" ", Object.assign(document.createElement("span"), { textContent: `(${difference[1]})` }));
    }
    return place;
  };
  const show = (chosen) => {
    const other = chosen !== "" && chosen !== known.declared;
    const own = chosen === "declared";
    const bases = new Set(own ? Object.values(known.compared) : [chosen]);
    table.querySelectorAll(".against").forEach((place) => place.remove());
    table.classList.toggle("other", other);
    for (const line of lines) {
      const row = line.dataset.row;
      const base = own ? known.compared[row] : chosen;
      line.classList.toggle("base", bases.has(row));
      const found = (known.differences[base] || {})[row] || [];
      found.forEach((difference, place) => line.querySelectorAll("td")[place].append(beside(difference)));
    }
    told.replaceChildren();
    if (chosen !== "") {
      told.append(choice.querySelector("template").content.cloneNode(true));
      told.querySelector("b").textContent = select.selectedOptions[0].text;
      if (!other) told.querySelector(".undeclared").remove();
    }
  };
  const follow = () => {
    const [, wanted] = location.hash.match(/^#baseline=(\w*)$/) || [];
    if (![...select.options].some((option) => option.value === wanted)) return;
    select.value = wanted;
    show(wanted);
  };
  choice.hidden = false;
  select.addEventListener("change", () => { show(select.value); location.hash = `baseline=${select.value}`; });
  window.addEventListener("hashchange", follow);
  follow();
}
// The theme is the reader's until another is chosen; the choice is forgotten with the page.
const theme = document.querySelector(".theme");
theme.hidden = false;
theme.addEventListener("change", ({ target }) => { document.documentElement.dataset.theme = target.value; });
// Beside the pointer stands what a line or an area of a picture is, and the number at the place of a line.
const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
document.body.append(tip);
for (const line of document.querySelectorAll("figure .mark > path")) {
  // An area is wide enough: reaching beyond its edge it would be found where its neighbour is.
  if (line.style.fill !== "none") continue;
  const reach = line.cloneNode();
  reach.removeAttribute("style");
  reach.setAttribute("class", "reach");
  line.parentNode.append(reach);
}
const within = (share, [low, high], logarithmic) =>
  logarithmic ? Math.exp(Math.log(low) + share * Math.log(high / low)) : low + share * (high - low);
const written = (number) => number.toLocaleString("en", { maximumSignificantDigits: 4 });
const points = (line) => (line.getAttribute("d").match(/-?[\d.]+ -?[\d.]+/g) || []).map((point) => point.split(" ").map(Number));
const upright = (ends) => ends.length > 1 && ends.every(([x]) => x === ends[0][0]);
const measured = (mark, event) => {
  const panel = mark.closest("[data-axes]");
  if (!panel) return "";
  // The ends of an upright bar are no values: at one, that of the line it belongs to, of which the same is said.
  const own = [mark, ...panel.querySelectorAll(".mark")].filter((other) => other.dataset.told === mark.dataset.told);
  const lines = own.flatMap((part) => [...part.querySelectorAll("path.reach")]);
  const line = lines.find((path) => points(path).length && !upright(points(path)));
  if (!line) return "";
  const axes = JSON.parse(panel.dataset.axes);
  const { x } = new DOMPoint(event.clientX, event.clientY).matrixTransform(line.getScreenCTM().inverse());
  const ends = points(line);
  const nearest = ends.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best));
  const [across, up] = nearest.map((place, axis) => {
    const [first, last] = axes.ends[axis];
    return within((place - first) / (last - first), axes.limits[axis], axes.logarithmic[axis]);
  });
  const place = axes.ticks.length ? axes.ticks[Math.round(across)] : written(axes.scale * across);
  return `: ${axes.y} ${written(up)} at ${axes.x} ${place}`;
};
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest ? event.target.closest("figure .mark") : null;
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.told + measured(mark, event);
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4))}px`;
  tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
});
