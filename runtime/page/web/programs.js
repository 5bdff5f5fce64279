// Each instance through time: there, cut off, paused, gone; where its program ended by itself.
import { Canvas, colours, el, section } from "./dom.js";
import { follow } from "./clock.js";
import { NetworkAt } from "./model.js";
import { Table } from "./table.js";
import { csvButton } from "./csv.js";
import { simpleColumns } from "./sections.js";

const LANE = 18;
const MOST_SEEN = 16; // rows without scrolling
const WHO = 110;
const BECOMES = {
  join: "up", leave: "down", crash: "down", disconnect: "cut", reconnect: "up", pause: "paused", resume: "up",
};

// Of each instance: {name, stretches: [[from, to, state]], ends: [[ns, failed, words]]}.
function lives(model) {
  const found = new Map();
  const { network, time } = model;
  const begin = time.begin_ns;
  if (network) {
    const at = network.epochs.length ? new NetworkAt(network) : null;
    if (at && begin > 0) at.go(begin);
    network.nodes.forEach((name, node) => {
      if (network.services[node] < 0) return;
      const state = begin > 0 && at ? at.nodes[node] : "down";
      found.set(name, { name, changes: [[begin, state]], ends: [] });
    });
  }
  const of = (name) => {
    if (!found.has(name)) found.set(name, { name, changes: [[begin, "down"]], ends: [] });
    return found.get(name);
  };
  for (const event of model.events) {
    const at = event.at_ns ?? event.planned_ns;
    if (event.kind in BECOMES) of(event.target).changes.push([at, BECOMES[event.kind]]);
    if (event.kind === "killed") of(event.target).ends.push([at, true, "killed from outside"]);
    if (event.kind === "exit" && !event.asked)
      of(event.target).ends.push([at, event.text !== "status 0", event.text]);
  }
  for (const one of found.values()) {
    one.changes.sort((a, b) => a[0] - b[0]);
    one.stretches = one.changes.map(([from, state], at) => [from, one.changes[at + 1]?.[0] ?? time.end_ns, state]);
  }
  return [...found.values()];
}

export function mountPrograms(root, model, view, pick) {
  let rows = [];
  const left = () => (root.clientWidth < 600 ? 80 : WHO);
  const canvas = new Canvas("instances over time", (context, width, height) => {
    const first = Math.floor(scroller.scrollTop / LANE);
    drawLives(context, width, height, rows, first, scroller.scrollTop, view, left());
  });
  const long = el("div");
  const scroller = el("div", { class: "lanes", onscroll: () => canvas.ask() }, canvas.node, long);
  const box = el("div", { class: "lanes-box" }, scroller);
  const part = section("programs", "Programs", el("span", { class: "quiet legend" },
    el("i", { class: "key up" }), "up ", el("i", { class: "key cut" }), "cut off ", el("i", { class: "key paused" }),
    "paused ", el("span", { class: "sign failed" }, "✕"), " failed ", el("span", { class: "sign passed" }, "●"), " ended with 0"),
    csvButton("programs", () => [["instance", "from_ns", "to_ns", "state"],
      rows.flatMap((one) => one.stretches.map((stretch) => [one.name, ...stretch]))]));
  const tables = el("div");
  part.append(box, tables);
  root.append(part);
  const place = follow(box, view, () => [left(), scroller.clientWidth - left()]);
  scroller.addEventListener("click", (event) => {
    const box = scroller.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - box.top + scroller.scrollTop) / LANE)];
    if (row && event.clientX - box.left < left()) pick(row.name);
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

function drawLives(context, width, height, rows, first, scrolled, view, left) {
  const { text, up, cut, grid, bad, good, quiet } = colours();
  const x = (ns) => left + ((ns - view.from) / view.width) * (width - left);
  const bounded = (ns) => Math.min(Math.max(x(ns), left), width);
  context.textBaseline = "middle";
  for (let row = first; row < rows.length; row++) {
    const top = row * LANE - scrolled;
    if (top > height) break;
    const { name, stretches, ends } = rows[row];
    context.fillStyle = text;
    context.fillText(shortened(context, name, left - 8), 0, top + LANE / 2);
    context.fillStyle = grid;
    context.fillRect(left, top + LANE / 2, width - left, 1);
    for (const [from, to, state] of stretches) {
      if (state === "down" || to < view.from || from > view.to) continue;
      const [begin, end] = [bounded(from), bounded(to)];
      context.fillStyle = state === "cut" ? cut : state === "paused" ? quiet : up;
      const half = state === "up" ? 5 : 2.5;
      context.fillRect(begin, top + LANE / 2 - half, Math.max(end - begin, 1), 2 * half);
    }
    for (const [at, failed] of ends) {
      if (at < view.from || at > view.to) continue;
      context.fillStyle = failed ? bad : good;
      context.textAlign = "center";
      context.font = "bold 13px system-ui, sans-serif";
      context.fillText(failed ? "✕" : "●", x(at), top + LANE / 2);
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
