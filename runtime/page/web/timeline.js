// Every event, planned and applied: a line from when it was due (above) to when it was done (below),
// so one that was late leans. Outages are spans with words. Below them what was expected, and what the
// verdict says of moments.
import { Canvas, colours, el } from "./dom.js";
import { follow, timeAxis } from "./clock.js";
import { outages } from "./lives.js";
import { eventMoment } from "./model.js";
import { moment, span, tick } from "./format.js";

const LANES = [
  ["network", ["set", "link_up", "link_down", "bridge_up", "bridge_down", "background"]],
  ["instances", ["join", "leave", "crash", "disconnect", "reconnect", "pause", "resume", "kill", "clock", "disk", "cut", "moved"]],
  ["programs", ["exit", "killed", "oom_kill", "setup", "ready", "not_ready", "start", "device_gone", "command", "command_end"]],
  ["run", []], // everything else
];
export const LANE_OF = new Map(LANES.flatMap(([, kinds], lane) => kinds.map((kind) => [kind, lane])));
const HEIGHT = 15;

export function eventWords(event) {
  return `${event.kind} ${event.target} ${event.text}`.trim();
}

export function laneOf(event) {
  return LANE_OF.get(event.kind) ?? LANES.length - 1;
}

export function laneColour(lane) {
  const { series } = colours();
  return [series[0], series[1], series[2], series[3]][lane];
}

export function mountTimeline(root, model, view) {
  let spans = [];
  const canvas = new Canvas("all events over time", (context, width, height) => {
    const [left, wide] = timeAxis(width);
    const x = (ns) => left + ((ns - view.from) / view.width) * wide;
    drawTimeline(context, left + wide, height, model, view, x, left, spans);
  });
  const box = el("div", {}, canvas.node);
  const said = el("div", { class: "said" });
  root.append(box, said);
  follow(box, view);
  view.on("range", () => canvas.ask());
  view.on("cursor", () => tellNearest(said, box, model, view, spans));
  model.on(["events", "expectations", "verdict", "time", "coming"], () => {
    spans = outages(model);
    canvas.ask();
  });
  return canvas;
}

function drawTimeline(context, width, height, model, view, x, left, spans) {
  const { quiet, grid, text, bad, good, warn } = colours();
  const rows = LANES.length + 1;
  const top = (lane) => lane * HEIGHT + 2;
  context.textBaseline = "middle";
  for (let lane = 0; lane < rows; lane++) {
    context.fillStyle = quiet;
    context.fillText(lane < LANES.length ? LANES[lane][0] : "judged", 2, top(lane) + HEIGHT / 2);
    context.fillStyle = grid;
    context.fillRect(left, top(lane) + HEIGHT - 1, width - left, 1);
  }
  drawSpans(context, width, view, x, left, spans, top);
  const drawn = new Set();
  for (const event of model.events) {
    if (event.kind === "expectation") continue;
    const due = event.planned_ns ?? event.at_ns;
    const done = event.at_ns ?? due;
    if (due === null || done < view.from || due > view.to) continue;
    const lane = laneOf(event);
    const key = `${lane} ${Math.round(x(due) * 2)} ${Math.round(x(done) * 2)}`;
    if (drawn.has(key)) continue;
    drawn.add(key);
    if (event.failed) {
      cross(context, x(done), top(lane) + HEIGHT / 2 - 1, bad);
      continue;
    }
    context.strokeStyle = event.kind === "crash" ? bad : laneColour(lane);
    context.lineWidth = event.asked ? 1 : 2;
    context.setLineDash(event.at_ns === null ? [2, 2] : []);
    context.beginPath();
    context.moveTo(x(due), top(lane) + 1);
    context.lineTo(x(done), top(lane) + HEIGHT - 2);
    context.stroke();
  }
  drawComing(context, model, view, x, top);
  context.setLineDash([]);
  const judged = top(LANES.length) + HEIGHT / 2;
  context.textAlign = "center";
  for (const one of model.expectations) {
    if (one.at_ns === null || one.at_ns === undefined) continue;
    context.fillStyle = { passed: good, failed: bad }[one.state] ?? quiet;
    context.fillText({ passed: "✓", failed: "✕" }[one.state] ?? "–", x(one.at_ns), judged);
  }
  for (const [at_ns] of model.verdict.marks) {
    context.fillStyle = warn;
    context.fillText("◆", x(at_ns), judged);
  }
  axis(context, width, height, view, x, left, text);
}

