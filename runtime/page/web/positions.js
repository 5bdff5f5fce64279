// Where nodes that move are drawn at a time: seen from above, or from where the reader has turned them to. Nodes
// that do not move themselves stand beside the one that they are linked to, parts of a machine under its one name. A
// station of an air stands where its radio is, which is not drawn.
import { after } from "./model.js";

const HANGS = 26; // pixels, roughly: how far from its node what is linked to it stands
const PARTS = 14; // the same of parts of one machine
const FLAT = { yaw: 0, pitch: 0, zoom: 1 };
const TURN = 0.008; // radians a pixel

// Gives {nodes: [{x, y, index, bridge, hidden}], names, frame, go(at), turn(x, y), zoom(by)}, or null where nothing moves.
export function placesInMotion(network) {
  const { positions } = network;
  if (!positions) return null;
  const view = { ...FLAT };
  const nodes = network.nodes.map((name, index) => ({ index, bridge: network.services[index] < 0, x: 0, y: 0 }));
  const radios = radiosOf(network);
  for (const radio of radios.keys()) nodes[radio].hidden = true;
  const every = positions.places.flat().filter((place) => place !== null);
  const solid = every.some((place) => place[2] !== every[0][2]);
  const radius = Math.max(1, ...every.map((place) => Math.hypot(...place)));
  const middle = solid ? [0, 0, 0] : centre(every);
  const far = solid ? [radius, radius] : [0, 1].map((axis) => Math.max(...every.map((place) => Math.abs(place[axis] - middle[axis]))));
  const scale = 300 / Math.max(...far, 1);
  const beside = standBeside(network, radios);
  const found = { nodes, names: namesInMotion(network, radios), solid, moves: new Set(positions.nodes), frame: [] };
  found.go = (at) => {
    const places = at === null ? positions.places[0] : between(positions, at);
    positions.nodes.forEach((node, number) => Object.assign(nodes[node], flat(places[number] ?? middle)));
    for (const [node, [host, angle, hangs]] of beside) {
      nodes[node].x = nodes[host].x + hangs * Math.cos(angle);
      nodes[node].y = nodes[host].y + hangs * Math.sin(angle);
    }
    const [x, y] = far.map((most) => (most * scale + HANGS) / view.zoom);
    found.frame = [{ x: -x, y: -y }, { x, y }];
  };
  found.turn = (x, y) => {
    if (!solid) return;
    view.yaw += x * TURN;
    view.pitch = Math.min(Math.max(view.pitch + y * TURN, -Math.PI), Math.PI);
  };
  found.zoom = (by) => {
    view.zoom = Math.min(Math.max(view.zoom * by, 0.5), 20);
  };
  // Orthographic: turned about the vertical axis of the picture, then tilted; the second axis is up.
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

// The radios of airs, each with its station: `car.0.wifi` is that of `car.0`.
function radiosOf({ nodes, services }) {
  const stations = new Map(nodes.map((name, node) => [name, node]).filter(([, node]) => services[node] >= 0));
  const found = nodes.map((name, node) => [node, stations.get(name.slice(0, name.lastIndexOf(".")))]);
  return new Map(found.filter(([node, station]) => services[node] < 0 && station !== undefined));
}

// What is written at each node: of a machine its name, at the part that moves. '' is nothing.
function namesInMotion({ nodes, machines, positions }, radios) {
  const moves = new Set(positions.nodes.flatMap((node) => [node, radios.get(node)]));
  const names = nodes.map((name, node) => (radios.has(node) ? "" : name));
  for (const [machine, ...parts] of machines) {
    const there = parts.find((part) => moves.has(part));
    if (there === undefined) continue;
    for (const part of parts) names[part] = part === there ? machine : "";
  }
  return names;
}

// Of nodes that do not move: the node that each hangs on, in which direction it stands from that, and how far away.
function standBeside({ nodes, ends, machines, positions }, radios) {
  const placed = new Set(positions.nodes);
  const found = new Map();
  const count = new Map();
  const machine = new Map(machines.flatMap(([name, ...parts]) => parts.map((part) => [part, name])));
  const away = (one, two) => (machine.has(one) && machine.get(one) === machine.get(two) ? PARTS : HANGS);
  const moving = [...radios].filter(([radio]) => placed.has(radio)).map(([radio, station]) => [station, radio]);
  for (const [other, host] of [...moving, ...radios]) {
    if (!placed.has(other)) found.set(other, [host, 0, 0]);
    placed.add(other);
  }
  for (let round = 0; round < nodes.length && placed.size < nodes.length; round++) {
    const before = placed.size;
    for (const [src, dst] of ends) {
      if (placed.has(src) || !placed.has(dst)) continue;
      const number = count.get(dst) ?? 0;
      count.set(dst, number + 1);
      found.set(src, [dst, 0.8 + number * 1.1, away(src, dst)]);
      placed.add(src);
    }
    if (placed.size === before) break;
  }
  nodes.forEach((name, node) => {
    if (!placed.has(node)) found.set(node, [positions.nodes[0], node, HANGS]);
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
