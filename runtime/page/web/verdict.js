// First of all: whether to believe the run, how it ended, what was expected of it.
import { el } from "./dom.js";
import { moment } from "./format.js";
import { csvButton } from "./csv.js";

const SIGNS = { valid: "✓", degraded: "!", invalid: "✕", unknown: "?" };
const STATES = {
  passed: ["✓", "passed"],
  failed: ["✕", "failed"],
  not_measured: ["–", "not measured"],
};

export function verdictChip(state) {
  const known = state in SIGNS ? state : "unknown";
  return el("span", { class: `chip ${known}` }, `${SIGNS[known]} ${state.toUpperCase()}`);
}

export function mountVerdict(root, model, view) {
  const draw = () => {
    const { verdict, run } = model;
    const [first, ...others] = verdict.lines;
    const words = (first ?? "").replace(/^[A-Z]+: /, "");
    const done = run.planned ? `${run.applied} of ${run.planned} events applied` : "";
    root.replaceChildren(
      el("div", { class: `verdict ${verdict.state in SIGNS ? verdict.state : "unknown"}` },
        el("p", { class: "first" }, verdictChip(verdict.state), " ", words),
        others.map((line) => el("p", { class: line.startsWith("  within") ? "quiet" : "" }, line.trim())),
        verdict.limits.map((text) => el("p", {}, `note: ${text}`)),
        el("p", { class: "outcome" }, el("b", {}, run.outcome), ` ${run.message}`,
          el("span", { class: "quiet" }, done ? ` · ${done}` : ""))),
      model.expectations.length ? expectations(model, view) : "",
    );
  };
  model.on(["verdict", "run", "expectations"], draw);
}

function expectations(model, view) {
  const tally = Object.keys(STATES).map((state) => {
    const count = model.expectations.filter((one) => one.state === state).length;
    return count ? el("span", { class: `chip ${state}` }, `${STATES[state][0]} ${count} ${STATES[state][1]}`) : null;
  });
  const give = () => [
    ["state", "text", "message", "subject", "at_ns", "figure", "threshold", "unit", "file", "line"],
    model.expectations.map((one) => [
      one.state, one.text, one.message, one.subject, one.at_ns, one.figure, one.threshold, one.unit, one.file, one.line,
    ]),
  ];
  const order = { failed: 0, not_measured: 1, passed: 2 };
  const sorted = [...model.expectations].sort((a, b) => order[a.state] - order[b.state]);
  return el("div", { class: "expectations", id: "expectations" },
    el("div", { class: "head" }, el("h2", {}, "Expected"), tally, csvButton("expectations", give)),
    el("div", { class: "list" }, sorted.map((one) => expectation(one, view))));
}

function expectation(one, view) {
  const [sign, words] = STATES[one.state];
  const go = one.at_ns !== null && one.at_ns !== undefined
    ? el("button", { type: "button", class: "link", onclick: () => view.move(one.at_ns, true) }, moment(one.at_ns))
    : null;
  const head = [
    el("span", { class: `sign ${one.state}`, title: words }, sign),
    el("span", { class: "words" }, el("code", {}, one.text), el("span", { class: "quiet" }, one.message), go),
  ];
  if (!one.log.length) return el("div", { class: "expectation" }, head);
  const lines = one.log.map(([instance, at, text]) =>
    el("div", {}, el("span", { class: "quiet" }, `${instance} ${at === null || at === undefined ? "" : moment(at)} `), text));
  return el("details", { class: "expectation" }, el("summary", {}, head), el("div", { class: "lines" }, lines));
}
