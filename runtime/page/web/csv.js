// Everything on the page as CSV (RFC 4180). A text that a spreadsheet would compute gets a quote.
import { el } from "./dom.js";

function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  let text = String(value);
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(head, rows) {
  const lines = [head.map(cell).join(",")];
  for (const row of rows) lines.push(row.map(cell).join(","));
  return lines.join("\r\n") + "\r\n";
}

export function download(name, head, rows) {
  const blob = new Blob([csv(head, rows)], { type: "text/csv;charset=utf-8" });
  const link = el("a", { href: URL.createObjectURL(blob), download: `${name}.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// `get` gives [head, rows] when they are wanted.
export function csvButton(name, get) {
  const action = () => download(name, ...get());
  return el("button", { type: "button", class: "csv", title: `${name}.csv`, onclick: action }, "CSV");
}
