// The network at the moment under the cursor. Each half of a link is one direction, coloured by how
// much of its rate is in use, wider where more is; what is down is dashed.
import { Canvas, colours, el, fillTip, section } from "./dom.js";
import { lives } from "./lives.js";
import { NetworkAt, after } from "./model.js";
import { layOut } from "./layout.js";
import { placesInMotion, turnable } from "./positions.js";
import { pairKey, whoIsLinked, whoReaches } from "./reach.js";
import { bytes, moment, percent, rate, span } from "./format.js";
import { csvButton } from "./csv.js";

const STOPS = [[0, 91, 143, 199], [0.5, 224, 180, 0], [1, 209, 72, 15]];
const LABELS = 80; // so many nodes have names
const NEAR = 14; // pixels
const LINE = 12; // height of a name
const BESIDE = 9; // pixels between links that join the same two nodes
// Where the middle of a name may be: in steps of its size and that of its node, the usual place first.
const SIDES = [[0, 1], [0, -1], [1, 0], [-1, 0], [0.8, 0.8], [-0.8, 0.8], [0.8, -0.8], [-0.8, -0.8]];

export function loadColour(load) {
  const share = Math.min(Math.max(load, 0), 1);
  const at = share < 0.5 ? 0 : 1;
  const [low, high] = [STOPS[at], STOPS[at + 1]];
  const part = (share - low[0]) / (high[0] - low[0]);
  const mixed = [1, 2, 3].map((n) => Math.round(low[n] + (high[n] - low[n]) * part));
  return `rgb(${mixed.join(",")})`;
}

export function mountNetwork(root, model, view, pick) {
  const heading = section("network", "Network", el("span", { class: "quiet at" }),
    csvButton("network", () => epochsAsRows(model)));
  const tip = el("div", { class: "tip", hidden: true });
  const state = { at: null, places: null, same: "", hover: null, fit: null, lives: new Map(), beside: new Map() };
  const canvas = new Canvas("the network at the cursor", (context, width, height) =>
    drawNetwork(context, width, height, model, view, state));
  const box = el("div", { class: "drawing" }, canvas.node, tip);
  const absent = el("p", { class: "quiet" });
  const dots = el("input", { type: "checkbox", onchange: () => { state.dots = dots.checked; canvas.ask(); } });
  const asked = el("label", { class: "reach", hidden: true }, dots, " dots: who reaches whom without a link");
  heading.append(box, legend(asked), absent);
  root.append(heading);
  model.on(["network"], () => {
    const { network } = model;
    const drawn = network !== null && network.epochs.length > 0;
    box.hidden = !drawn;
    absent.textContent = drawn ? "" : "The network is not drawn; the notes at the end say why.";
    if (!drawn) return;
    state.at = new NetworkAt(network);
    const same = JSON.stringify([network.nodes, network.ends]);
    if (same !== state.same) {
      state.places = placesInMotion(network) ?? layOut(network, () => canvas.ask());
    }
    state.same = same;
    state.reaches = network.positions ? whoReaches(network.positions) : null;
    asked.hidden = !state.reaches;
    state.beside = besideOthers(network.ends);
    canvas.ask();
  });
  model.on(["events", "network", "time"], () => {
    state.lives = new Map(lives(model).map((one) => [one.name, one.stretches]));
    state.linkedAt = whoIsLinked(model);
    canvas.ask();
  });
  view.on("cursor", () => {
    heading.querySelector(".at").textContent = `at ${moment(view.cursor, view.width)}`;
    canvas.ask();
  });
  canvas.node.addEventListener("pointermove", (event) => {
    state.hover = nearest(canvas.node, event, model, state);
    showTip(tip, event, box, model, view, state);
    canvas.ask();
  });
  turnable(canvas, state);
  canvas.node.addEventListener("pointerleave", () => {
    state.hover = null;
    tip.hidden = true;
    canvas.ask();
  });
  canvas.node.addEventListener("click", (event) => {
    const found = nearest(canvas.node, event, model, state);
    if (found) pick(found);
  });
  return canvas;
}

function legend(asked) {
  const bar = el("canvas", { width: 100, height: 8, class: "ramp" });
  const context = bar.getContext("2d");
  for (let x = 0; x < 100; x++) {
    context.fillStyle = loadColour(x / 100);
    context.fillRect(x, 0, 1, 8);
  }
  const part = (...words) => el("span", {}, words);
  return el("p", { class: "legend quiet" }, part("load 0 ", bar, " 100 % of the rate"),
    part(el("i", { class: "dash" }), " down"), part("■ bridge"), part("● instance"),
    part(el("span", { class: "ended" }, "●"), " program ended"), part(el("span", { class: "sign failed" }, "●"), " failed"),
    part("○ cut off"), part("× gone"), asked);
}

