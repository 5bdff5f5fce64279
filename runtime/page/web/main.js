// Puts the page together, and gives it what it has to show. `thunderstorm.apply(update)` is how all
// of it comes in, now or later.
import { button, colours, el, forgetColours, listenToPrinter } from "./dom.js";
import { Model, eventMoment } from "./model.js";
import { View } from "./clock.js";
import { mountTimeline } from "./timeline.js";
import { mountDecision } from "./decision.js";
import { mountHistories } from "./history.js";
import { firstFailure, mountVerdict, verdictChip } from "./verdict.js";
import { mountNetwork } from "./network.js";
import { mountLinks, mountPairs } from "./series.js";
import { mountPackets } from "./spacetime.js";
import { mountPrograms } from "./programs.js";
import { mountLogs } from "./logs.js";
import { mountSpread } from "./spread.js";
import { mountEvents, mountFigures, mountNotes, mountTables } from "./sections.js";
import { moment } from "./format.js";
import { goLive, mountSteering } from "./live.js";

const KEYS = [
  ["← →", "move the cursor by a point; with Shift by ten"],
  ["n p", "to the next or previous event"],
  ["+ −", "zoom in or out around the cursor"],
  ["0", "show the whole run"],
  ["Space", "pin the cursor, or let it follow the pointer"],
  ["/", "filter events"],
  ["d", "light or dark"],
  ["?", "this help"],
];

function help() {
  const rows = KEYS.map(([keys, words]) => [el("dt", {}, keys.split(" ").map((key) => el("kbd", {}, key))), el("dd", {}, words)]);
  const close = button("close", "close", () => dialog.close());
  const pointer = "Over any chart: the pointer moves the cursor, a click pins it, to drag zooms, a double click shows the whole run.";
  const dialog = el("dialog", {}, el("h2", {}, "Keys"), el("dl", {}, rows), el("p", {}, pointer), close);
  document.body.append(dialog);
  return () => (dialog.open ? dialog.close() : dialog.showModal());
}

function steps(model, view, by) {
  const moments = [...new Set(model.events.filter((one) => one.kind !== "cut").map(eventMoment))].sort((a, b) => a - b);
  const least = view.width / 1e6;
  const next = by > 0 ? moments.find((at) => at > view.cursor + least) : moments.findLast((at) => at < view.cursor - least);
  if (next !== undefined) view.move(next, true);
}

function listen(model, view, actions) {
  document.addEventListener("keydown", (event) => {
    if (event.target.closest?.("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape") event.target.blur?.();
      return;
    }
    const bucket = Math.max(model.time.grid.step_ns, view.width / 1000) * (event.shiftKey ? 10 : 1);
    const known = {
      ArrowLeft: () => view.move(view.cursor - bucket, true),
      ArrowRight: () => view.move(view.cursor + bucket, true),
      n: () => steps(model, view, 1),
      p: () => steps(model, view, -1),
      "+": () => view.zoom(0.5), "=": () => view.zoom(0.5),
      "-": () => view.zoom(2), 0: () => view.reset(),
      "/": () => document.querySelector("#events input").focus(),
      d: actions.theme, "?": actions.help,
    };
    if (event.key === " " && event.target === document.body) known[" "] = () => view.move(view.cursor, !view.pinned);
    if (!(event.key in known)) return;
    event.preventDefault();
    known[event.key]();
  });
}

function header(model, view, actions) {
  const name = el("h1");
  const chip = el("a", { href: "#verdict", class: "plain" });
  const at = el("button", { type: "button", class: "now", title: "the moment under the cursor; pins it (Space)",
    onclick: () => view.move(view.cursor, !view.pinned) });
  const tools = el("div", { class: "tools" },
    button("−", "zoom out (−)", () => view.zoom(2)), button("+", "zoom in (+)", () => view.zoom(0.5)),
    button("all", "the whole run (0)", () => view.reset()), button("◐", "light or dark (d)", actions.theme),
    button("?", "keys (?)", actions.help));
  const timeline = el("div", { class: "timeline" });
  model.on(["run", "result"], () => {
    name.textContent = model.run.experiment || model.run.id;
    name.title = model.run.id;
    chip.replaceChildren(verdictChip(model.result.state));
    node.className = model.result.state;
    document.title = `${model.run.id}: ${model.result.state.toUpperCase()}`;
  });
  view.on("cursor", () => {
    at.textContent = `${view.pinned ? "⚲ " : ""}${moment(view.cursor, view.width)}`;
    at.classList.toggle("pinned", view.pinned);
  });
  const node = el("header", {}, el("div", { class: "top" }, name, chip, el("span", { class: "space" }), at, tools), timeline);
  return { node, timeline };
}

function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
}

function start() {
  const model = new Model();
  const view = new View();
  const redraws = [];
  const repaint = () => {
    forgetColours();
    colours();
    redraws.forEach((redraw) => redraw());
  };
  listenToPrinter(repaint);
  const actions = { help: help(), theme: () => { switchTheme(); repaint(); } };
  const head = header(model, view, actions);
  const main = el("main");
  const verdict = el("section", { id: "verdict" });
  const side = el("div", { class: "beside" });
  document.body.append(head.node, main);
  const steering = mountSteering(main, model);
  main.append(verdict);
  mountFigures(main, model);
  const histories = mountHistories(main, model, view);
  main.append(side);
  model.on(["time"], () => view.bound(model.time.begin_ns, model.time.end_ns));
  mountVerdict(verdict, model, view);
  const timeline = mountTimeline(head.timeline, model, view);
  const decision = mountDecision(head.timeline, model, view);
  let chosen = null;
  const drawing = mountNetwork(side, model, view, (found) => chosen(found));
  const showLog = mountLogs(side, model, view);
  const pairs = mountPairs(main, model, view);
  const links = mountLinks(main, model, view);
  const packets = mountPackets(main, model, view);
  const lanes = mountPrograms(main, model, view, showLog);
  const spread = mountSpread(main, model, pairs.choice, view);
  const changed = pairs.choice.changed;
  pairs.choice.changed = () => { changed(); spread(); };
  chosen = ({ node, link }) => {
    steering.about(model.network, { node, link });
    if (node !== undefined) showLog(model.network.nodes[node]);
    else if (model.links.has(link)) links.choice.toggle(link);
  };
  mountEvents(main, model, view);
  mountTables(main, model);
  mountNotes(main, model);
  listen(model, view, actions);
  redraws.push(() => timeline.ask(), () => decision.ask(), () => histories.ask(), () => drawing.ask(), () => packets.ask(), () => lanes.ask(), pairs.redraw, links.redraw, spread);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  window.thunderstorm = { model, view, apply: (update) => model.apply(update) };
  const look = () => view.move(firstFailure(model.result) ?? view.begin);
  const given = JSON.parse(document.getElementById("data").textContent);
  if (given.api) goLive(given.api, model, view, steering, look);
  else {
    model.apply(given);
    look();
  }
}

start();
