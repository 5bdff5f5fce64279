// Of nodes that move: who reaches whom at a time, and which links programs have then that ask for them.
import { after, eventMoment } from "./model.js";

export function pairKey(a, b) {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}

// Gives at => the pairs of nodes that reach each other: by the word of their file, the range, the rate and a body
// between them, as compiler/mobility/sight.py has it. Null where the page does not know.
export function whoReaches({ nodes, times, places, reach }) {
  if (!reach) return null;
  let step = -1;
  let seen = new Set();
  const go = (wanted) => {
    if (wanted < step) [step, seen] = [-1, new Set()];
    while (step < wanted) for (const pair of reach.sees[++step]) seen.delete(pair) || seen.add(pair);
  };
  return (at) => {
    const now = Math.max(after(times, at) - 1, 0);
    if (reach.sees) go(now);
    const there = places[now];
    const found = [];
    for (let a = 0; a < there.length; a++)
      for (let b = a + 1; b < there.length; b++)
        if (there[a] && there[b] && (!reach.sees || seen.has(a * there.length + b)) && inReach(there[a], there[b], reach))
          found.push([nodes[a], nodes[b]]);
    return found;
  };
}

function inReach(one, two, { range_m, body_m, bands }) {
  const far = Math.hypot(...one.map((axis, number) => axis - two[number]));
  if (range_m !== null && far > range_m) return false;
  if (bands.length && !bands[after(bands, far, ([from]) => from) - 1]?.[1]) return false;
  return body_m === null || nearestToMiddle(one, two, far) >= body_m;
}

// How near the straight line between them comes to the point 0, 0, 0.
function nearestToMiddle(one, two, far) {
  const along = one.reduce((sum, axis, number) => sum - axis * (two[number] - axis), 0) / (far * far || 1);
  const part = Math.min(Math.max(along, 0), 1);
  return Math.hypot(...one.map((axis, number) => axis + part * (two[number] - axis)));
}

// Gives at => the keys of the pairs that have a link then, by what the run says that it granted; null where no
// program asks for links.
export function whoIsLinked(model) {
  const { nodes, asking } = model.network?.positions ?? {};
  if (!asking) return null;
  const node = new Map(asking.map((name, number) => [name, nodes[number]]));
  const changes = model.events.filter(({ kind }) => kind === "radio").map((event) => {
    const ends = event.target.split("--").map((name) => node.get(name));
    return [eventMoment(event), pairKey(...ends), /\bup=1\b/.test(event.text)];
  });
  return (at) => {
    const found = new Set();
    for (const [when, key, up] of changes) {
      if (when > at) break;
      up ? found.add(key) : found.delete(key);
    }
    return found;
  };
}
