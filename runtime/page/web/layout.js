// Where nodes are drawn: a force layout by d3-force, in slices so that the page stays usable. The same
// network gives the same places: d3-force draws no random numbers but its own.

const SLICE_MS = 12;

function ticks(nodes) {
  if (nodes > 2000) return 60;
  return nodes > 400 ? 120 : 300;
}

// Calls `step` after each slice, and `done` at the end. Gives {nodes: [{x, y}]}.
export function layOut(network, step) {
  const nodes = network.nodes.map((name, index) => ({ index, bridge: network.services[index] < 0 }));
  const seen = new Set();
  const links = [];
  for (const [source, target] of network.ends) {
    const key = source < target ? `${source} ${target}` : `${target} ${source}`;
    if (!seen.has(key)) links.push({ source, target });
    seen.add(key);
  }
  const simulation = d3
    .forceSimulation(nodes)
    .stop()
    .force("link", d3.forceLink(links).distance(50).iterations(2))
    .force("charge", d3.forceManyBody().strength((node) => (node.bridge ? -220 : -90)))
    .force("x", d3.forceX().strength(0.04))
    .force("y", d3.forceY().strength(0.06));
  const count = ticks(nodes.length);
  simulation.alphaDecay(1 - Math.pow(0.001, 1 / count));
  let left = count;
  const slice = () => {
    const until = performance.now() + SLICE_MS;
    while (left > 0 && performance.now() < until) {
      simulation.tick();
      left--;
    }
    step(left === 0);
    if (left > 0) setTimeout(slice);
  };
  slice();
  return { nodes };
}
