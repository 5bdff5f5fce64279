// What became of whom, by the events: each instance through time, and outages as spans.
import { NetworkAt, eventMoment } from "./model.js";

const NODE_BECOMES = {
  join: "up", leave: "down", crash: "down", killed: "down", disconnect: "cut", reconnect: "up",
};
const BEGINS = new Set(["join", "start"]); // a program's life
// What begins an outage: what ends it, words, lane of the timeline.
const OUTAGES = {
  link_down: ["link_up", "down", 0], bridge_down: ["bridge_up", "down", 0],
  disconnect: ["reconnect", "cut off", 1], pause: ["resume", "paused", 1],
  kill: ["join", "killed", 1],
  leave: ["join", "gone", 1], crash: ["join", "gone", 1], killed: ["join", "gone", 1],
};
const OVER = { leave: ["reconnect", "resume"], crash: ["reconnect", "resume"], kill: ["resume"], killed: ["reconnect", "resume"] };
const NAMED = 2; // of what fails at once, so many have names

// A program may have begun, and ended, before its instance joined (before time 0).
function lifeMoment(event) {
  return BEGINS.has(event.kind) ? Math.min(event.started_ns ?? Infinity, eventMoment(event)) : eventMoment(event);
}

function endSign(event) {
  return event.failed ? "failed" : event.text === "status 0" ? "passed" : "other";
}

// Of each instance: {name, stretches: [[from, to, state]], ends: [[ns, sign, words]]}. States are
// up, cut, paused, ended, failed (its program has), down, killed (down, though the plan has it up).
// Signs: failed, passed (status 0), other (an end that nobody calls a failure).
export function lives(model) {
  const found = new Map();
  const { network, time } = model;
  const begin = time.begin_ns;
  const at = network?.epochs.length && begin > 0 ? new NetworkAt(network) : null;
  at?.go(begin);
  const of = (name, node = "down") => {
    if (!found.has(name)) found.set(name, { name, node, paused: false, ended: "", changes: [[begin, node]], ends: [] });
    return found.get(name);
  };
  network?.nodes.forEach((name, node) => {
    if (network.services[node] >= 0) of(name, at ? at.nodes[node] : "down");
  });
  const known = model.events.filter((event) => !event.asked && (event.kind in NODE_BECOMES || BEGINS.has(event.kind)
    || ["exit", "pause", "resume", "kill"].includes(event.kind)));
  known.sort((a, b) => lifeMoment(a) - lifeMoment(b));
  for (const event of known) {
    const one = of(event.target);
    if (BEGINS.has(event.kind)) one.ended = "";
    if (event.kind === "exit") one.ended = event.failed ? "failed" : "ended";
    if (event.kind === "kill") one.ended = "ended";
    if (event.kind === "exit") one.ends.push([eventMoment(event), endSign(event), event.text]);
    if (event.kind === "killed") one.ends.push([eventMoment(event), endSign(event), "killed from outside"]);
    one.killed = event.kind === "killed" || (one.killed && !BEGINS.has(event.kind));
    if (["pause", "resume", "join"].includes(event.kind)) one.paused = event.kind === "pause";
    one.node = NODE_BECOMES[event.kind] ?? one.node;
    const living = one.ended || (one.node === "up" && one.paused ? "paused" : one.node);
    one.changes.push([Math.max(lifeMoment(event), begin), one.killed ? "killed" : one.node === "down" ? "down" : living]);
  }
  for (const one of found.values())
    one.stretches = one.changes.map(([from, state], place) => [from, one.changes[place + 1]?.[0] ?? model.known_ns, state]);
  return [...found.values()];
}

// Spans in which something was not there: {from, to, lane, text}, in order of their beginnings. What
// went and came at the same moments is one.
// Where nodes are is none: those that move have links while they reach each other.
export function outages(model) {
  const { positions, nodes } = model.network ?? {};
  const moving = new Set(positions?.nodes.map((node) => nodes[node]));
  const moved = ({ line, target }) =>
    line === positions?.line && target.includes("->") && target.split("->").every((end) => moving.has(end));
  const open = new Map();
  const spans = new Map();
  const close = (key, event) => {
    const one = open.get(key);
    if (!one) return;
    open.delete(key);
    const to = event ? eventMoment(event) : model.known_ns;
    const until = event ? event.planned_ns ?? to : "";
    const same = `${one.when} ${until} ${one.words}`;
    if (to <= one.from) return;
    if (!spans.has(same)) spans.set(same, { from: one.from, to, lane: one.lane, words: one.words, names: [] });
    spans.get(same).names.push(one.name);
  };
  for (const event of model.events) {
    if (event.asked || moved(event)) continue;
    close(`${event.kind} ${event.target}`, event);
    for (const kind of OVER[event.kind] ?? []) close(`${kind} ${event.target}`, event);
    if (!(event.kind in OUTAGES)) continue;
    const [ends, words, lane] = OUTAGES[event.kind];
    const key = `${ends} ${event.target}`;
    const from = eventMoment(event);
    if (!open.has(key)) open.set(key, { name: event.target, from, when: event.planned_ns ?? from, words, lane });
  }
  for (const key of [...open.keys()]) close(key, null);
  const found = [...spans.values()].map(({ names, words, ...span }) => ({ ...span, text: `${together(names)} ${words}` }));
  return found.sort((a, b) => a.from - b.from);
}

// `a--b` for both directions of a link.
function together(names) {
  const there = new Set(names);
  const back = (name) => {
    const ends = name.lastIndexOf(":") + 1; // behind what name= calls the link
    return name.slice(0, ends) + name.slice(ends).split("->").reverse().join("->");
  };
  const both = (name) => name.includes("->") && there.has(back(name));
  const once = names.filter((name, at) => !both(name) || at < names.indexOf(back(name)));
  const shown = once.slice(0, NAMED).map((name) => (both(name) ? name.replace("->", "--") : name)).join(", ");
  return once.length > NAMED ? `${shown} and ${once.length - NAMED} more` : shown;
}
