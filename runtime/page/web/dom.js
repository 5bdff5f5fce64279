// Elements and colours. Text gets into the page as text only: nothing here takes markup.

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

// A section of the page with its heading, and what stands beside the heading.
export function section(id, title, ...beside) {
  const head = el("div", { class: "head" }, el("h2", {}, title), ...beside);
  return el("section", { id }, head);
}

export function button(text, title, action) {
  return el("button", { type: "button", title, onclick: action }, text);
}

let palette = null;

// The colours of the present theme, for what is drawn.
export function colours() {
  if (palette) return palette;
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(`--${name}`).trim();
  palette = {
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => get(`series-${number}`)),
  };
  for (const name of ["text", "quiet", "line", "grid", "panel", "back", "accent", "good", "bad"])
    palette[name] = get(name);
  for (const name of ["warn", "down", "mark", "up", "cut"]) palette[name] = get(name);
  return palette;
}

export function forgetColours() {
  palette = null;
}

// Paper is narrow and light, and shows what nobody has scrolled to: everything is drawn for it.
const printers = [];

export function whenPrinted(draw) {
  printers.push(draw);
}

export function listenToPrinter(repaint) {
  const root = document.documentElement;
  let theme;
  const turn = (printing) => {
    if (printing) theme = root.dataset.theme;
    root.classList.toggle("printing", printing);
    if (printing) root.dataset.theme = "light";
    else if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    repaint();
    printers.forEach((draw) => draw());
  };
  window.addEventListener("beforeprint", () => turn(true));
  window.addEventListener("afterprint", () => turn(false));
}

// A canvas that fills its element; draw(context, width, height) in CSS pixels, when it is seen.
export class Canvas {
  constructor(label, draw) {
    this.node = el("canvas", { role: "img" });
    this.node.setAttribute("aria-label", label);
    this.draw = draw;
    this.asked = false;
    this.seen = false;
    new ResizeObserver(() => this.ask()).observe(this.node);
    new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      if (this.seen) this.ask();
    }).observe(this.node);
    whenPrinted(() => this.paint());
  }

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      if (this.seen) this.paint();
    });
  }

  paint() {
    const box = this.node.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(box.width);
    const height = Math.round(box.height);
    if (!width || !height) return;
    if (this.node.width !== width * ratio || this.node.height !== height * ratio) {
      this.node.width = width * ratio;
      this.node.height = height * ratio;
    }
    const context = this.node.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    this.draw(context, width, height);
  }
}

// What is known of what lies under the pointer, beside it, on the side that has room.
export function fillTip(tip, event, box, lines) {
  tip.replaceChildren(...lines.map((line, at) => el(at ? "div" : "b", {}, line)));
  const place = box.getBoundingClientRect();
  const x = event.clientX - place.left;
  tip.style.left = x > place.width / 2 ? "" : `${x + 14}px`;
  tip.style.right = x > place.width / 2 ? `${place.width - x + 14}px` : "";
  tip.style.top = `${event.clientY - place.top + 10}px`;
}
