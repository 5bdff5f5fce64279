// Who sent what to whom, around the cursor: time from left to right, a line for each instance, an arrow for each
// packet from when it was sent to when it arrived. Lost ones end half way, with a cross. What was wrong then lies
// behind them: instances that were cut off or gone, links that were down, events.
import { Canvas, colours, el, fillTip, section } from "./dom.js";
import { after, eventMoment } from "./model.js";
import { lives, outages } from "./lives.js";
import { overlap } from "./network.js";
import { axis, eventWords, laneOf } from "./timeline.js";
import { bytes, moment, span } from "./format.js";
import { csvButton } from "./csv.js";

const WIDTHS = [1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9, 3e9, 1e10]; // of the window
const MOST_ARROWS = 400; // that are drawn at once
const MOST_LIFELINES = 40; // instances
const COMFORTABLE = 120; // arrows in the window that is chosen first
const LEANING = 40; // times what a packet takes: in a wider window arrows stand upright
const ROOM_FOR_LINE = 44; // pixels from line to line
const ABOVE_LINES = 34;
const NEAR_ARROW = 8; // pixels
const COLUMNS = ["src", "dst", "sent_ns", "took_ns", "cause", "link", "words", "bytes", "probe"];

export function mountPackets(root, model, view) {
  const state = { packets: [], width: null, probes: false, lines: [], drawn: [], hover: null, lives: new Map(), outages: [] };
  const said = el("span", { class: "quiet at" });
  const tip = el("div", { class: "tip", hidden: true });
  const canvas = new Canvas("packets around the cursor", (context, width, height) => {
    drawPackets(context, width, height, model, view, state);
    said.textContent = packetWords(model, view, state);
  });
  const widths = el("select", { title: "how much time is shown", onchange: () => { state.width = Number(widths.value); canvas.ask(); } },
    WIDTHS.map((ns) => el("option", { value: String(ns) }, span(ns))));
  const probes = el("input", { type: "checkbox", onchange: () => { state.probes = probes.checked; choose(model, state); fit(); } });
  const box = el("div", { class: "drawing packets" }, canvas.node, tip);
  const part = section("packets", "Packets", said, csvButton("packets", () => asRows(model, state)));
  part.append(el("p", { class: "legend quiet" }, el("label", {}, "window ", widths), el("label", {}, probes, " probes of the verdict, too"),
    el("span", {}, "→ arrived"), el("span", {}, el("span", { class: "sign failed" }, "✕"), " lost"),
    el("span", {}, "a click moves the cursor")), box);
  root.append(part);
  const fit = () => {
    canvas.node.style.height = `${ABOVE_LINES + 30 + Math.max(state.lines.length, 1) * ROOM_FOR_LINE}px`;
    canvas.ask();
  };
  model.on(["packets", "network"], () => {
    part.hidden = !model.packets?.rows.length || !model.network;
    if (part.hidden) return;
    const { rows, causes, words: said } = model.packets;
    state.packets = rows.map((row) => {
      const one = Object.fromEntries(COLUMNS.map((name, at) => [name, row[at]]));
      return { ...one, cause: causes[one.cause], words: said[one.words] };
    });
    state.longest = state.packets.reduce((most, one) => Math.max(most, one.took_ns), 0);
    if (!state.packets.some((one) => !one.probe)) probes.checked = state.probes = true;
    choose(model, state);
    state.width = firstWidth(state.lines.length ? state.packets.filter((one) => state.probes || !one.probe) : []);
    widths.value = String(state.width);
    fit();
  });
  model.on(["events", "network", "time"], () => {
    state.lives = new Map(lives(model).map((one) => [one.name, one.stretches]));
    state.outages = outages(model);
    canvas.ask();
  });
  view.on("cursor", () => canvas.ask());
  canvas.node.addEventListener("pointermove", (event) => {
    state.hover = nearestArrow(canvas.node, event, state);
    showPacket(tip, event, box, model, view, state);
    canvas.ask();
  });
  canvas.node.addEventListener("pointerleave", () => {
    state.hover = null;
    tip.hidden = true;
    canvas.ask();
  });
  canvas.node.addEventListener("click", (event) => {
    const x = event.clientX - canvas.node.getBoundingClientRect().left;
    const [left, wide] = inner(canvas.node.clientWidth);
    view.move(view.cursor + ((x - left) / wide - 0.5) * state.width, true);
  });
  return canvas;
}

function inner(width) {
  return [96, Math.max(width - 114, 1)];
}

