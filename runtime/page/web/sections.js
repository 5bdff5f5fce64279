// Tables: every event, lags, counters, hosts, what is known of the run; and what is not on the page.
import { el, section } from "./dom.js";
import { Table } from "./table.js";
import { moment, span } from "./format.js";
import { eventMoment } from "./model.js";

export function simpleColumns({ head, rows }) {
  return head.map((title, at) => ({
    title,
    get: (row) => row[at],
    number: rows.some((row) => typeof row[at] === "number") || /, s$/.test(title),
    show: (row) => (typeof row[at] === "number" ? row[at].toLocaleString("en-US") : row[at]),
  }));
}

export function mountEvents(root, model, view) {
  const table = new Table("events", [
    { title: "planned", get: (event) => event.planned_ns, show: (event) => moment(event.planned_ns), number: true },
    { title: "applied", get: (event) => event.at_ns, show: (event) => moment(event.at_ns), number: true },
    { title: "late by", get: (event) => event.lag_ns, show: (event) => (event.lag_ns === null ? "" : span(event.lag_ns)), number: true },
    { title: "event", get: (event) => event.kind },
    { title: "target", get: (event) => event.target },
    { title: "details", get: (event) => event.text },
    { title: "line", get: (event) => event.line || null, number: true },
  ], { pick: (event) => view.move(eventMoment(event), true) });
  const part = section("events", "Events", el("span", { class: "quiet" }, "a row moves the cursor there"));
  part.append(table.node);
  root.append(part);
  model.on(["events"], () => table.set(model.events));
}

// The experiment's own.
export function mountFigures(root, model) {
  const part = section("figures", "Figures");
  root.append(part);
  model.on(["figures"], () => {
    part.hidden = !model.figures?.rows.length;
    if (part.hidden) return;
    const table = new Table("figures", simpleColumns(model.figures));
    table.set(model.figures.rows);
    part.replaceChildren(part.firstChild, table.node);
  });
}

export function mountTables(root, model) {
  const place = el("div");
  root.append(place);
  model.on(["tables"], () => {
    place.replaceChildren(...model.tables.map((one) => {
      const part = section(one.name, one.title);
      if (one.name === "facts") part.append(facts(one));
      else {
        const table = new Table(one.name, simpleColumns(one));
        table.set(one.rows);
        part.append(table.node);
      }
      if (one.left_out) part.append(el("p", { class: "quiet" }, `… and ${one.left_out} more rows in the files of the run`));
      return part;
    }));
  });
}

function facts({ rows }) {
  return el("dl", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]));
}

export function mountNotes(root, model) {
  const part = section("notes", "What is not on this page");
  const list = el("ul");
  part.append(list);
  root.append(part);
  model.on(["notes"], () => {
    part.hidden = model.notes.length === 0;
    list.replaceChildren(...model.notes.map((text) => el("li", {}, text)));
  });
}
