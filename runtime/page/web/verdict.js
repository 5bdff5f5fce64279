// First of all: what failed; then whether to believe the run, how it ended, what was expected of it.
import { el } from "./dom.js";
import { moment } from "./format.js";
import { csvButton } from "./csv.js";

const SIGNS = { running: "▶", failed: "✕", interrupted: "!", valid: "✓", degraded: "!", invalid: "✕", unknown: "?" };
const MOST_FAILURES = 5; // before the verdict; all of them are below
const STATES = {
  passed: ["✓", "passed"],
  failed: ["✕", "failed"],
  not_measured: ["–", "not measured"],
};

export function verdictChip(state) {
  const known = state in SIGNS ? state : "unknown";
  return el("span", { class: `chip ${known}` }, `${SIGNS[known]} ${state.toUpperCase()}`);
}

// The moment of the first failure; null if nothing failed, or nobody knows when.
export function firstFailure({ failures }) {
  const known = failures.map((one) => one.at_ns).filter((at) => at !== null);
  return known.length ? Math.min(...known) : null;
}

function moveButton(view, at_ns) {
  if (at_ns === null || at_ns === undefined) return null;
  return el("button", { type: "button", class: "link", onclick: () => view.move(at_ns, true) }, moment(at_ns, 1e10));
}

function failures({ state, failures: all }, view) {
  const failed = state === "failed";
  if (!failed && state !== "interrupted" && !all.length) return "";
  const shown = all.slice(0, MOST_FAILURES).map((one) =>
    el("div", { class: "failure" },
      el("p", {}, el("span", { class: `sign ${one.counts ? "failed" : "warned"}` }, one.counts ? "✕ " : "! "),
        el("b", {}, one.what), `: ${one.words} `, moveButton(view, one.at_ns),
        one.counts ? null : el("span", { class: "quiet" }, " no expect= says what is right")),
      one.last ? el("div", { class: "lines" }, one.last) : null));
  const more = all.length - MOST_FAILURES;
  return el("div", { class: `failures ${failed ? "failed" : "warned"}` },
    failed || state === "interrupted" ? el("p", { class: "first" }, verdictChip(state)) : null,
    shown, more > 0 ? el("p", {}, `… and ${more} more below`) : null);
}

export function mountVerdict(root, model, view) {
  const draw = () => {
    const { result, verdict, run } = model;
    const [first, ...others] = verdict.lines;
    const words = (first ?? "").replace(/^[A-Z]+: /, "");
    const applied = run.planned ? `${run.applied} of ${run.planned} events applied` : "";
    const done = [applied, run.changed].filter(Boolean).join(" · ");
    root.replaceChildren(
      failures(result, view),
      el("div", { class: `verdict ${verdict.state in SIGNS ? verdict.state : "unknown"}` },
        el("p", { class: "first" }, verdictChip(verdict.state), " ", words),
        others.map((line) => el("p", { class: line.startsWith("  within") ? "quiet" : "" }, line.trim())),
        verdict.limits.map((text) => el("p", {}, `note: ${text}`)),
        el("p", { class: "outcome" }, el("b", {}, run.outcome), ` ${run.message}`,
          el("span", { class: "quiet" }, done ? ` · ${done}` : ""))),
      model.expectations.length ? expectations(model, view) : "",
    );
  };
  model.on(["result", "verdict", "run", "expectations"], draw);
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
  const head = [
    el("span", { class: `sign ${one.state}`, title: words }, sign),
    el("span", { class: "words" }, el("code", {}, one.text), el("span", { class: "quiet" }, one.message), moveButton(view, one.at_ns)),
  ];
  if (!one.log.length) return el("div", { class: "expectation" }, head);
  const lines = one.log.map(([instance, at, text]) =>
    el("div", {}, el("span", { class: "quiet" }, `${instance} ${at === null || at === undefined ? "" : moment(at)} `), text));
  return el("details", { class: "expectation" }, el("summary", {}, head), el("div", { class: "lines" }, lines));
}
