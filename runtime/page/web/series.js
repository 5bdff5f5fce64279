// Charts of pairs and of links: which are chosen, and what is drawn of them.
import { colours, el, section } from "./dom.js";
import { Chart, plannedValues } from "./charts.js";
import { NetworkAt } from "./model.js";
import { bytes, count, percent, rate, span } from "./format.js";
import { csvButton } from "./csv.js";

const CHOSEN = 8; // chosen at once: so many colours can be told apart
const FIRST = 4; // chosen when the page opens
const OFFERED = 60;

// A choice out of many by name. `items()` gives {key, name, weight, words}, the weightiest first.
class Choice {
  constructor(what, items, changed) {
    Object.assign(this, { what, items, changed });
    this.chosen = [];
    this.touched = false;
    this.chips = el("div", { class: "chips" });
    this.search = el("input", { type: "search", placeholder: `find ${what}`, oninput: () => this.offer() });
    this.search.setAttribute("aria-label", `find ${what}`);
    this.offers = el("div", { class: "offers" });
    const more = el("details", { class: "choose", ontoggle: () => this.offer() },
      el("summary", {}, "choose"), this.search, this.offers);
    this.node = el("div", { class: "choice-of" }, this.chips, more);
    this.more = more;
  }

  // What is there has changed. What was chosen for the user stays until something weighs far more, and
  // what is under the pointer is not made anew.
  update() {
    const items = this.items();
    const weights = new Map(items.map((item) => [item.key, item.weight]));
    const least = Math.min(...this.chosen.map((key) => weights.get(key) ?? -1));
    const best = items.find((item) => !this.chosen.includes(item.key))?.weight ?? -1;
    if (!this.touched && (this.chosen.length < FIRST || best > 2 * least))
      this.chosen = items.slice(0, FIRST).map((item) => item.key);
    const shown = JSON.stringify(this.chosen);
    if (shown !== this.shown) this.draw();
  }

  toggle(key) {
    this.touched = true;
    if (this.chosen.includes(key)) this.chosen = this.chosen.filter((one) => one !== key);
    else this.chosen = [...this.chosen, key].slice(-CHOSEN);
    this.draw();
    this.changed();
  }

  colour(key) {
    return colours().series[this.chosen.indexOf(key) % CHOSEN];
  }

  draw() {
    this.shown = JSON.stringify(this.chosen);
    const names = new Map(this.items().map((item) => [item.key, item.name]));
    this.chips.replaceChildren(...this.chosen.map((key) => {
      const swatch = el("i", {});
      swatch.style.background = this.colour(key);
      return el("button", { type: "button", class: "series", title: "remove", onclick: () => this.toggle(key) },
        swatch, names.get(key) ?? "", " ×");
    }));
    this.offer();
  }

  offer() {
    if (!this.more.open) return;
    const wanted = this.search.value.toLowerCase();
    const found = this.items().filter((item) => item.name.toLowerCase().includes(wanted));
    const rows = found.slice(0, OFFERED).map((item) =>
      el("label", {},
        el("input", { type: "checkbox", checked: this.chosen.includes(item.key), onchange: () => this.toggle(item.key) }),
        el("span", {}, item.name), el("span", { class: "quiet" }, item.words)));
    if (found.length > OFFERED) rows.push(el("span", { class: "quiet" }, `… and ${found.length - OFFERED} more`));
    this.offers.replaceChildren(...rows);
  }
}

function sorted(items) {
  return items.sort((a, b) => b.weight - a.weight || a.name.localeCompare(b.name, "en", { numeric: true }));
}

// -- pairs -------------------------------------------------------------------------------------------

export function mountPairs(root, model, view) {
  let mode = "round";
  const charts = [];
  const redraw = () => charts.forEach((chart) => chart.change());
  const items = () => sorted([...model.pairs.values()].map((pair) => {
    const weight = (pair.rate?.sum() ?? 0) * (model.time.grid.step_ns / model.time.pace / 8e9);
    return { key: pair.name, name: pair.name, weight: weight + (pair.probe ? 0.5 : 0), words: bytes(weight) };
  }));
  const choice = new Choice("pairs", items, redraw);
  const chosen = () => choice.chosen.map((key) => model.pairs.get(key)).filter(Boolean);
  const kind = el("select", { onchange: () => { mode = kind.value; redraw(); } },
    el("option", { value: "round" }, "round-trip time"), el("option", { value: "one" }, "one-way delay"));
  kind.setAttribute("aria-label", "which delay");
  const line = (pair, more) => ({ name: pair.name, colour: choice.colour(pair.name), ...more });
  charts.push(
    new Chart("Throughput", model, view, () => throughput(model, chosen(), line), rate, { least: 1000 }),
    new Chart("Delay of probes", model, view, () => delays(model, chosen(), line, mode), span, { least: 1e5 }),
    new Chart("Loss", model, view, () => losses(model, chosen(), line), percent, { least: 0.01, most: 1 }),
  );
  const part = section("pairs", "Pairs", choice.node, kind, csvButton("pairs", () => pairsAsRows(model)));
  part.append(...charts.map((chart) => chart.node));
  root.append(part);
  model.on(["pairs", "time", "planned", "events"], () => {
    part.hidden = model.pairs.size === 0;
    choice.update();
    redraw();
  });
  return { choice, redraw: () => { choice.draw(); redraw(); } };
}

