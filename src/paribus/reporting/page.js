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