// Which instances have a line: those that send or receive most, in the order of the plan.
function choose(model, state) {
  const counts = new Map();
  for (const one of state.packets)
    if (state.probes || !one.probe)
      for (const node of new Set([one.src, one.dst])) if (node >= 0) counts.set(node, (counts.get(node) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, MOST_LIFELINES);
  state.lines = most.map(([node]) => node).sort((a, b) => a - b);
  state.without = counts.size - state.lines.length;
}

// The widest window in which arrows can still be told apart where they are dense, and lean.
function firstWidth(packets) {
  const took = packets.filter((one) => !one.cause).map((one) => one.took_ns).sort((a, b) => a - b);
  const usual = took[took.length >> 1] ?? Infinity;
  for (const width of [...WIDTHS].reverse()) {
    if (width > LEANING * usual && width > WIDTHS[0]) continue;
    let densest = 0;
    let first = 0;
    packets.forEach((one, at) => {
      while (packets[first].sent_ns < one.sent_ns - width) first++;
      densest = Math.max(densest, at - first + 1);
    });
    if (densest <= COMFORTABLE) return width;
  }
  return WIDTHS[0];
}

// Those that are on their way in the window.
function inWindow(state, from, to) {
  const { packets } = state;
  const rows = new Set(state.lines);
  const found = [];
  for (let at = after(packets, from - state.longest - 1, (one) => one.sent_ns); at < packets.length; at++) {
    const one = packets[at];
    if (one.sent_ns > to) break;
    if (one.sent_ns + one.took_ns < from || (one.probe && !state.probes)) continue;
    if (rows.has(one.src) && (one.dst < 0 || rows.has(one.dst))) found.push(one);
  }
  return found;
}

// Lost ones, and of the others as many as there is room for, evenly.
function bounded(found) {
  if (found.length <= MOST_ARROWS) return found;
  const lost = found.filter((one) => one.cause).slice(0, MOST_ARROWS);
  const others = found.filter((one) => !one.cause);
  const room = MOST_ARROWS - lost.length;
  return [...lost, ...others.filter((_, at) => Math.floor((at * room) / others.length) !== Math.floor(((at - 1) * room) / others.length))];
}

function packetWords(model, view, state) {
  const found = state.found ?? [];
  const lost = found.filter((one) => one.cause).length;
  const { left_out, begin_ns, step_ns } = model.packets;
  const [from, to] = [view.cursor - state.width / 2, view.cursor + state.width / 2];
  const absent = left_out.reduce((sum, count, at) => {
    const begin = begin_ns + at * step_ns;
    return begin <= to && begin + step_ns > from ? sum + count : sum;
  }, 0);
  const parts = [`at ${moment(view.cursor, state.width)} ± ${span(state.width / 2)}: ${found.length} packets`];
  if (lost) parts.push(`${lost} lost`);
  if (found.length > state.drawn.length) parts.push(`${found.length - state.drawn.length} not drawn`);
  if (absent) parts.push(`some ${absent} of about this time not on the page`);
  if (state.without) parts.push(`${state.without} instances without a line`);
  return parts.join(", ");
}

function drawPackets(context, width, height, model, view, state) {
  if (!model.packets || !state.width) return;
  const [left, wide] = inner(width);
  const window = { from: view.cursor - state.width / 2, to: view.cursor + state.width / 2, width: state.width };
  const x = (ns) => left + ((ns - window.from) / window.width) * wide;
  const row = new Map(state.lines.map((node, at) => [node, ABOVE_LINES + (at + 0.5) * ROOM_FOR_LINE]));
  state.found = inWindow(state, window.from, window.to);
  drawFaults(context, model, state, window, x, left, wide, height - 22);
  drawLifelines(context, model, state, row, window, x, left, wide);
  context.save();
  context.beginPath();
  context.rect(left, 0, wide, height);
  context.clip();
  state.drawn = bounded(state.found).map((one) => ({ one, ends: placed(one, row, x) }));
  for (const arrow of state.drawn) drawArrow(context, arrow, arrow.one === state.hover?.one);
  nameCauses(context, state.drawn);
  context.restore();
  const { accent, text } = colours();
  context.fillStyle = accent;
  context.fillRect(left + wide / 2 - 0.5, ABOVE_LINES - 6, 1, height - ABOVE_LINES - 16);
  axis(context, left + wide, height, window, x, left, text);
}

// Of an arrow both ends; one that was lost ends half way.
function placed(one, row, x) {
  const from = row.get(one.src);
  const to = one.dst >= 0 ? row.get(one.dst) : from - ROOM_FOR_LINE / 2;
  const end = one.cause ? from + (to - from) / 2 : to;
  return [x(one.sent_ns), from, x(one.sent_ns + one.took_ns), end];
}

function drawFaults(context, model, state, window, x, left, wide, bottom) {
  const { cut, quiet, text } = colours();
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const until = [0, 0];
  const put = (lane, begin, words) => {
    const at = Math.max(begin, left) + 3;
    const size = context.measureText(words).width;
    if (at < until[lane] || at + size > left + wide) return;
    context.fillStyle = text;
    context.fillText(words, at, 7 + lane * 13);
    until[lane] = at + size + 8;
  };
  for (const one of state.outages) {
    if (one.lane !== 0 || one.to < window.from || one.from > window.to) continue;
    const [begin, end] = [Math.max(x(one.from), left), Math.min(x(one.to), left + wide)];
    context.globalAlpha = 0.16;
    context.fillStyle = cut;
    context.fillRect(begin, 0, Math.max(end - begin, 1), bottom);
    context.globalAlpha = 1;
    put(0, begin, one.text);
  }
  context.setLineDash([3, 3]);
  for (const event of model.events) {
    const at = eventMoment(event);
    if (at < window.from || at > window.to || event.asked || laneOf(event) > 1) continue;
    context.strokeStyle = quiet;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x(at), 12);
    context.lineTo(x(at), bottom);
    context.stroke();
    put(1, x(at), eventWords(event));
  }
  context.setLineDash([]);
  context.font = "12px system-ui, sans-serif";
}

