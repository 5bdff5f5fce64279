// What is known of the run. All of it comes in by `apply`: the whole data of a finished run at once,
// or piece by piece while a run goes on. Keys are those of docs/page.md.

const APPENDED = new Set(["events", "links", "pairs", "logs"]);
const MOST_PIECES = 50; // of a series
const MOST_LINES = 5000; // of a log while the run goes on

// One series on the grid. `fill` says what a bucket has that is not told: "zero", "hold" (as the one
// before), "gap" (nothing is known).
export class Series {
  constructor(fill) {
    this.fill = fill;
    this.pieces = [];
    this.found = null;
  }

  add(piece) {
    if (piece && Array.isArray(piece.v)) this.pieces.push(piece);
    this.found = null;
    if (this.pieces.length > MOST_PIECES) this.join();
  }

  // Later pieces say better what earlier ones said.
  join() {
    const told = new Map();
    for (const { i, v } of this.pieces) v.forEach((value, at) => value !== null && told.set(i ? i[at] : at, value));
    this.pieces = [{ i: [...told.keys()], v: [...told.values()] }];
  }

  get empty() {
    return !this.pieces.some((piece) => piece.v.length);
  }

  // A value for each bucket; made when it is first looked at.
  values(count) {
    if (this.found && this.found.length === count) return this.found;
    const found = new Array(count).fill(null);
    for (const { i, v } of this.pieces)
      for (let at = 0; at < v.length; at++) {
        const bucket = i ? i[at] : at;
        if (bucket < count && v[at] !== null) found[bucket] = v[at];
      }
    let before = 0;
    if (this.fill !== "gap")
      for (let at = 0; at < count; at++) {
        if (found[at] === null) found[at] = this.fill === "hold" ? before : 0;
        before = found[at];
      }
    this.found = found;
    return found;
  }

  sum() {
    let whole = 0;
    if (this.pieces.length > 1) this.join();
    for (const { v } of this.pieces) for (const value of v) whole += value ?? 0;
    return whole;
  }
}

const CHANNELS = {
  rate: "zero", lo: "zero", hi: "zero", queue: "hold", drops: "zero", pkts: "zero",
};
const PROBE_CHANNELS = { mean: "gap", lo: "gap", hi: "gap", got: "zero", lost: "zero", open: "zero" };

export class Model {
  constructor() {
    this.verdict = { state: "unknown", lines: [], limits: [], marks: [] };
    this.result = { state: "unknown", failures: [] };
    this.run = { id: "", experiment: "", outcome: "", message: "", applied: 0, planned: 0 };
    this.expectations = [];
    this.time = { begin_ns: 0, end_ns: 1e9, pace: 1, grid: { begin_ns: 0, step_ns: 1e8, count: 1 } };
    this.network = null;
    this.measure = "";
    this.permille = [];
    this.planned = { columns: [], rows: [] };
    this.programs = [];
    this.tables = [];
    this.figures = null;
    this.packets = null; // of a run that kept them
    this.decision = null; // where `tstorm why` has looked when the failure was decided
    this.notes = [];
    this.events = [];
    this.links = new Map(); // by number
    this.pairs = new Map(); // by "src -> dst"
    this.logs = new Map(); // by instance
    this.coming = []; // while the run goes on: [at_ns, kind, target] of what is planned next
    this.live = null; // what a run that goes on lets be done to it
    this.listeners = [];
  }

  // Calls back when one of these keys was told anew; at once if there is something.
  on(keys, listener) {
    this.listeners.push({ keys: new Set(keys), listener });
  }

  // `anew` names those of which there is nothing but what this update has.
  apply({ anew = [], ...update }) {
    for (const key of anew) key === "events" ? (this.events = []) : this[key].clear();
    for (const [key, value] of Object.entries(update)) {
      if (APPENDED.has(key)) this[`add_${key}`](value);
      else if (key in this && key !== "listeners") this[key] = value;
    }
    for (const { keys, listener } of this.listeners)
      if (Object.keys(update).some((key) => keys.has(key))) listener();
  }

