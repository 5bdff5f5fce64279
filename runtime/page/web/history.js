// Operations of a history that nothing explains, each a bar in the row of its process, from its begin
// to its end; the guilty ones in red, those without a known end fading out. Outages are shaded. There
// is a box for each expectation that has them.
import { Canvas, colours, el, fillTip } from "./dom.js";
import { follow, timeAxis } from "./clock.js";
import { moment } from "./format.js";
import { outages } from "./lives.js";
import { axis } from "./timeline.js";

const BAR_ROW = 18;
const MOST_PROCESSES = 40;
const BELOW_ROWS = 18;

export function mountHistories(root, model, view) {
  const canvases = [];
  const section = el("section", { id: "histories", hidden: true });
  root.append(section);
  model.on(["expectations"], () => {
    const those = model.expectations.filter((one) => one.operations?.length);
    section.hidden = !those.length;
    canvases.length = 0;
    section.replaceChildren(...those.map((one) => historyBox(one, model, view, canvases)));
  });
  view.on("range", () => canvases.forEach((one) => one.ask()));
  model.on(["events", "time"], () => canvases.forEach((one) => one.ask()));
  return { ask: () => canvases.forEach((one) => one.ask()) };
}

function historyBox(one, model, view, canvases) {
  const processes = [...new Set(one.operations.map(([process]) => process))].sort();
  const shown = processes.slice(0, MOST_PROCESSES);
  const canvas = new Canvas(`operations of ${one.text}`, (context, width, height) =>
    drawHistory(context, one.operations, shown, model, view, width, height));
  canvas.node.style.height = `${shown.length * BAR_ROW + BELOW_ROWS}px`;
  canvases.push(canvas);
  const tip = el("div", { class: "tip" });
  const box = el("div", { class: "chart" }, canvas.node, tip);
  follow(box, view);
  const at = (event) => {
    const place = canvas.node.getBoundingClientRect();
    const [left, wide] = timeAxis(place.width);
    const ns = view.from + ((event.clientX - place.left - left) / wide) * view.width;
    const row = Math.floor((event.clientY - place.top) / BAR_ROW);
    return one.operations.filter(([process, , from, to]) =>
      process === shown[row] && from <= ns && (to === null || ns <= to));
  };
  box.addEventListener("pointermove", (event) => {
    const [found] = at(event);
    tip.hidden = !found;
    if (found) fillTip(tip, event, box, operationTold(found));
  });
  box.addEventListener("pointerleave", () => { tip.hidden = true; });
  tip.hidden = true;
  const first = Math.min(...one.operations.map(([, , from]) => from));
  const last = Math.max(...one.operations.map(([, , from, to]) => to ?? from));
  const room = (last - first) / 20;
  const more = processes.length > shown.length ? ` ${processes.length - shown.length} processes are not shown.` : "";
  return el("div", { class: "history" },
    el("div", { class: "head" }, el("h2", {}, "Operations"), el("code", {}, one.text),
      el("button", { type: "button", class: "link", onclick: () => view.show(first - room, last + room) }, "show this time")),
    box, el("p", { class: "quiet" }, one.message + more));
}

function operationTold([process, words, from, to, ok]) {
  const end = to === null ? "no known end" : `to ${moment(to, 1e7)}`;
  return [words, process, `from ${moment(from, 1e7)}, ${end}`, ...(ok ? [] : ["perhaps it took effect, perhaps not"])];
}

function drawHistory(context, operations, processes, model, view, width, height) {
  const [left, wide] = timeAxis(width);
  const { quiet, grid, text, accent, bad, warn, cut } = colours();
  const x = (ns) => left + ((ns - view.from) / view.width) * wide;
  const rows = processes.length * BAR_ROW;
  context.textBaseline = "middle";
  context.fillStyle = quiet;
  processes.forEach((process, row) => {
    context.fillText(process, 2, row * BAR_ROW + BAR_ROW / 2, left - 6);
    context.fillStyle = grid;
    context.fillRect(left, (row + 1) * BAR_ROW - 1, wide, 1);
    context.fillStyle = quiet;
  });
  context.save();
  context.beginPath();
  context.rect(left, 0, wide, rows);
  context.clip();
  context.globalAlpha = 0.25;
  context.fillStyle = cut;
  for (const one of outages(model)) context.fillRect(x(one.from), 0, Math.max(x(one.to) - x(one.from), 1), rows);
  for (const [process, words, from, to, ok, guilty] of operations) {
    const row = processes.indexOf(process);
    const end = to ?? view.to;
    if (row < 0 || end < view.from || from > view.to) continue;
    const begin = Math.max(x(from), left - 2);
    const long = Math.max(Math.min(x(end), left + wide + 2) - begin, 2);
    context.globalAlpha = guilty ? 0.9 : ok ? 0.55 : 0.25;
    context.fillStyle = guilty ? bad : ok ? accent : warn;
    context.fillRect(begin, row * BAR_ROW + 2, long, BAR_ROW - 5);
    if (context.measureText(words).width + 6 > long) continue;
    context.globalAlpha = 1;
    context.fillStyle = text;
    context.fillText(words, begin + 3, row * BAR_ROW + BAR_ROW / 2);
  }
  context.restore();
  axis(context, left + wide, height, view, x, left, text);
}