// The life of each instance: thick where it is up, a band where it is cut off or paused, nothing where it is gone.
function drawLifelines(context, model, state, row, window, x, left, wide) {
  const { text, up, cut, quiet, grid, down, bad } = colours();
  const fill = { up, ended: down, failed: bad, cut, paused: quiet };
  context.textBaseline = "middle";
  for (const [node, y] of row) {
    const name = model.network.nodes[node];
    context.fillStyle = text;
    context.fillText(name.length > 14 ? `${name.slice(0, 13)}…` : name, 0, y);
    context.fillStyle = grid;
    context.fillRect(left, y - 0.5, wide, 1);
    for (const [from, to, living] of state.lives.get(name) ?? []) {
      if (to < window.from || from > window.to || !fill[living]) continue;
      const [begin, end] = [Math.max(x(from), left), Math.min(x(to), left + wide)];
      context.fillStyle = fill[living];
      if (living === "cut" || living === "paused") {
        context.globalAlpha = 0.3;
        context.fillRect(begin, y - ROOM_FOR_LINE / 3, Math.max(end - begin, 1), (2 * ROOM_FOR_LINE) / 3);
        context.globalAlpha = 1;
      }
      context.fillRect(begin, y - 1, Math.max(end - begin, 1), 2);
    }
  }
}

function drawArrow(context, { one, ends }, lit) {
  const { series, bad, text } = colours();
  const [fromX, fromY, toX, toY] = ends;
  context.strokeStyle = context.fillStyle = lit ? text : one.cause ? bad : series[one.src % series.length];
  context.lineWidth = lit ? 2.5 : 1.3;
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX, toY);
  context.stroke();
  context.beginPath();
  if (one.cause) {
    for (const side of [-4, 4]) {
      context.moveTo(toX - side, toY - 4);
      context.lineTo(toX + side, toY + 4);
    }
    context.lineWidth = 2;
    context.stroke();
    return;
  }
  const length = Math.hypot(toX - fromX, toY - fromY) || 1;
  const [alongX, alongY] = [(toX - fromX) / length, (toY - fromY) / length];
  context.moveTo(toX, toY);
  context.lineTo(toX - 7 * alongX - 3 * alongY, toY - 7 * alongY + 3 * alongX);
  context.lineTo(toX - 7 * alongX + 3 * alongY, toY - 7 * alongY - 3 * alongX);
  context.fill();
}

// Why packets were lost, beside their crosses where there is room.
function nameCauses(context, drawn) {
  const taken = [];
  context.fillStyle = colours().bad;
  for (const { one, ends: [, , x, y] } of drawn) {
    if (!one.cause) continue;
    const box = [x - 5, y - 7, x + 12 + context.measureText(one.cause).width, y + 7];
    if (taken.some((other) => overlap(other, box))) continue;
    taken.push(box);
    context.fillText(one.cause, x + 8, y);
  }
}

function nearestArrow(canvas, event, state) {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let best = { far: NEAR_ARROW };
  for (const arrow of state.drawn) {
    const [fromX, fromY, toX, toY] = arrow.ends;
    const size = (toX - fromX) ** 2 + (toY - fromY) ** 2 || 1;
    const share = Math.min(Math.max(((x - fromX) * (toX - fromX) + (y - fromY) * (toY - fromY)) / size, 0), 1);
    const far = Math.hypot(fromX + share * (toX - fromX) - x, fromY + share * (toY - fromY) - y);
    if (far < best.far) best = { one: arrow.one, far };
  }
  return best.one ? best : null;
}

function showPacket(tip, event, box, model, view, state) {
  tip.hidden = !state.hover;
  if (!state.hover) return;
  const { one } = state.hover;
  const name = (node) => (node < 0 ? "a group" : model.network.nodes[node]);
  const end = one.cause
    ? `lost at ${moment(one.sent_ns + one.took_ns, state.width)} on ${model.network.links[one.link]}: ${one.cause}`
    : `arrived at ${moment(one.sent_ns + one.took_ns, state.width)}, after ${span(one.took_ns)}`;
  const lines = [`${name(one.src)} to ${name(one.dst)}`, `${one.words}, ${bytes(one.bytes)}`,
    `sent at ${moment(one.sent_ns, state.width)}`, end];
  fillTip(tip, event, box, lines);
}

function asRows(model, state) {
  const name = (node) => (node < 0 ? "" : model.network.nodes[node]);
  return [["sent_ns", "end_ns", "from", "to", "lost", "link", "what", "bytes"],
    state.packets.map((one) => [one.sent_ns, one.sent_ns + one.took_ns, name(one.src), name(one.dst), one.cause,
      model.network.links[one.link], one.words, one.bytes])];
}
