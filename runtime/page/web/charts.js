// A chart over time, by uPlot: lines, bands from the smallest to the largest value, what was planned
// as dashes, events as marks, outages as shades. The cursor and the range are the page's (clock.js). Made when seen.
import { colours, el, whenPrinted } from "./dom.js";
import { REST, follow, timeAxis } from "./clock.js";
import { tick } from "./format.js";
import { outages } from "./lives.js";
import { eventMoment } from "./model.js";
import { laneColour, laneOf } from "./timeline.js";

const BANDS = 2; // so many lines have bands from the smallest to the largest value
const MOST_MARKS = 300; // of events that are drawn

// `get()` gives lines: {name, colour, values, lo?, hi?, dashed?, quiet?, show?}, values by bucket.
export class Chart {
  constructor(title, model, view, get, format, options = {}) {
    Object.assign(this, { model, view, get, format, options });
    this.legend = el("div", { class: "values" });
    this.inner = el("div");
    this.box = el("div", { class: "plot over-time" }, this.inner);
    this.place = follow(this.box, view);
    this.node = el("div", { class: "chart" },
      el("div", { class: "title" }, el("h3", {}, title), this.legend), this.box);
    this.seen = false;
    this.stale = true;
    whenPrinted(() => {
      this.seen = true;
      this.update();
      this.fit();
    });
    new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      this.update();
    }, { rootMargin: "200px" }).observe(this.node);
    new ResizeObserver(() => this.fit()).observe(this.box);
    view.on("range", () => this.rescale());
    view.on("cursor", () => this.values());
  }

  // Something else is to be shown.
  change() {
    this.stale = true;
    this.update();
  }

  update() {
    if (!this.seen) return;
    if (this.stale) this.make();
    else this.rescale();
  }

  make() {
    this.stale = false;
    this.lines = this.get();
    this.spans = outages(this.model);
    this.plot?.destroy();
    this.inner.replaceChildren();
    const { begin_ns, step_ns, count } = this.model.time.grid;
    const times = Array.from({ length: count }, (_, at) => (begin_ns + (at + 0.5) * step_ns) / 1e9);
    const { data, series, bands } = this.columns(times);
    this.plot = new uPlot(this.settings(series, bands), data, this.inner);
    this.place();
    this.values();
  }

  columns(times) {
    const data = [times];
    const series = [{}];
    const bands = [];
    for (const line of this.lines) {
      data.push(line.values);
      series.push(this.style(line));
      if (!line.lo || !line.hi || this.lines.filter((one) => !one.dashed).length > BANDS) continue;
      data.push(line.hi, line.lo);
      const hidden = { width: 0, points: { show: false }, spanGaps: true };
      series.push(hidden, hidden);
      bands.push({ series: [data.length - 2, data.length - 1], fill: `${line.colour}30` });
    }
    return { data, series, bands };
  }

  style(line) {
    return {
      stroke: line.colour,
      width: line.dashed ? 1.5 : 1.6,
      dash: line.dashed ? [6, 4] : undefined,
      spanGaps: Boolean(line.spanGaps),
      paths: line.dashed || this.options.steps ? uPlot.paths.stepped({ align: line.dashed ? 1 : 0 }) : undefined,
      points: { show: line.points === true, size: 4, fill: line.colour },
    };
  }

  settings(series, bands) {
    const stroke = () => colours().quiet;
    const lines = { stroke: () => colours().grid, width: 1 };
    return {
      width: Math.max(this.box.clientWidth, 150),
      height: this.options.height ?? 150,
      series, bands,
      padding: [8, REST, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, auto: false, range: () => [this.view.from / 1e9, this.view.to / 1e9] },
        y: { range: (_, low, high) => this.bounds(high) },
      },
      axes: [
        { stroke, grid: lines, ticks: { show: false }, size: 24, gap: 4, space: 80,
          values: (_, ticks, __, ___, step) => ticks.map((at) => tick(at, step)) },
        { stroke, grid: lines, ticks: { show: false }, size: (plot) => timeAxis(plot.width)[0], gap: 6, space: 30,
          values: (_, ticks) => ticks.map((value) => this.format(value)) },
      ],
      hooks: { drawAxes: [(plot) => this.shade(plot), (plot) => this.marks(plot)] },
    };
  }

  bounds(high) {
    const least = this.options.least ?? 1;
    const most = this.options.most ?? Infinity;
    return [0, Math.min(Math.max((high ?? 0) * 1.08, least), most)];
  }

  // Outages across the chart; where several are at one time, it is one shade.
  shade(plot) {
    const { ctx: context, bbox } = plot;
    const place = (ns) => plot.valToPos(Math.min(Math.max(ns, this.view.from), this.view.to) / 1e9, "x", true);
    context.save();
    context.globalAlpha = 0.13;
    context.fillStyle = colours().cut;
    let shaded = -Infinity;
    for (const { from, to } of this.spans) {
      const [begin, end] = [Math.max(place(from), shaded), place(to)];
      if (end > begin) context.fillRect(begin, bbox.top, end - begin, bbox.height);
      shaded = Math.max(shaded, end);
    }
    context.restore();
  }

  // Events across the chart; failures of programs and expectations in red, however many there are.
  marks(plot) {
    const { ctx: context, bbox } = plot;
    const inside = (at) => at > this.view.from && at < this.view.to;
    const place = (at) => Math.round(plot.valToPos(at / 1e9, "x", true));
    const many = ["cut", "expectation", "command", "command_end"];
    const hidden = (event) => many.includes(event.kind) || event.asked;
    const events = this.model.events.filter((event) => inside(eventMoment(event)) && !hidden(event));
    const places = new Map(events.map((event) => [place(eventMoment(event)), laneOf(event)]));
    const failures = this.model.result.failures.filter((one) => one.at_ns !== null && inside(one.at_ns));
    const bar = (x, colour, wide) => {
      context.fillStyle = colour;
      context.fillRect(x, bbox.top, wide * devicePixelRatio, bbox.height);
    };
    context.save();
    context.globalAlpha = 0.45;
    if (places.size <= MOST_MARKS) for (const [x, lane] of places) bar(x, laneColour(lane), 1);
    context.globalAlpha = 0.8;
    for (const one of failures) bar(place(one.at_ns), colours().bad, 2);
    context.restore();
  }

  fit() {
    const width = this.box.clientWidth;
    if (this.plot && width && width !== this.plot.width)
      this.plot.setSize({ width, height: this.plot.height });
    this.place();
  }

  rescale() {
    if (!this.plot || !this.seen) return;
    this.plot.setScale("x", { min: this.view.from / 1e9, max: this.view.to / 1e9 });
  }

  values() {
    if (!this.plot || !this.seen) return;
    const bucket = this.model.bucket(this.view.cursor);
    const parts = this.lines.filter((line) => !line.dashed).map((line) => {
      const planned = this.lines.find((other) => other.dashed && other.of === line.name);
      const value = line.at ? line.at(bucket) : line.values[bucket];
      const beside = planned ? ` (planned ${this.format(planned.values[bucket])})` : line.beside?.(bucket) ?? "";
      const swatch = el("i", {});
      swatch.style.background = line.colour;
      return el("span", { class: "value" }, swatch, `${line.name} `, el("b", {}, this.format(value)),
        el("span", { class: "quiet" }, beside));
    });
    this.legend.replaceChildren(...parts);
  }
}

// The values of one column of planned rows, by bucket.
export function plannedValues(model, rows, column) {
  const { begin_ns, step_ns, count } = model.time.grid;
  const found = new Array(count).fill(null);
  for (const row of rows) {
    if (row[column] === null || row[column] === undefined) continue;
    const first = Math.max(Math.ceil((row.from_ns - begin_ns) / step_ns), 0);
    const last = Math.min(Math.ceil((row.to_ns - begin_ns) / step_ns), count);
    for (let at = first; at < last; at++) found[at] = row[column];
  }
  return found;
}
