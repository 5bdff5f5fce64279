// A run that goes on: what is known of it comes as a stream, and what is done to it goes back.
// `tstorm ui` serves this page without data and with `api`, where they are; report.html has none.
import { button, el } from "./dom.js";
import { moment } from "./format.js";

const AGAIN_MS = 1000; // after a connection is lost
const KEY = "tstorm-token";

// The secret of the link is in its fragment, which no browser sends, and stays in this tab.
function secretOfLink() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return given || sessionStorage.getItem(KEY) || "";
}

async function askRun(api, path, body) {
  const headers = { Authorization: `Bearer ${secretOfLink()}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  return fetch(`${api}/${path}`, { method, headers, body: body && JSON.stringify(body), cache: "no-store" });
}

// Calls back with each event of the stream: its name and what it has. Server-sent events, as in the HTML
// standard; not its EventSource, which sends no headers.
async function readStream(answer, told) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const looked = Math.max(rest.length - 1, 0);
    rest += value;
    for (let end = rest.indexOf("\n\n", looked); end >= 0; end = rest.indexOf("\n\n")) {
      const lines = rest.slice(0, end).split("\n");
      const of = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      rest = rest.slice(end + 2);
      if (of("data")) told(of("event"), JSON.parse(of("data")));
    }
  }
}

export async function goLive(api, model, view, steering, look) {
  const take = (name, update) => {
    model.apply(update);
    if (name === "end") {
      steering.over();
      view.unpin();
      look();
    } else if (!view.pinned && !view.pointed) view.move(model.known_ns);
    return name === "end";
  };
  for (let over = false; !over; ) {
    try {
      const answer = await askRun(api, "stream");
      if (answer.status === 401) {
        steering.say("This page is opened by the link that tstorm ui has printed: it has a secret.", "bad");
        return;
      }
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      steering.say("");
      await readStream(answer, (name, update) => (over = take(name, update) || over));
    } catch (error) {
      if (!(error instanceof TypeError) && !String(error).includes("status")) console.error(error);
    }
    if (over) return;
    steering.say("The connection is lost, and tried again: the run goes on without this page.", "warn");
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

// A line for statements, and what else can be done to a run.
export function mountSteering(root, model) {
  const line = el("input", { type: "text", placeholder: "client--s1 set latency=100ms", spellcheck: false, autocomplete: "off" });
  line.setAttribute("aria-label", "a statement of the experiment's language");
  const words = el("pre", { class: "answer", hidden: true });
  const note = el("p", { class: "note", hidden: true });
  const say = (text, kind = "") => {
    note.textContent = text;
    note.className = `note ${kind}`;
    note.hidden = !text;
    place();
  };
  const act = async (path, body, done = () => {}) => {
    controls.disabled = true;
    let answer;
    try {
      const got = await askRun(model.live.api, path, body);
      answer = await got.json();
    } catch {
      answer = { error: "no answer: tstorm ui has ended, or is out of reach" };
    }
    controls.disabled = false;
    words.textContent = answer.text ?? answer.error ?? "";
    words.className = `answer ${"ok" in answer ? "" : "bad"}`;
    words.hidden = false;
    if ("ok" in answer) done();
  };
  const submit = (event) => {
    event.preventDefault();
    if (line.value.trim()) act("do", { text: line.value }, () => (line.value = ""));
  };
  const quick = el("span", { class: "quick" });
  const standstill = button("hold time", "no program and no packet goes on until go", () => act("hold-time", {}));
  const controls = el("fieldset", {}, line, el("button", { type: "submit" }, "do"),
    button("hold", "what is planned waits", () => act("hold", {})), standstill,
    button("go", "what is held goes on", () => act("go", {})),
    button("skip to next", "the next planned event happens now", () => act("skip", { to: "next" })), quick);
  const form = el("form", { onsubmit: submit }, controls);
  const next = el("p", { class: "quiet next" });
  const part = el("section", { id: "steering" }, note, form, words, next);
  const place = () => {
    if (note.hidden && !model.live) part.remove();
    else if (!part.isConnected) root.prepend(part);
  };
  model.on(["live"], () => {
    const { live } = model;
    place();
    form.hidden = !live;
    standstill.hidden = !live?.virtual;
  });
  model.on(["time", "coming", "live"], () => {
    const coming = model.coming.filter(([at]) => at > model.known_ns).slice(0, 3);
    const still = Number.isInteger(model.live?.time_held_ns) ? `time is held at ${moment(model.live.time_held_ns, 1e10)}` : "";
    const held = model.live?.held ? "held: what is planned waits" : "";
    const planned = coming.map(([at, kind, target]) => `${moment(at, 1e10)} ${kind} ${target}`.trim()).join(" · ");
    next.textContent = model.live ? [still, held, planned && `next: ${planned}`].filter(Boolean).join(" · ") : "";
  });
  // What one has clicked at in the network can be done something to.
  const about = (network, { node, link }) => {
    if (!model.live) return;
    const name = node !== undefined ? network.nodes[node] : network.links[link].replace("->", "--");
    const bridge = node !== undefined && network.services[node] < 0;
    const verbs = node === undefined || bridge ? ["leave", "join"] : ["disconnect", "reconnect", "crash", "join"];
    quick.replaceChildren(el("b", {}, name), ...verbs.map((verb) =>
      button(verb, `${name} ${verb}`, () => act("do", { text: `${name} ${verb}` }))));
    if (!line.value) line.value = node === undefined ? `${name} set latency=` : "";
  };
  return { say, about, over: () => say("") };
}
