// Where nodes that move are drawn at a time: seen from above, or from where the reader has turned them to. Nodes
// that do not move themselves stand beside the one that they are linked to.
import { after } from "./model.js";

const HANGS = 26; // pixels, roughly: how far from its node what is linked to it stands
const FLAT = { yaw: 0, pitch: 0, zoom: 1 };
const TURN = 0.008; // radians a pixel

// Gives {nodes: [{x, y, index, bridge}], frame, go(at), turn(x, y), zoom(by)}, or null where nothing moves.
export function placesInMotion(network) {
  const { positions } = network;
  if (!positions) return null;
  const view = { ...FLAT };
  const nodes = network.nodes.map((name, index) => ({ index, bridge: network.services[index] < 0, x: 0, y: 0 }));
  const every = positions.places.flat().filter((place) => place !== null);
  const solid = every.some((place) => place[2] !== every[0][2]);
  const radius = Math.max(1, ...every.map((place) => Math.hypot(...place)));
  const middle = solid ? [0, 0, 0] : centre(every);
  const size = solid ? radius : Math.max(1, ...every.map((place) => Math.hypot(place[0] - middle[0], place[1] - middle[1])));
  const scale = 300 / size;
  const beside = standBeside(network);
  const found = { nodes, solid, moves: new Set(positions.nodes), frame: [] };
  found.go = (at) => {
    const places = at === null ? positions.places[0] : between(positions, at);
    positions.nodes.forEach((node, number) => Object.assign(nodes[node], flat(places[number] ?? middle)));
    for (const [node, [host, angle]] of beside) {
      nodes[node].x = nodes[host].x + HANGS * Math.cos(angle);
      nodes[node].y = nodes[host].y + HANGS * Math.sin(angle);
    }
    const reach = (300 + HANGS) / view.zoom;
    found.frame = [{ x: -reach, y: -reach }, { x: reach, y: reach }];
  };
  found.turn = (x, y) => {
    if (!solid) return;
    view.yaw += x * TURN;
    view.pitch = Math.min(Math.max(view.pitch + y * TURN, -Math.PI), Math.PI);
  };
  found.zoom = (by) => {
    view.zoom = Math.min(Math.max(view.zoom * by, 0.5), 20);
  };
  // Orthographic: turned about the vertical axis of the picture, then tilted; north is up.
  const flat = (place) => {
    const [x, y, z] = place.map((axis, number) => (axis - middle[number]) * scale);
    const across = x * Math.cos(view.yaw) + z * Math.sin(view.yaw);
    const deep = z * Math.cos(view.yaw) - x * Math.sin(view.yaw);
    return { x: across, y: -(y * Math.cos(view.pitch) + deep * Math.sin(view.pitch)) };
  };
  found.go(null);
  return found;
}

function centre(places) {
  return [0, 1, 2].map((axis) => {
    const all = places.map((place) => place[axis]);
    return (all.reduce((a, b) => Math.min(a, b)) + all.reduce((a, b) => Math.max(a, b))) / 2;
  });
}

// The places at a time; between two times on the way from one to the other.
function between({ times, places }, at) {
  const step = Math.max(after(times, at, (one) => one) - 1, 0);
  const next = Math.min(step + 1, times.length - 1);
  const part = next === step ? 0 : Math.min(Math.max((at - times[step]) / (times[next] - times[step]), 0), 1);
  return places[step].map((place, node) => {
    const there = places[next][node];
    return place && there ? place.map((axis, number) => axis + (there[number] - axis) * part) : place;
  });
}

// Of nodes that do not move: the node that each hangs on, and in which direction it stands from that.
function standBeside({ nodes, ends, positions }) {
  const placed = new Set(positions.nodes);
  const found = new Map();
  const count = new Map();
  for (let round = 0; round < nodes.length && placed.size < nodes.length; round++) {
    const before = placed.size;
    for (const [src, dst] of ends) {
      if (placed.has(src) || !placed.has(dst)) continue;
      const number = count.get(dst) ?? 0;
      count.set(dst, number + 1);
      found.set(src, [dst, 0.8 + number * 1.1]);
      placed.add(src);
    }
    if (placed.size === before) break;
  }
  nodes.forEach((name, node) => {
    if (!placed.has(node)) found.set(node, [positions.nodes[0], node]);
  });
  return found;
}

// A drag turns the picture, the wheel makes it larger.
export function turnable(canvas, state) {
  canvas.node.addEventListener("pointermove", (event) => {
    if (event.buttons !== 1 || !state.places?.turn) return;
    state.places.turn(event.movementX, event.movementY);
    canvas.ask();
  });
  canvas.node.addEventListener("wheel", (event) => {
    if (!state.places?.zoom) return;
    event.preventDefault();
    state.places.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
    canvas.ask();
  }, { passive: false });
}