function drawNetwork(context, width, height, model, view, state) {
  if (!state.places) return;
  state.at.go(view.cursor);
  state.places.go?.(view.cursor);
  const { nodes } = state.places;
  state.linked = state.linkedAt?.(view.cursor) ?? null;
  state.fit = fitting(state.places.frame ?? nodes, width, height);
  const place = (index) => state.fit(nodes[index]);
  const many = nodes.length > 300;
  if (state.dots && state.reaches) drawReach(context, place, model.network, view, state);
  model.network.ends.forEach(([src, dst], link) => {
    if (!isThere(model.network, state, link)) return;
    drawHalf(context, ...aside(place(src), place(dst), state.beside.get(link)), linkNow(model, view, state, link), {
      thin: many, lit: state.hover?.link === link,
    });
  });
  const written = state.places.names ?? model.network.nodes;
  const names = namesAside(context, nodes.map((_, index) => place(index)), model.network.ends, written);
  nodes.forEach((node, index) => {
    if (!node.hidden) drawNode(context, place(index), node, nodeNow(model, view, state, node.index), many);
  });
  nodes.forEach((node, index) => drawName(context, names[index], node, written, state, model, view));
}

// Whether a link is one that is drawn. Of those between nodes that move only the ones are that are there: up, and where
// programs ask for them, granted.
function isThere({ ends }, state, link) {
  const [src, dst] = ends[link];
  if (!state.places.moves?.has(src) || !state.places.moves.has(dst)) return true;
  return Boolean(state.at.links[link]?.up) && (!state.linked || state.linked.has(pairKey(src, dst)));
}

function drawReach(context, place, network, view, state) {
  const drawn = network.ends.filter((_, link) => isThere(network, state, link)).map((ends) => pairKey(...ends));
  const linked = new Set(drawn);
  context.beginPath();
  for (const [a, b] of state.reaches(view.cursor)) {
    if (linked.has(pairKey(a, b))) continue;
    context.moveTo(...place(a));
    context.lineTo(...place(b));
  }
  context.setLineDash([1.5, 4]);
  context.strokeStyle = colours().quiet;
  context.lineWidth = 1.2;
  context.stroke();
  context.setLineDash([]);
}

// Of a node at the cursor: up, cut, paused, ended, failed or down. What is not up by the plan is that.
function nodeNow(model, view, state, node) {
  const planned = state.at.nodes[node];
  const stretches = state.lives.get(model.network.nodes[node]);
  if (planned !== "up" || !stretches) return planned;
  const living = stretches[after(stretches, view.cursor, (one) => one[0]) - 1]?.[2];
  if (living === "killed") return "down";
  return living === "ended" || living === "failed" || living === "paused" ? living : planned;
}

// Where the middle of each name is: on the side where it meets the fewest links and other names.
function namesAside(context, places, ends, written) {
  if (tooMany(written)) return places.map(([x, y]) => [x, y + 18]);
  const taken = places.map(([x, y]) => [x - 7, y - 7, x + 7, y + 7]);
  return places.map(([x, y], index) => {
    if (!written[index]) return [x, y + 18];
    const half = context.measureText(written[index]).width / 2;
    let best = null;
    for (const [right, below] of SIDES) {
      const middle = [x + right * (half + 10), y + below * (LINE / 2 + 9)];
      const box = [middle[0] - half - 1, middle[1] - LINE / 2, middle[0] + half + 1, middle[1] + LINE / 2];
      const links = ends.filter(([a, b]) => crosses(places[a], places[b], box)).length;
      const names = taken.filter((other, at) => at !== index && overlap(other, box)).length;
      const worth = links + 2 * names;
      if (!best || worth < best.worth) best = { worth, middle, box };
      if (!worth) break;
    }
    taken.push(best.box);
    return best.middle;
  });
}

function tooMany(written) {
  return written.filter(Boolean).length > LABELS;
}