function band(series, size) {
  return series ? series.values(size) : undefined;
}

function throughput(model, pairs, line) {
  const size = model.time.grid.count;
  const found = pairs.filter((pair) => pair.rate).map((pair) =>
    line(pair, { values: pair.rate.values(size), lo: band(pair.lo, size), hi: band(pair.hi, size) }));
  const most = found.reduce((high, one) => Math.max(high, ...(one.hi ?? one.values)), 0);
  for (const pair of pairs) {
    const planned = plannedValues(model, model.plannedOf(pair), "planned_rate_bps");
    const low = planned.reduce((least, value) => (value ? Math.min(least, value) : least), Infinity);
    const own = found.find((one) => one.name === pair.name);
    if (low < most * 3) found.push(line(pair, { name: "planned", of: pair.name, values: planned.map((v) => v || null), dashed: true }));
    else if (own) own.beside = (bucket) => (planned[bucket] ? ` of ${rate(planned[bucket])}` : "");
  }
  return found;
}

function back(model, pair) {
  return model.pairs.get(`${pair.dst} -> ${pair.src}`);
}

function delays(model, pairs, line, mode) {
  const size = model.time.grid.count;
  const found = [];
  for (const pair of pairs) {
    if (!pair.probe?.mean) continue;
    const other = mode === "round" && model.measure === "one-way" ? back(model, pair) : null;
    if (other && !other.probe?.mean) continue;
    const one = other ? roundTrip(model, pair, other) : {
      values: pair.probe.mean.values(size), lo: band(pair.probe.lo, size), hi: band(pair.probe.hi, size),
    };
    const alone = pair.probe.interval_ns > model.time.grid.step_ns;
    const held = (bucket) => nearestKnown(one.values, bucket, reach(model, pair));
    found.push(line(pair, { ...one, at: held, points: alone, spanGaps: false, ...joined(one, model, pair) }));
    const planned = plannedValues(model, model.plannedOf(pair), "planned_delay_ns");
    const way = other ? plannedValues(model, model.plannedOf(other), "planned_delay_ns") : null;
    const sum = planned.map((value, at) => (value === null || (way && way[at] === null) ? null : value + (way ? way[at] : 0)));
    if (sum.some((value) => value !== null))
      found.push(line(pair, { name: "planned", of: pair.name, values: sum, dashed: true }));
  }
  return found;
}

function reach(model, pair) {
  return Math.max(Math.ceil((2 * pair.probe.interval_ns) / model.time.grid.step_ns), 1);
}

// Lines go on over buckets that simply had no probe.
function joined(one, model, pair) {
  const far = reach(model, pair) + 1;
  const bridge = (values) => {
    if (!values) return undefined;
    const found = [...values];
    let last = -1;
    values.forEach((value, at) => {
      if (value === null) return;
      if (last >= 0 && at - last <= far)
        for (let between = last + 1; between < at; between++) found[between] = undefined;
      last = at;
    });
    return found;
  };
  return { values: bridge(one.values), lo: bridge(one.lo), hi: bridge(one.hi) };
}

function nearestKnown(values, bucket, far) {
  for (let off = 0; off <= far; off++)
    for (const at of [bucket - off, bucket + off])
      if (values[at] !== null && values[at] !== undefined) return values[at];
  return null;
}

// Both ways, each by the probe that is nearest in time.
function roundTrip(model, pair, other) {
  const size = model.time.grid.count;
  const far = Math.max(reach(model, pair), reach(model, other));
  const add = (mine, theirs) => mine.map((value, at) => {
    const way = value === null ? null : nearestKnown(theirs, at, far);
    return way === null ? null : value + way;
  });
  const get = (probe, name) => (probe[name] ?? probe.mean).values(size);
  const values = add(get(pair.probe, "mean"), get(other.probe, "mean"));
  if (!pair.probe.lo && !other.probe.lo) return { values };
  return {
    values,
    lo: add(get(pair.probe, "lo"), get(other.probe, "lo")),
    hi: add(get(pair.probe, "hi"), get(other.probe, "hi")),
  };
}

// Of all packets of the pair; of probes where nothing else is counted. Nothing is said where the run
// or an instance ended before anybody knew which of them were lost.
function losses(model, pairs, line) {
  const size = model.time.grid.count;
  const found = [];
  for (const pair of pairs) {
    const [lost, whole] = pair.drops ? [pair.drops, pair.pkts] : [pair.probe?.lost, pair.probe?.got];
    if (!lost) continue;
    const [missing, got] = [lost.values(size), whole?.values(size) ?? []];
    const open = pair.drops ? [] : (pair.probe.open?.values(size) ?? []);
    const values = missing.map((value, at) => {
      const all = value + (got[at] ?? 0);
      return all && !open[at] ? value / all : null;
    });
    found.push(line(pair, { values, spanGaps: true }));
    const planned = plannedValues(model, model.plannedOf(pair), "planned_loss_ppb").map((ppb) => (ppb === null ? null : ppb / 1e9));
    if (planned.some((value) => value))
      found.push(line(pair, { name: "planned", of: pair.name, values: planned, dashed: true }));
  }
  return found;
}

