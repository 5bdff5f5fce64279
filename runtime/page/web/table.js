// A table of any length: only the rows in sight are in the page. Sorts, filters, gives CSV.
import { el } from "./dom.js";
import { csvButton } from "./csv.js";

const ROW = 26; // pixels
const SHORT = 12; // rows that are shown without scrolling

// columns: {title, get(row), show(row)?, number?, class(row)?}. `get` is what sorts and is exported.
export class Table {
  constructor(name, columns, options = {}) {
    this.columns = columns;
    this.options = options;
    this.rows = [];
    this.shown = [];
    this.order = null;
    this.filter = el("input", {
      type: "search", placeholder: "filter", oninput: () => this.update(),
    });
    this.filter.setAttribute("aria-label", `filter ${name}`);
    this.tally = el("span", { class: "quiet" });
    const give = () => [columns.map((one) => one.title), this.rows.map((row) => columns.map((one) => one.get(row)))];
    this.bar = el("div", { class: "bar" }, this.filter, this.tally, csvButton(name, give));
    this.body = el("tbody");
    this.before = el("tr", {});
    this.behind = el("tr", {});
    const heads = columns.map((one, at) => this.head(one, at));
    const table = el("table", {}, el("thead", {}, el("tr", {}, heads)), this.body);
    this.scroller = el("div", { class: "scroller", tabIndex: 0, onscroll: () => this.draw() }, table);
    this.node = el("div", { class: "table" }, this.bar, this.scroller);
  }

  head(column, at) {
    const sort = () => {
      const down = this.order?.at === at && !this.order.down;
      this.order = { at, down };
      this.update();
    };
    const name = el("button", { type: "button", class: "sort", onclick: sort }, column.title);
    return el("th", { class: column.number ? "n" : "", scope: "col" }, name);
  }

  set(rows) {
    this.rows = rows;
    this.update();
  }

  update() {
    const wanted = this.filter.value.toLowerCase();
    const text = (row) =>
      this.columns.map((one) => String((one.show ?? one.get)(row) ?? "")).join(" ").toLowerCase();
    this.shown = wanted ? this.rows.filter((row) => text(row).includes(wanted)) : [...this.rows];
    if (this.order) {
      const { get } = this.columns[this.order.at];
      const sign = this.order.down ? -1 : 1;
      this.shown.sort((a, b) => sign * compare(get(a), get(b)));
    }
    const whole = this.rows.length.toLocaleString("en-US");
    const part = this.shown.length.toLocaleString("en-US");
    this.tally.textContent = wanted ? `${part} of ${whole}` : this.rows.length > 1 ? `${whole} rows` : "";
    this.bar.classList.toggle("few", this.rows.length <= 5 && !wanted);
    this.scroller.style.maxHeight = `${ROW * (SHORT + 1.5)}px`;
    this.draw();
  }

  draw() {
    const first = Math.max(Math.floor(this.scroller.scrollTop / ROW) - 5, 0);
    const last = Math.min(first + SHORT + 20, this.shown.length);
    this.before.style.height = `${first * ROW}px`;
    this.behind.style.height = `${(this.shown.length - last) * ROW}px`;
    this.body.replaceChildren(
      this.before, ...this.shown.slice(first, last).map((row) => this.line(row)), this.behind,
    );
  }

  line(row) {
    const cells = this.columns.map((one) => {
      const text = String((one.show ?? one.get)(row) ?? "");
      const kind = `${one.number ? "n " : ""}${one.class ? one.class(row) : ""}`.trim();
      return el("td", { class: kind, title: text.length > 40 ? text : "" }, text);
    });
    const line = el("tr", {}, cells);
    if (this.options.pick) {
      line.className = "pick";
      line.addEventListener("click", () => this.options.pick(row));
    }
    return line;
  }
}

function compare(a, b) {
  const empty = (value) => value === null || value === undefined || value === "";
  if (empty(a) || empty(b)) return empty(a) - empty(b);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}
