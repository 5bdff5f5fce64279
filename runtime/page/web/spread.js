// How delays are distributed (all probes of the run), beside what was planned for them; and what was
// planned and measured of each pair and epoch, in a table.
import { timeAxis } from "./clock.js";
import { colours, el, section, whenPrinted } from "./dom.js";
import { Table } from "./table.js";
import { moment, percent, rate, span } from "./format.js";
import { csvButton } from "./csv.js";

export function mountSpread(root, model, choice, view) {
  const box = el("div", { class: "plot" });
  const part = section("spread", "Distribution of delays", el("span", { class: "quiet" },
    "one-way, of all probes of the chosen pairs; dashed: as planned while they were sent"),
    csvButton("distribution", () => spreadAsRows(model)));
  part.append(box);
  root.append(part);
  let plot = null;
  let seen = false;
  const draw = () => {
    const lines = chosenSpreads(model, choice);
    part.hidden = ![...model.pairs.values()].some((pair) => pair.probe?.cdf);
    if (!seen || part.hidden) return;
    plot?.destroy();
    box.replaceChildren();
    if (lines.length) plot = spreadPlot(box, lines);
    else box.append(el("p", { class: "quiet" }, "None of the chosen pairs was probed."));
  };
  new IntersectionObserver((entries) => {
    seen = entries[entries.length - 1].isIntersecting;
    if (seen && !plot) draw();
  }, { rootMargin: "200px" }).observe(part);
  whenPrinted(() => {
    seen = true;
    draw();
  });
  new ResizeObserver(() => plot?.setSize({ width: box.clientWidth, height: 220 })).observe(box);
  model.on(["pairs", "planned"], draw);
  mountPlanned(root, model, view);
  return draw;
}

// Steps of [delay, share] of the chosen pairs, measured and planned.
function chosenSpreads(model, choice) {
  const found = [];
  for (const key of choice.chosen) {
    const pair = model.pairs.get(key);
    const cdf = pair?.probe?.cdf;
    if (!cdf?.length) continue;
    const colour = choice.colour(key);
    found.push({ colour, points: cdf.map((ns, at) => [ns / 1e6, model.permille[at] / 1000]) });
    const weights = model.plannedOf(pair).filter((row) => row.planned_delay_ns !== null && row.probes)
      .map((row) => [row.planned_delay_ns / 1e6, row.probes - (row.lost ?? 0)]).sort((a, b) => a[0] - b[0]);
    const whole = weights.reduce((sum, [, count]) => sum + count, 0);
    let before = 0;
    const points = whole ? [[weights[0][0], 0]] : [];
    for (const [ms, count] of weights) {
      points.push([ms, before / whole]);
      before += count;
      points.push([ms, before / whole]);
    }
    if (points.length) found.push({ colour, points, dashed: true });
  }
  return found;
}

function spreadPlot(box, lines) {
  const stroke = () => colours().quiet;
  const grid = { stroke: () => colours().grid, width: 1 };
  const data = [null, ...lines.map(({ points }) => [points.map(([x]) => x), points.map(([, y]) => y)])];
  const high = Math.max(...lines.map(({ points }) => points[Math.floor((points.length - 1) * (points.length > 100 ? 0.98 : 1))][0]));
  return new uPlot({
    mode: 2, width: Math.max(box.clientWidth, 150), height: 220,
    legend: { show: false }, cursor: { show: false },
    scales: { x: { time: false, auto: false, range: () => [0, high * 1.1 || 1] }, y: { range: () => [0, 1] } },
    axes: [
      { stroke, grid, ticks: { show: false }, size: 26, space: 70, values: (_, ticks) => ticks.map((ms) => span(ms * 1e6)) },
      { stroke, grid, ticks: { show: false }, size: (plot) => timeAxis(plot.width)[0], values: (_, ticks) => ticks.map((share) => percent(share)) },
    ],
    series: [null, ...lines.map(({ colour, dashed }) => ({
      stroke: colour, width: 1.6, dash: dashed ? [6, 4] : undefined, facets: [{ scale: "x", auto: true }, { scale: "y", auto: true }],
      paths: spreadPath,
    }))],
  }, data, box);
}

// uPlot has no lines of its own for charts whose lines have an x each.
function spreadPath(plot, index) {
  const [xs, ys] = plot.data[index];
  const stroke = new Path2D();
  xs.forEach((x, at) => {
    const place = [plot.valToPos(x, "x", true), plot.valToPos(ys[at], "y", true)];
    if (at) stroke.lineTo(...place);
    else stroke.moveTo(...place);
  });
  return { stroke, fill: null, clip: null, band: null, gaps: null, flags: 2 };
}

function spreadAsRows(model) {
  const rows = [];
  for (const pair of model.pairs.values())
    (pair.probe?.cdf ?? []).forEach((ns, at) => rows.push([pair.src, pair.dst, model.permille[at] / 10, ns]));
  return [["src", "dst", "percentile", "delay_ns"], rows];
}

function mountPlanned(root, model, view) {
  const names = () => [...model.pairs.keys()];
  const ns = (name) => ({ get: (row) => row[name], show: (row) => span(row[name]), number: true });
  const share = (row) => (row.probes ? row.lost / row.probes : null);
  const table = new Table("planned", [
    { title: "pair", get: (row) => row.name },
    { title: "from", get: (row) => row.from_ns, show: (row) => moment(row.from_ns), number: true },
    { title: "to", get: (row) => row.to_ns, show: (row) => moment(row.to_ns), number: true },
    { title: "planned delay", ...ns("planned_delay_ns"), show: (row) => (row.planned_delay_ns === null ? "no path" : span(row.planned_delay_ns)) },
    { title: "p50", ...ns("delay_p50_ns") },
    { title: "p99", ...ns("delay_p99_ns") },
    { title: "planned jitter", ...ns("planned_jitter_ns") },
    { title: "deviation", ...ns("deviation_ns") },
    { title: "planned loss", get: (row) => row.planned_loss_ppb, show: (row) => percent(row.planned_loss_ppb === null ? null : row.planned_loss_ppb / 1e9), number: true },
    { title: "lost", get: share, show: (row) => percent(share(row)), number: true },
    { title: "planned rate", get: (row) => row.planned_rate_bps, show: (row) => (row.planned_rate_bps ? rate(row.planned_rate_bps) : "–"), number: true },
    { title: "rate", get: (row) => row.rate_bps, show: (row) => rate(row.rate_bps), number: true },
    { title: "probes", get: (row) => row.probes, number: true },
    { title: "open", get: (row) => row.open, show: (row) => row.open || "–", number: true },
  ], { pick: (row) => view.move(row.from_ns, true) });
  const part = section("planned", "Planned and measured", el("span", { class: "quiet" }, "each probed pair, while nothing changed for it"));
  part.append(table.node);
  root.append(part);
  model.on(["planned", "pairs"], () => {
    const { columns, rows } = model.planned;
    part.hidden = rows.length === 0;
    const known = names();
    table.set(rows.map((row) => {
      const one = {};
      columns.forEach((name, at) => (one[name] = row[at]));
      one.name = known[one.pair];
      return one;
    }));
  });
}