export function overlap(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

// Whether a line meets a box (Liang and Barsky 1984).
function crosses([x, y], [toX, toY], [left, top, right, bottom]) {
  let [enter, leave] = [0, 1];
  for (const [by, room] of [[x - toX, x - left], [toX - x, right - x], [y - toY, y - top], [toY - y, bottom - y]]) {
    if (by === 0 && room < 0) return false;
    if (by < 0) enter = Math.max(enter, room / by);
    if (by > 0) leave = Math.min(leave, room / by);
  }
  return enter <= leave;
}

function fitting(nodes, width, height) {
  const xs = nodes.map((node) => node.x);
  const ys = nodes.map((node) => node.y);
  const low = [xs.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.min(a, b))];
  const high = [xs.reduce((a, b) => Math.max(a, b)), ys.reduce((a, b) => Math.max(a, b))];
  const room = [Math.max(width - 110, 40), Math.max(height - 50, 40)];
  const scale = Math.min(room[0] / Math.max(high[0] - low[0], 1), room[1] / Math.max(high[1] - low[1], 1), 3);
  return (node) => [
    width / 2 + (node.x - (low[0] + high[0]) / 2) * scale,
    height / 2 + (node.y - (low[1] + high[1]) / 2) * scale,
  ];
}

// Of one direction: its state in the plan, and what flows.
export function linkNow(model, view, state, link) {
  const planned = state.at.links[link];
  const series = model.links.get(link);
  const bucket = model.bucket(view.cursor);
  const value = (channel) => series?.[channel]?.values(model.time.grid.count)[bucket] ?? null;
  const flow = value("rate");
  const load = flow !== null && planned?.rate_bps ? flow / planned.rate_bps : null;
  return { ...planned, up: planned?.up ?? false, flow, load, queue: value("queue") };
}

// Of links between the same two nodes how far each lies from the straight line, in pixels to the right of its own
// direction; others are on it.
export function besideOthers(ends) {
  const between = new Map();
  ends.forEach(([src, dst], link) => {
    const key = src < dst ? `${src} ${dst}` : `${dst} ${src}`;
    if (link % 2 === 0) between.set(key, [...(between.get(key) ?? []), link]);
  });
  const found = new Map();
  for (const links of between.values()) {
    links.forEach((first, at) => {
      for (const link of links.length > 1 ? [first, first + 1] : []) {
        found.set(link, (at - (links.length - 1) / 2) * BESIDE * (ends[link][0] < ends[link][1] ? 1 : -1));
      }
    });
  }
  return found;
}

function aside(from, to, far) {
  if (!far) return [from, to];
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
  const [x, y] = [(-(to[1] - from[1]) / length) * far, ((to[0] - from[0]) / length) * far];
  return [[from[0] + x, from[1] + y], [to[0] + x, to[1] + y]];
}

function drawHalf(context, from, to, now, { thin, lit }) {
  const { down, quiet, text } = colours();
  const middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
  const aside = thin ? 0 : 1.6;
  const off = [(-(to[1] - from[1]) / length) * aside, ((to[0] - from[0]) / length) * aside];
  context.beginPath();
  context.moveTo(from[0] + off[0], from[1] + off[1]);
  context.lineTo(middle[0] + off[0], middle[1] + off[1]);
  context.setLineDash(now.up ? [] : [3, 4]);
  context.strokeStyle = lit ? text : !now.up ? down : now.load === null ? quiet : loadColour(now.load);
  context.lineWidth = (thin ? 0.8 : 1.6) + (now.up && now.load ? Math.min(now.load, 1) * 4 : 0) + (lit ? 1.5 : 0);
  context.stroke();
  context.setLineDash([]);
}

function drawNode(context, [x, y], node, now, many) {
  const { text, quiet, panel, up, cut, down, bad } = colours();
  const size = many ? 2.5 : node.bridge ? 5 : 6;
  context.lineWidth = 2;
  const fill = { up: node.bridge ? text : up, paused: quiet, ended: down, failed: bad };
  context.fillStyle = fill[now] ?? panel;
  context.strokeStyle = now in fill ? panel : now === "cut" ? cut : down;
  context.beginPath();
  if (node.bridge) context.rect(x - size, y - size, 2 * size, 2 * size);
  else context.arc(x, y, size, 0, 7);
  context.fill();
  if (!many || now !== "up") context.stroke();
  if (now === "down") {
    context.beginPath();
    for (const [a, b] of [[-1, -1], [-1, 1]]) {
      context.moveTo(x + a * size * 0.6, y + b * size * 0.6);
      context.lineTo(x - a * size * 0.6, y - b * size * 0.6);
    }
    context.stroke();
  }
}

function drawName(context, [x, y], node, written, state, model, view) {
  const lit = state.hover?.node === node.index;
  if (!lit && (!written[node.index] || tooMany(written))) return;
  const { text, quiet } = colours();
  context.fillStyle = nodeNow(model, view, state, node.index) === "down" ? quiet : text;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(lit ? model.network.nodes[node.index] : written[node.index], x, y);
  context.textAlign = "left";
}

