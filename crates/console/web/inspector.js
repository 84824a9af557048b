/** Shows the value at the selected address as a number of each type, and lets users write, freeze and watch it. */

import { button, choice, codeInput, field, lineForm } from "./controls.js";
import { el, fill, setText } from "./dom.js";
import { hex } from "./hexgrid.js";
import { expressionOf } from "./symbols.js";

/** @import { SymbolInfo } from "./symbols.js" */

const TYPES = /** @type {const} */ (["u8", "i8", "u16", "i16", "u32", "i32"]);
/** @typedef {(typeof TYPES)[number]} Type */

/**
 * @typedef {object} MemoryAccess
 * @property {(address: number, count: number) => readonly (number | undefined)[]} bytes
 *   Returns the bytes that start at an address; `undefined` for each byte that is unknown.
 * @property {(address: number) => SymbolInfo | undefined} symbol
 * @property {() => string} domain The memory domain of the addresses; empty for the bus.
 * @property {(address: number, value: number, type: Type) => Promise<void>} write
 * @property {(address: number, value: number, type: Type) => Promise<void>} freeze
 * @property {(expression: string) => void} watch
 */

/** @type {(memory: MemoryAccess) => { element: HTMLElement; show(address: number): void }} */
export function inspector(memory) {
  let shown = 0;
  /** @type {string | undefined} */
  let named;
  const title = el("h2", {});
  const values = new Map(TYPES.map((type) => [type, el("dd", {}, "–")]));
  const rows = [...values].map(([type, value]) => el("div", {}, el("dt", {}, type), value));
  const type = choice(TYPES.map((name) => [name, name]));
  const selectedType = () => /** @type {Type} */ (type.value);
  const input = codeInput({ class: "value", placeholder: "new value" });
  const form = lineForm(
    () => {
      const value = newValue();
      if (value !== undefined) void memory.write(shown, value, selectedType());
    },
    field("Type", type, true),
    field("New value, decimal or 0x hex", input, true),
    el("button", { type: "submit" }, "Write"),
    button({ label: "Freeze", hint: "Write the value now, and after each frame" }, async () => {
      const value = newValue();
      if (value !== undefined) await memory.freeze(shown, value, selectedType());
    }),
    button({ icon: "plus", label: "Watch" }, () => memory.watch(expression(memory, shown, selectedType()))),
  );
  /** The value that the user entered, if it is valid for the selected type. */
  const newValue = () => {
    const value = Number(input.value.trim());
    input.setCustomValidity(problemOf(input.value, value, selectedType()));
    return form.reportValidity() ? value : undefined;
  };
  // While a problem is set, the browser sends no `submit` event, so `newValue` would not check the value again. So the
  // problem is removed when the value changes, and when the type changes: the value can be valid for the new type.
  const forgetProblem = () => input.setCustomValidity("");
  input.addEventListener("input", forgetProblem);
  type.addEventListener("change", forgetProblem);
  const element = el("div", { class: "inspector" }, title, el("dl", { class: "values" }, ...rows), form);
  /** @param {number} address */
  const show = (address) => {
    const symbol = memory.symbol(address);
    if (address !== shown || symbol?.name !== named || title.childElementCount === 0) {
      if (symbol?.type) type.value = symbol.type;
      forgetProblem();
      const offset = symbol && address > symbol.address ? `+${address - symbol.address}` : "";
      fill(title, el("code", {}, hex(address, 8)), symbol && el("span", {}, symbol.name + offset));
    }
    shown = address;
    named = symbol?.name;
    for (const [name, place] of values) setText(place, numberOf(name, memory.bytes(address, bytesOf(name))));
  };
  return { element, show };
}

/** @type {(type: Type) => number} */
function bytesOf(type) {
  return Number(type.slice(1)) / 8;
}

/**
 * Reads a number from little-endian bytes.
 * @type {(type: Type, bytes: readonly (number | undefined)[]) => string}
 */
function numberOf(type, bytes) {
  let value = 0;
  for (const [index, byte] of bytes.entries()) {
    if (byte === undefined) return "–";
    value += byte * 2 ** (8 * index);
  }
  const span = 2 ** (8 * bytes.length);
  if (type.startsWith("i") && value >= span / 2) value -= span;
  return String(value);
}

/** @type {(text: string, value: number, type: Type) => string} */
function problemOf(text, value, type) {
  const span = 2 ** (8 * bytesOf(type));
  const least = type.startsWith("i") ? -span / 2 : 0;
  const most = least + span - 1;
  const good = text.trim() !== "" && Number.isInteger(value) && value >= least && value <= most;
  return good ? "" : `Use a whole number from ${least} to ${most}, decimal or 0x hex.`;
}

/**
 * The expression for the value at an address. It is usually a symbol's name if the symbol begins there and is a single
 * value of this type. Otherwise, it contains the type and the address, such as `u16[0x02000044]`.
 * @type {(memory: MemoryAccess, address: number, type: Type) => string}
 */
function expression(memory, address, type) {
  const symbol = memory.symbol(address);
  if (symbol?.type === type && symbol.count === 1 && symbol.address === address) return expressionOf(symbol);
  const domain = memory.domain();
  return `${type}[${domain === "" ? "" : `${domain}:`}0x${hex(address, domain === "" ? 8 : 4)}]`;
}