export function pairsAsRows(model) {
  const { begin_ns, step_ns, count: size } = model.time.grid;
  const flow = ["rate", "lo", "hi", "pkts", "drops"];
  const probe = ["mean", "lo", "hi", "got", "lost", "open"];
  const head = ["src", "dst", "from_ns", "rate_bps", "rate_lo_bps", "rate_hi_bps", "packets", "drops",
    "delay_mean_ns", "delay_lo_ns", "delay_hi_ns", "probes", "probes_lost", "probes_open"];
  const rows = [];
  for (const pair of model.pairs.values()) {
    const columns = [
      ...flow.map((name) => pair[name]?.values(size)), ...probe.map((name) => pair.probe?.[name]?.values(size)),
    ];
    for (let at = 0; at < size; at++)
      rows.push([pair.src, pair.dst, begin_ns + at * step_ns, ...columns.map((values) => values?.[at] ?? null)]);
  }
  return [head, rows];
}

// -- links -------------------------------------------------------------------------------------------

export function mountLinks(root, model, view) {
  const charts = [];
  const redraw = () => charts.forEach((chart) => chart.change());
  const name = (link) => model.network?.links[link] ?? `link ${link}`;
  const items = () => sorted([...model.links.values()].map((link) => {
    const weight = (link.rate?.sum() ?? 0) * (model.time.grid.step_ns / model.time.pace / 8e9);
    return { key: link.link, name: name(link.link), weight, words: bytes(weight) };
  }));
  const choice = new Choice("links", items, redraw);
  const chosen = () => choice.chosen.map((key) => model.links.get(key)).filter(Boolean);
  const size = () => model.time.grid.count;
  const line = (link, more) => ({ name: name(link.link), colour: choice.colour(link.link), ...more });
  const of = (channel) => () => chosen().filter((link) => link[channel]).map((link) =>
    line(link, { values: link[channel].values(size()) }));
  const rates = () => chosen().filter((link) => link.rate).map((link) =>
    line(link, { values: link.rate.values(size()), lo: band(link.lo, size()), hi: band(link.hi, size()) }));
  charts.push(
    new Chart("Throughput", model, view, rates, rate, { least: 1000 }),
    new Chart("Load, of the planned rate", model, view, () => loads(model, chosen(), line), percent, { least: 0.01 }),
    new Chart("Queue", model, view, of("queue"), bytes, { least: 1000, steps: true, height: 120 }),
    new Chart("Dropped packets", model, view, of("drops"), count, { least: 1, steps: true, height: 120 }),
  );
  const part = section("links", "Links", choice.node, csvButton("links", () => linksAsRows(model)));
  const absent = el("p", { class: "quiet" }, "No process of this run saw a whole link: there are counters of pairs only.");
  part.append(absent, ...charts.map((chart) => chart.node));
  root.append(part);
  model.on(["links", "time", "network", "events"], () => {
    const none = model.links.size === 0;
    absent.hidden = !none;
    charts.forEach((chart) => (chart.node.hidden = none));
    choice.node.hidden = none;
    choice.update();
    redraw();
  });
  return { choice, redraw: () => { choice.draw(); redraw(); } };
}

// The load of each bucket beside the rate that the plan leaves in its middle.
function loads(model, links, line) {
  if (!model.network?.epochs.length) return [];
  const { begin_ns, step_ns, count: size } = model.time.grid;
  const at = new NetworkAt(model.network);
  const rates = links.map(() => new Array(size).fill(0));
  for (let bucket = 0; bucket < size; bucket++) {
    at.go(begin_ns + (bucket + 0.5) * step_ns);
    links.forEach((link, number) => (rates[number][bucket] = at.links[link.link]?.rate_bps ?? 0));
  }
  return links.map((link, number) => {
    const flow = link.rate?.values(size) ?? [];
    return line(link, { values: rates[number].map((limit, bucket) => (limit ? (flow[bucket] ?? 0) / limit : null)) });
  });
}

export function linksAsRows(model) {
  const { begin_ns, step_ns, count: size } = model.time.grid;
  const channels = ["rate", "lo", "hi", "queue", "drops"];
  const head = ["link", "from_ns", "rate_bps", "rate_lo_bps", "rate_hi_bps", "queue_bytes", "drops"];
  const rows = [];
  for (const link of model.links.values()) {
    const columns = channels.map((name) => link[name]?.values(size));
    const name = model.network?.links[link.link] ?? link.link;
    for (let at = 0; at < size; at++)
      rows.push([name, begin_ns + at * step_ns, ...columns.map((values) => values?.[at] ?? null)]);
  }
  return [head, rows];
}

