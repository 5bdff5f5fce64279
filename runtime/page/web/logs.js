// Lines of the programs' logs around the cursor. Of most lines only bounds of their time are known:
// they stand where the bounds begin, and those that may be of this very moment are marked.
import { el, section } from "./dom.js";
import { after } from "./model.js";
import { moment } from "./format.js";
import { csvButton } from "./csv.js";

const EVER = Number.MAX_SAFE_INTEGER;
const AROUND = 40; // lines on either side

export function mountLogs(root, model, view) {
  let lines = [];
  let shown = [];
  const from = el("select", { onchange: () => filter() });
  from.setAttribute("aria-label", "whose log");
  const search = el("input", { type: "search", placeholder: "filter lines", oninput: () => filter() });
  search.setAttribute("aria-label", "filter lines of logs");
  const body = el("div", { class: "log", tabIndex: 0 });
  const part = section("logs", "Logs around the cursor", from, search,
    csvButton("logs", () => [["instance", "after_ns", "by_ns", "line"], lines.map((one) => [one.instance, one.from, one.until, one.text])]));
  part.append(body);
  root.append(part);
  const draw = () => drawLines(body, shown, view);
  const filter = () => {
    const words = search.value.toLowerCase();
    shown = lines.filter((one) =>
      (from.value === "" || one.instance === from.value) && (!words || one.text.toLowerCase().includes(words)));
    draw();
  };
  let known = [];
  const offer = (names) => {
    const chosen = from.value;
    from.replaceChildren(el("option", { value: "" }, names.length === 1 ? names[0] : `all ${names.length} logs`),
      ...(names.length > 1 ? names.map((name) => el("option", { value: name }, name)) : []));
    from.value = names.length > 1 && names.includes(chosen) ? chosen : "";
  };
  model.on(["logs"], () => {
    lines = merged(model.logs);
    const names = [...model.logs.keys()];
    if (names.join("\n") !== known.join("\n")) offer(names);
    known = names;
    part.hidden = lines.length === 0;
    filter();
  });
  view.on("cursor", draw);
  return (name) => {
    if (!model.logs.has(name)) return;
    from.value = model.logs.size > 1 ? name : "";
    filter();
    part.scrollIntoView({ block: "nearest" });
  };
}

function merged(logs) {
  const found = [];
  for (const { instance, lines } of logs.values()) {
    let place = -EVER;
    for (const [from, until, text] of lines) {
      place = Math.max(place, from ?? until ?? EVER);
      found.push({ instance, from, until, text, place });
    }
  }
  return found.sort((a, b) => a.place - b.place);
}

function drawLines(body, shown, view) {
  const at = after(shown, view.cursor, (one) => one.place);
  const first = Math.max(at - AROUND, 0);
  const last = Math.min(at + AROUND, shown.length);
  let mark = null;
  const rows = shown.slice(first, last).map((one, number) => {
    const now = (one.from ?? -EVER) <= view.cursor && (one.until ?? EVER) >= view.cursor;
    const known = one.from !== null || one.until !== null;
    const when = one.from !== null ? moment(one.from, view.width) : one.until !== null ? `< ${moment(one.until, view.width)}` : "?";
    const row = el("div", { class: `row${now && known ? " now" : ""}${first + number < at ? "" : " later"}` },
      el("span", { class: "when" }, when), el("span", { class: "who" }, one.instance), el("span", { class: "what" }, one.text));
    if (first + number === at - 1) mark = row;
    return row;
  });
  if (!rows.length) rows.push(el("div", { class: "quiet" }, "no lines"));
  body.replaceChildren(...rows);
  body.scrollTop = mark ? mark.offsetTop - body.clientHeight / 2 : 0;
}
