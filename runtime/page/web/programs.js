// Each instance through time: there, cut off, paused, ended, gone; where its program ended by itself.
import { Canvas, colours, el, section } from "./dom.js";
import { follow, timeAxis } from "./clock.js";
import { lives } from "./lives.js";
import { Table } from "./table.js";
import { csvButton } from "./csv.js";
import { simpleColumns } from "./sections.js";

const LANE = 18;
const MOST_SEEN = 16; // rows without scrolling

export function mountPrograms(root, model, view, pick) {
  let rows = [];
  const canvas = new Canvas("instances over time", (context, width, height) => {
    const first = Math.floor(scroller.scrollTop / LANE);
    drawLives(context, timeAxis(box.clientWidth), height, rows, first, scroller.scrollTop, view);
  });
  const long = el("div");
  const scroller = el("div", { class: "lanes", onscroll: () => canvas.ask() }, canvas.node, long);
  const box = el("div", { class: "lanes-box" }, scroller);
  const part = section("programs", "Programs", el("span", { class: "quiet legend" },
    el("i", { class: "key up" }), "up ", el("i", { class: "key cut" }), "cut off ", el("i", { class: "key paused" }),
    "paused ", el("i", { class: "key ended" }), "program ended ", el("span", { class: "sign failed" }, "✕"), " failed ", el("span", { class: "sign passed" }, "●"), " ended with 0 ", el("span", { class: "sign not_measured" }, "●"), " ended otherwise, no failure"),
    csvButton("programs", () => [["instance", "from_ns", "to_ns", "state"],
      rows.flatMap((one) => one.stretches.map((stretch) => [one.name, ...stretch]))]));
  const tables = el("div");
  part.append(box, tables);
  root.append(part);
  const place = follow(box, view);
  scroller.addEventListener("click", (event) => {
    const edge = scroller.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - edge.top + scroller.scrollTop) / LANE)];
    if (row && event.clientX - edge.left < timeAxis(box.clientWidth)[0]) pick(row.name);
  });
  view.on("range", () => canvas.ask());
  model.on(["events", "network", "time"], () => {
    rows = lives(model);
    const seen = Math.min(rows.length, MOST_SEEN) * LANE;
    scroller.style.height = `${seen}px`;
    canvas.node.style.height = `${seen}px`;
    long.style.height = `${(rows.length - Math.min(rows.length, MOST_SEEN)) * LANE}px`;
    canvas.ask();
    place();
  });
  model.on(["programs"], () => {
    tables.replaceChildren(...model.programs.filter((one) => one.rows.length).map((one) => {
      const table = new Table(one.name, simpleColumns(one));
      table.set(one.rows);
      return el("div", { class: "block" }, el("h3", {}, one.title), table.node);
    }));
  });
  return canvas;
}

function drawLives(context, [left, wide], height, rows, first, scrolled, view) {
  const { text, up, cut, grid, bad, good, quiet, down } = colours();
  const x = (ns) => left + ((ns - view.from) / view.width) * wide;
  const bounded = (ns) => Math.min(Math.max(x(ns), left), left + wide);
  const fill = { up, cut, paused: quiet, ended: down, failed: bad };
  const half = { up: 5, ended: 1, failed: 1 };
  context.textBaseline = "middle";
  for (let row = first; row < rows.length; row++) {
    const top = row * LANE - scrolled;
    if (top > height) break;
    const { name, stretches, ends } = rows[row];
    context.fillStyle = text;
    context.fillText(shortened(context, name, left - 8), 0, top + LANE / 2);
    context.fillStyle = grid;
    context.fillRect(left, top + LANE / 2, wide, 1);
    for (const [from, to, state] of stretches) {
      if (state === "down" || state === "killed" || to < view.from || from > view.to) continue;
      const [begin, end] = [bounded(from), bounded(to)];
      context.fillStyle = fill[state];
      const high = half[state] ?? 2.5;
      context.fillRect(begin, top + LANE / 2 - high, Math.max(end - begin, 1), 2 * high);
    }
    for (const [at, sign] of ends) {
      if (at < view.from || at > view.to) continue;
      context.fillStyle = { failed: bad, passed: good, other: quiet }[sign];
      context.textAlign = "center";
      context.font = "bold 13px system-ui, sans-serif";
      context.fillText(sign === "failed" ? "✕" : "●", x(at), top + LANE / 2);
      context.font = "12px system-ui, sans-serif";
      context.textAlign = "left";
    }
  }
}

function shortened(context, name, width) {
  let shown = name;
  while (shown.length > 1 && context.measureText(shown).width > width) shown = shown.slice(0, -1);
  return shown === name ? name : `${shown.slice(0, -1)}…`;
}
