// How often branches of the run fail that are the same until a moment and drawn anew from then on
// (`tstorm why`), below the timeline: one mark for each moment that was looked at, with the interval
// that holds its probability, and a step at the moment that decided.
import { Canvas, colours, el } from "./dom.js";
import { follow, timeAxis } from "./clock.js";

const NAME = "fails";

export function mountDecision(root, model, view) {
  let canvas = null;
  model.on(["decision"], () => {
    if (!model.decision || canvas) return;
    canvas = new Canvas("how often branches fail, by the moment from which they are drawn anew", (context, width, height) => {
      const [left, wide] = timeAxis(width);
      drawDecision(context, model.decision, left, wide, height, (ns) => left + ((ns - view.from) / view.width) * wide);
    });
    canvas.node.className = "decision";
    const box = el("div", {}, canvas.node);
    if (model.decision.stopped) box.prepend(el("p", {}, "Incomplete: tstorm why was interrupted before it had seen all of its branches."));
    root.append(box);
    follow(box, view);
    view.on("range", () => canvas.ask());
    canvas.ask();
  });
  return { ask: () => canvas?.ask() };
}

function drawDecision(context, { course, jumps }, left, wide, height, x) {
  const { quiet, grid, accent, bad } = colours();
  const y = (share) => 4 + (1 - share) * (height - 8);
  context.textBaseline = "middle";
  context.fillStyle = quiet;
  context.fillText(NAME, 2, height / 2);
  context.fillStyle = grid;
  for (const share of [0, 1]) context.fillRect(left, y(share), wide, 1);
  context.save();
  context.beginPath();
  context.rect(left, 0, wide, height);
  context.clip();
  for (const { before, after_ns } of jumps) {
    context.fillStyle = bad;
    context.globalAlpha = 0.25;
    context.fillRect(x(before.at_ns), 0, Math.max(x(after_ns) - x(before.at_ns), 2), height);
  }
  context.globalAlpha = 1;
  context.strokeStyle = accent;
  context.lineWidth = 1.5;
  context.beginPath();
  const whole = course.filter((one) => one.whole);
  whole.forEach(({ at_ns, share }, at) => context[at ? "lineTo" : "moveTo"](x(at_ns), y(share)));
  context.stroke();
  context.lineWidth = 1;
  for (const { at_ns, interval } of whole) {
    context.beginPath();
    context.moveTo(x(at_ns), y(interval[0]));
    context.lineTo(x(at_ns), y(interval[1]));
    context.stroke();
  }
  context.restore();
}
