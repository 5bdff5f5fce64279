// Numbers as people read them: three digits, a unit, never "NaN".

const PREFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return size >= 10 ? String(+value.toFixed(1)) : String(+value.toPrecision(3));
}

export function known(value) {
  return value !== null && value !== undefined && !Number.isNaN(value);
}

export function rate(bps) {
  if (!known(bps)) return "–";
  for (const [size, letter] of PREFIXES)
    if (Math.abs(bps) >= size) return `${digits(bps / size)} ${letter}b/s`;
  return `${digits(bps)} b/s`;
}

export function bytes(count) {
  if (!known(count)) return "–";
  for (const [size, letter] of PREFIXES)
    if (Math.abs(count) >= size) return `${digits(count / size)} ${letter}B`;
  return `${digits(count)} B`;
}

// A length of time.
export function span(ns) {
  if (!known(ns)) return "–";
  const size = Math.abs(ns);
  if (size >= 1e9) return `${digits(ns / 1e9)} s`;
  if (size >= 1e6) return `${digits(ns / 1e6)} ms`;
  if (size >= 1e3) return `${digits(ns / 1e3)} µs`;
  return `${digits(ns)} ns`;
}

export function percent(share) {
  return known(share) ? `${digits(share * 100)} %` : "–";
}

export function count(value) {
  return known(value) ? value.toLocaleString("en-US", { maximumFractionDigits: 2 }) : "–";
}

// A moment of the run, with as many digits as a view of this width tells apart.
export function moment(ns, widthNs = 0) {
  if (!known(ns)) return "–";
  const places = widthNs > 6e11 ? 0 : widthNs > 1e9 ? 3 : 6;
  const sign = ns < 0 ? "−" : "";
  const whole = Math.abs(ns) / 1e9;
  if (whole < 600) return `${sign}${whole.toFixed(places)} s`;
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const seconds = (whole % 60).toFixed(places ? 1 : 0).padStart(places ? 4 : 2, "0");
  const two = (value) => String(value).padStart(2, "0");
  return hours ? `${sign}${hours}:${two(minutes)}:${seconds} h` : `${sign}${minutes}:${seconds} min`;
}

// The same, short, for an axis.
export function tick(seconds, step) {
  if (seconds < 600 && step < 60) return `${+seconds.toFixed(step < 1e-3 ? 6 : 3)} s`;
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  const rest = Math.round(seconds % 60);
  const two = (value) => String(value).padStart(2, "0");
  if (hours) return step < 60 ? `${hours}:${two(minutes)}:${two(rest)}` : `${hours}:${two(minutes)} h`;
  return `${minutes}:${two(rest)}`;
}