// What is planned and has not happened, and where the run is.
function drawComing(context, model, view, x, top) {
  if (!model.going) return;
  const now = x(model.time.now_ns);
  context.lineWidth = 2;
  context.setLineDash([2, 2]);
  for (const [at, kind] of model.coming) {
    if (at <= model.time.now_ns || at > view.to || at < view.from) continue;
    const lane = laneOf({ kind });
    context.strokeStyle = laneColour(lane);
    context.beginPath();
    context.moveTo(x(at), top(lane) + 1);
    context.lineTo(x(at), top(lane) + HEIGHT - 2);
    context.stroke();
  }
  if (model.time.now_ns < view.from || model.time.now_ns > view.to) return;
  context.setLineDash([]);
  context.fillStyle = colours().accent;
  context.fillRect(now, 0, 1.5, top(LANES.length + 1));
}

function cross(context, x, y, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 2.5;
  context.setLineDash([]);
  context.beginPath();
  for (const side of [-4.5, 4.5]) {
    context.moveTo(x - side, y - 4.5);
    context.lineTo(x + side, y + 4.5);
  }
  context.stroke();
}

// Words stand where they fit, on no others.
function drawSpans(context, width, view, x, left, spans, top) {
  const { text, cut } = colours();
  const until = [0, 0];
  context.font = "11px system-ui, sans-serif";
  for (const one of spans) {
    if (one.to < view.from || one.from > view.to) continue;
    const begin = Math.max(x(one.from), left);
    const end = Math.min(x(one.to), width);
    context.globalAlpha = 0.3;
    context.fillStyle = cut;
    context.fillRect(begin, top(one.lane), Math.max(end - begin, 1), HEIGHT - 1);
    context.globalAlpha = 1;
    const wide = context.measureText(one.text).width;
    if (begin + 4 < until[one.lane] || begin + 4 + wide > end) continue;
    context.fillStyle = text;
    context.fillText(one.text, begin + 4, top(one.lane) + HEIGHT / 2);
    until[one.lane] = begin + 8 + wide;
  }
  context.font = "12px system-ui, sans-serif";
}

export function axis(context, width, height, view, x, left, text) {
  const seconds = view.width / 1e9;
  const wanted = Math.max((width - left) / 90, 2);
  const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  let step = steps.find((one) => seconds / one <= wanted) ?? 86400 * Math.ceil(seconds / 86400 / wanted);
  if (seconds < wanted) step = 10 ** Math.ceil(Math.log10(seconds / wanted));
  context.fillStyle = text;
  context.textBaseline = "bottom";
  for (let at = Math.ceil(view.from / 1e9 / step) * step; at <= view.to / 1e9 + 1e-9; at += step) {
    const place = x(at * 1e9);
    context.textAlign = place < left + 20 ? "left" : place > width - 20 ? "right" : "center";
    context.fillText(tick(at, step), place, height);
  }
  context.textAlign = "left";
}

// The events at the cursor and the outages around it, in words.
function tellNearest(said, box, model, view, spans) {
  const near = (view.width / timeAxis(box.clientWidth)[1]) * 4;
  const found = [];
  for (const event of model.events) {
    if (event.kind === "expectation" || Math.abs(eventMoment(event) - view.cursor) > near) continue;
    const late = event.lag_ns > 1e6 ? `, ${span(event.lag_ns)} late` : "";
    const words = `${moment(eventMoment(event), view.width)} ${eventWords(event)}${late}`;
    if (event.failed) found.unshift(words);
    else found.push(words);
  }
  for (const [at, kind, target] of model.coming)
    if (at > model.known_ns && Math.abs(at - view.cursor) <= near) found.push(`planned: ${moment(at, view.width)} ${kind} ${target}`.trim());
  for (const one of spans)
    if (one.from <= view.cursor && view.cursor < one.to)
      found.push(`${one.text} from ${moment(one.from, view.width)} to ${moment(one.to, view.width)}`);
  for (const [at_ns, text] of model.verdict.marks)
    if (Math.abs(at_ns - view.cursor) <= near) found.push(text);
  for (const one of model.expectations)
    if (one.at_ns != null && Math.abs(one.at_ns - view.cursor) <= near) found.push(`${one.state}: ${one.text}`);
  const more = found.length > 3 ? ` … and ${found.length - 3} more` : "";
  said.textContent = found.slice(0, 3).join(" · ") + more;
}