  add_events({ columns, kinds, targets, rows }) {
    for (const row of rows) {
      const event = {};
      columns.forEach((name, at) => (event[name] = row[at]));
      event.kind = kinds[event.kind];
      event.target = targets[event.target];
      this.events.push(event);
    }
  }

  add_links(records) {
    for (const record of records) {
      if (!this.links.has(record.link)) this.links.set(record.link, { link: record.link });
      addTo(this.links.get(record.link), record, CHANNELS);
    }
  }

  add_pairs(records) {
    for (const record of records) {
      const name = `${record.src} -> ${record.dst}`;
      if (!this.pairs.has(name)) {
        const number = this.pairs.size;
        this.pairs.set(name, { name, number, src: record.src, dst: record.dst });
      }
      const pair = this.pairs.get(name);
      addTo(pair, record, CHANNELS);
      if (record.probe) {
        pair.probe ??= {};
        addTo(pair.probe, record.probe, PROBE_CHANNELS);
        for (const key of ["sent", "missing", "interval_ns", "cdf"])
          if (key in record.probe) pair.probe[key] = record.probe[key];
      }
    }
  }

  add_logs(records) {
    for (const { instance, bytes, lines } of records) {
      const known = this.logs.get(instance) ?? { instance, bytes: 0, lines: [] };
      known.bytes = bytes;
      for (const line of lines) known.lines.push(line);
      if (this.going && known.lines.length > MOST_LINES) known.lines.splice(0, known.lines.length - MOST_LINES);
      this.logs.set(instance, known);
    }
  }

  // Whether the run goes on.
  get going() {
    return this.time.now_ns !== undefined;
  }

  // Nothing is known of what is later.
  get known_ns() {
    return this.time.now_ns ?? this.time.end_ns;
  }

  bucket(ns) {
    const { begin_ns, step_ns, count } = this.time.grid;
    return Math.min(Math.max(Math.floor((ns - begin_ns) / step_ns), 0), count - 1);
  }

  // The rows of what was planned, of one pair.
  plannedOf(pair) {
    if (this.plannedRows !== this.planned) {
      this.plannedRows = this.planned;
      this.byPair = new Map();
      const { columns, rows } = this.planned;
      for (const row of rows) {
        const one = {};
        columns.forEach((name, at) => (one[name] = row[at]));
        if (!this.byPair.has(one.pair)) this.byPair.set(one.pair, []);
        this.byPair.get(one.pair).push(one);
      }
    }
    return this.byPair.get(pair.number) ?? [];
  }
}

function addTo(known, record, channels) {
  for (const [name, fill] of Object.entries(channels)) {
    if (!record[name]) continue;
    known[name] ??= new Series(fill);
    known[name].add(record[name]);
  }
}

export function eventMoment(event) {
  return event.at_ns ?? event.planned_ns ?? 0;
}

// The network at a moment, by what the epochs of the plan change. Remembers where it was.
export class NetworkAt {
  constructor(network) {
    this.network = network;
    this.times = network.epochs.map((epoch) => epoch.at_ns);
    this.restart();
  }

  restart() {
    this.epoch = -1;
    this.nodes = new Array(this.network.nodes.length).fill("down");
    this.links = new Array(this.network.links.length).fill(null);
  }

  // Goes there; whether anything is known.
  go(ns) {
    const wanted = after(this.times, ns) - 1;
    if (wanted < this.epoch) this.restart();
    while (this.epoch < wanted) {
      const { nodes, links } = this.network.epochs[++this.epoch];
      for (const [node, state] of nodes) this.nodes[node] = state;
      for (const [link, up, ...numbers] of links) {
        const fields = this.network.fields.slice(1); // those at the end are left out where all are 0
        this.links[link] = { up: up === 1, ...Object.fromEntries(fields.map((field, at) => [field, numbers[at] ?? 0])) };
      }
    }
    return this.epoch >= 0;
  }
}

// How many of these sorted numbers are no larger.
export function after(sorted, value, get = (one) => one) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (get(sorted[middle]) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