// What is under the pointer: a node, else the nearer direction of a link.
function nearest(canvas, event, model, state) {
  if (!state.places || !state.fit) return null;
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let best = { far: NEAR };
  state.places.nodes.forEach((node, index) => {
    if (node.hidden) return;
    const [a, b] = state.fit(node);
    const far = Math.hypot(a - x, b - y);
    if (far < best.far) best = { node: index, far };
  });
  if (best.node !== undefined) return best;
  model.network.ends.forEach(([src, dst], link) => {
    if (!isThere(model.network, state, link)) return;
    const ends = [src, dst].map((node) => state.fit(state.places.nodes[node]));
    const [from, to] = aside(...ends, state.beside.get(link));
    const half = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
    const along = [half[0] - from[0], half[1] - from[1]];
    const size = along[0] ** 2 + along[1] ** 2 || 1;
    const part = Math.min(Math.max(((x - from[0]) * along[0] + (y - from[1]) * along[1]) / size, 0), 1);
    const far = Math.hypot(from[0] + along[0] * part - x, from[1] + along[1] * part - y);
    if (far < best.far) best = { link, far };
  });
  return best.link === undefined ? null : best;
}

const NODE_WORDS = {
  up: "up", cut: "cut off", paused: "paused", ended: "its program has ended", failed: "its program has failed", down: "gone",
};

function showTip(tip, event, box, model, view, state) {
  tip.hidden = !state.hover;
  if (!state.hover) return;
  const { node, link } = state.hover;
  const lines = node !== undefined
    ? [model.network.nodes[node], NODE_WORDS[nodeNow(model, view, state, node)]]
    : linkWords(model.network.links[link], linkNow(model, view, state, link), model.network.traces);
  fillTip(tip, event, box, lines);
}

// Properties that few links have, and their words.
const RARE = [
  ["burst_milli", (n) => `bursts of ${n / 1000} packets`],
  ["burst_pass_ppb", (n) => `${percent(n / 1e9)} pass in bursts`],
  ["gap_loss_ppb", (n) => `loss ${percent(n / 1e9)} between bursts`],
  ["duplicate_ppb", (n) => `duplicates ${percent(n / 1e9)}`],
  ["corrupt_ppb", (n) => `corrupts ${percent(n / 1e9)}`],
  ["reorder_ppb", (n) => `reorders ${percent(n / 1e9)}`],
  ["reorder_ns", (n) => `by ${span(n)}`],
  ["reject_ppb", (n) => `rejects ${percent(n / 1e9)}`],
  ["mtu_bytes", (n) => `packets of up to ${bytes(n)}`],
  ["capacity_bps", (n) => `capacity ${rate(n)}, shared with others`],
  ["wmax_bytes", (n) => `windows of ${bytes(n)}`],
  ["aqm", (name) => `queue managed by ${name}`],
  ["only", (match) => `other values for ${match}`],
  ["neck", (name) => `queue of ${name}, shared with other paths`],
  ["rtt_ns", (n) => `round trip ${span(n)}`],
  ["queue_packets", (n) => `queue of ${n} packets`],
];

function linkWords(name, now, traces) {
  const words = [name, now.up ? `${rate(now.flow)} of ${now.rate_bps ? rate(now.rate_bps) : "no limit"}` : "down"];
  if (now.load !== null) words.push(`load ${percent(now.load)}`);
  if (now.delay_ns !== undefined) {
    words.push(`delay ${span(now.delay_ns)}${now.jitter_ns ? ` ± ${span(now.jitter_ns)}` : ""}`);
    words.push(`loss ${percent(now.loss_ppb / 1e9)}`);
    if (now.trace) words.push(`follows ${traces[now.trace - 1]}: rate on average`);
    words.push(...RARE.filter(([field]) => now[field]).map(([field, words]) => words(now[field])));
  }
  if (now.queue) words.push(`queue ${bytes(now.queue)}${now.neck ? ` of all paths of ${now.neck}` : ""}`);
  return words;
}

function epochsAsRows(model) {
  const { network } = model;
  const head = ["at_ns", "what", "name", "state", ...(network?.fields.slice(1) ?? [])];
  const rows = [];
  for (const { at_ns, nodes, links } of network?.epochs ?? []) {
    for (const [node, state] of nodes) rows.push([at_ns, "node", network.nodes[node], state]);
    for (const [link, up, ...numbers] of links)
      rows.push([at_ns, "link", network.links[link], up ? "up" : "down", ...numbers]);
  }
  return [head, rows];
}
