// What all of the page looks at: the range of time that is shown, and the moment under the cursor.
import { el, whenPrinted } from "./dom.js";

const LEAST_NS = 1e6; // no range is shorter
export const REST = 18; // beside the last moment, for its name

// Where the axis of time is within everything that has one: [left, width]. Names and values stand on
// its left.
export function timeAxis(width) {
  const left = matchMedia("(max-width: 600px)").matches ? 66 : 96;
  return [left, Math.max(width - left - REST, 1)];
}

export class View {
  constructor() {
    this.begin = 0;
    this.end = 1e9;
    this.from = 0;
    this.to = 1e9;
    this.cursor = 0;
    this.pinned = false;
    this.pointed = false; // somebody has the pointer over a chart
    this.listeners = { cursor: [], range: [] };
    this.asked = new Set();
  }

  on(what, listener) {
    this.listeners[what].push(listener);
  }

  // Once a frame at most.
  tell(what) {
    if (!this.asked.size) requestAnimationFrame(() => this.flush());
    this.asked.add(what);
  }

  flush() {
    const asked = this.asked;
    this.asked = new Set();
    for (const what of ["range", "cursor"])
      if (asked.has(what)) for (const listener of this.listeners[what]) listener();
  }

  // The run's own time; whoever looks at all of it goes on doing so.
  bound(begin, end) {
    const whole = this.from <= this.begin && this.to >= this.end;
    this.begin = begin;
    this.end = end;
    if (whole) this.show(begin, end);
  }

  show(from, to) {
    const span = Math.max(Math.min(to - from, this.end - this.begin), LEAST_NS);
    this.from = Math.max(Math.min(from, this.end - span), this.begin);
    this.to = this.from + span;
    this.tell("range");
    this.tell("cursor");
  }

  reset() {
    this.show(this.begin, this.end);
  }

  // By a factor, around the cursor if it is in sight.
  zoom(factor) {
    const seen = this.cursor >= this.from && this.cursor <= this.to;
    const around = seen ? this.cursor : (this.from + this.to) / 2;
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  move(ns, pinned = this.pinned) {
    this.cursor = Math.max(Math.min(ns, this.end), this.begin);
    this.pinned = pinned;
    const span = this.to - this.from;
    if (pinned && this.cursor < this.from) this.show(this.cursor - span / 10, this.cursor + span * 0.9);
    if (pinned && this.cursor > this.to) this.show(this.cursor - span * 0.9, this.cursor + span / 10);
    this.tell("cursor");
  }

  unpin() {
    this.pinned = false;
    this.tell("cursor");
  }

  get width() {
    return this.to - this.from;
  }
}

// The pointer over anything with a time axis: it moves the cursor, a click pins it, to drag zooms,
// a double click shows everything. A finger moves the cursor. Gives what puts the cursor's line in
// its place.
export function follow(node, view) {
  const inner = () => timeAxis(node.clientWidth);
  const cursor = el("div", { class: "cursor" });
  const choice = el("div", { class: "choice", hidden: true });
  const at = (event) => {
    const [left, width] = inner();
    const x = event.clientX - node.getBoundingClientRect().left - left;
    return view.from + (Math.min(Math.max(x / width, 0), 1)) * view.width;
  };
  const x = (ns) => {
    const [left, width] = inner();
    return left + ((ns - view.from) / view.width) * width;
  };
  let began = null;
  node.classList.add("timed");
  node.append(cursor, choice);
  node.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.pointerType !== "touch") began = { x: event.clientX, ns: at(event) };
    if (event.pointerType === "touch") view.move(at(event));
  });
  node.addEventListener("pointermove", (event) => {
    if (began && Math.abs(event.clientX - began.x) > 4) {
      const ends = [x(began.ns), x(at(event))].sort((a, b) => a - b);
      choice.hidden = false;
      choice.style.left = `${ends[0]}px`;
      choice.style.width = `${ends[1] - ends[0]}px`;
    } else if (!view.pinned || event.pointerType === "touch") view.move(at(event));
  });
  window.addEventListener("pointerup", (event) => {
    if (!began) return;
    const ends = [began.ns, at(event)].sort((a, b) => a - b);
    if (Math.abs(event.clientX - began.x) > 4) view.show(...ends);
    else if (event.target === node || node.contains(event.target)) view.move(at(event), !view.pinned);
    began = null;
    choice.hidden = true;
  });
  node.addEventListener("pointerenter", () => (view.pointed = true));
  node.addEventListener("pointerleave", () => (view.pointed = false));
  node.addEventListener("dblclick", () => view.reset());
  const place = () => {
    const seen = view.cursor >= view.from && view.cursor <= view.to;
    cursor.hidden = !seen;
    cursor.classList.toggle("pinned", view.pinned);
    if (seen) cursor.style.transform = `translateX(${x(view.cursor)}px)`;
  };
  view.on("cursor", place);
  whenPrinted(place);
  return place;
}
