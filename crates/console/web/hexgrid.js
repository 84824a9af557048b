/** A grid of bytes to navigate and edit. It highlights changes. It does not know where the bytes come from. */

import { el, fill, setText } from "./dom.js";

/** How long a change stays highlighted. */
const MARKED_MS = 900;

/**
 * @typedef {object} HexGridEvents
 * @property {(address: number) => void} move The user moved to an address, which may be outside the visible range.
 * @property {(address: number, value: number) => void} edit The user typed a byte.
 */

/**
 * @typedef {object} Cell
 * @property {HTMLElement} hex
 * @property {HTMLElement} text
 * @property {number} value
 * @property {number} changedAt
 */

export class HexGrid {
  /** @readonly @type {HTMLElement} */
  element;
  #events;
  /** @type {HTMLElement} */
  #body;
  /** @type {Cell[]} */
  #cells = [];
  /** @type {HTMLElement[]} */
  #heads = [];
  #across;
  #start = 0;
  #digits = 8;
  #selected = 0;
  /** The bytes that another tool points at. */
  #pointed = { first: 0, end: 0 };
  /**
   * The first digit of the byte that the user is typing.
   * @type {number | undefined}
   */
  #typed;

  /**
   * @param {string} label
   * @param {number} across
   * @param {number} rows
   * @param {HexGridEvents} events
   */
  constructor(label, across, rows, events) {
    this.#events = events;
    this.#across = across;
    this.#body = el("div", { class: "rows" });
    this.element = el("div", { class: "hexgrid", role: "grid", "aria-label": label }, this.#body);
    this.resize(across, rows);
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("mousedown", (event) => {
      /** @type {HTMLElement | null} */
      const cell = /** @type {Element} */ (event.target).closest("[data-index]");
      if (!cell) return;
      event.preventDefault();
      this.select(this.#start + Number(cell.dataset.index), true);
    });
  }

  /** @returns {number} */
  get size() {
    return this.#cells.length;
  }

  /** @returns {number} */
  get across() {
    return this.#across;
  }

  /** @returns {number} */
  get selected() {
    return this.#selected;
  }

  /**
   * Sets the number of columns and rows.
   * @param {number} across
   * @param {number} rows
   */
  resize(across, rows) {
    this.#across = across;
    this.#cells = [];
    this.#heads = [];
    /** @type {HTMLElement[]} */
    const lines = [];
    for (let row = 0; row < rows; row += 1) {
      const head = el("span", { class: "address", role: "rowheader" });
      const hexes = el("span", { class: "bytes", role: "presentation" });
      const texts = el("span", { class: "texts", "aria-hidden": "true" });
      for (let column = 0; column < across; column += 1) {
        const index = row * across + column;
        const hex = el(
          "span",
          { class: "byte", role: "gridcell", tabindex: "-1", "data-index": index },
          "··",
        );
        const text = el("span", {}, " ");
        hexes.append(hex);
        texts.append(text);
        this.#cells.push({ hex, text, value: -1, changedAt: -Infinity });
      }
      this.#heads.push(head);
      lines.push(el("div", { class: "row", role: "row" }, head, hexes, texts));
    }
    const offsets = Array.from({ length: across }, (_, column) =>
      el("span", { class: "byte" }, hex(column, 2)),
    );
    const heads = el(
      "div",
      { class: "row heads", "aria-hidden": "true" },
      el("span", { class: "address" }, " ".repeat(this.#digits)),
      el("span", { class: "bytes" }, ...offsets),
    );
    fill(this.#body, heads, ...lines);
    this.element.style.setProperty("--across", String(across));
    this.show(this.#start);
  }

  /**
   * Sets the number of digits of addresses.
   * @param {number} digits
   */
  setDigits(digits) {
    this.#digits = digits;
    this.resize(this.#across, this.#heads.length);
  }

  /**
   * Moves the grid to `start`. Bytes are unknown until `update`.
   * @param {number} start
   */
  show(start) {
    this.#start = start;
    this.#heads.forEach((head, row) => {
      setText(head, hex(start + row * this.#across, this.#digits));
    });
    for (const cell of this.#cells) {
      cell.value = -1;
      cell.changedAt = -Infinity;
      setText(cell.hex, "··");
      setText(cell.text, " ");
      cell.hex.classList.remove("changed");
    }
    this.#showPointed();
    this.#mark(false);
  }

  /**
   * Sets the bytes and highlights changes for a while.
   * @param {Uint8Array} bytes
   * @param {number} now
   */
  update(bytes, now) {
    this.#cells.forEach((cell, index) => {
      const value = bytes[index];
      if (value === undefined) return;
      if (value !== cell.value) {
        if (cell.value >= 0) cell.changedAt = now;
        cell.value = value;
        if (!(this.#typed !== undefined && this.#start + index === this.#selected))
          setText(cell.hex, hex(value, 2));
        setText(cell.text, value >= 0x20 && value < 0x7f ? String.fromCharCode(value) : "·");
        cell.hex.classList.toggle("zero", value === 0);
      }
      cell.hex.classList.toggle("changed", now - cell.changedAt < MARKED_MS);
    });
  }

  /**
   * The byte at an address, if it is visible and known.
   * @param {number} address
   * @returns {number | undefined}
   */
  byte(address) {
    const value = this.#cells[address - this.#start]?.value;
    return value === undefined || value < 0 ? undefined : value;
  }

  /**
   * Selects a byte.
   * @param {number} address
   */
  select(address, focus = false) {
    this.#stopTyping();
    this.#selected = Math.max(0, Math.min(0xffff_ffff, address));
    this.#events.move(this.#selected);
    this.#mark(focus);
  }

  /**
   * Marks a range of bytes, until the next one.
   * @param {number} address
   * @param {number} length 0 for no bytes.
   */
  point(address, length) {
    this.#pointed = { first: address, end: address + length };
    this.#showPointed();
  }

  #showPointed() {
    const { first, end } = this.#pointed;
    this.#cells.forEach(({ hex }, index) => {
      const address = this.#start + index;
      hex.classList.toggle("pointed", address >= first && address < end);
    });
  }

  /** @param {boolean} focus */
  #mark(focus) {
    const chosen = this.#cells[this.#selected - this.#start] ?? this.#cells[0];
    for (const cell of this.#cells) {
      const is = cell === chosen;
      if (cell.hex.tabIndex === (is ? 0 : -1)) continue;
      cell.hex.tabIndex = is ? 0 : -1;
      cell.hex.setAttribute("aria-selected", String(is));
    }
    if (focus) chosen?.hex.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = this.#across * Math.max(1, this.#heads.length - 1);
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: this.#across,
      ArrowUp: -this.#across,
      PageDown: page,
      PageUp: -page,
      Home: -(this.#selected - this.#start) % this.#across,
      End: this.#across - 1 - ((this.#selected - this.#start) % this.#across),
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      this.select(this.#selected + step, true);
    } else if (event.key === "Escape") {
      this.#stopTyping();
    } else if (/^[0-9a-f]$/i.test(event.key)) {
      event.preventDefault();
      this.#type(Number.parseInt(event.key, 16));
    }
  }

  /** @param {number} digit */
  #type(digit) {
    const cell = this.#cells[this.#selected - this.#start];
    if (!cell) return;
    if (this.#typed === undefined) {
      this.#typed = digit;
      cell.hex.classList.add("typing");
      cell.hex.textContent = `${digit.toString(16)}_`;
      return;
    }
    const value = this.#typed * 16 + digit;
    this.#stopTyping();
    this.#events.edit(this.#selected, value);
    this.select(this.#selected + 1, true);
  }

  #stopTyping() {
    if (this.#typed === undefined) return;
    this.#typed = undefined;
    const cell = this.#cells[this.#selected - this.#start];
    cell?.hex.classList.remove("typing");
    if (cell) setText(cell.hex, cell.value < 0 ? "··" : hex(cell.value, 2));
  }
}

/**
 * A number in hexadecimal with at least `digits` digits.
 * @param {number} value
 * @param {number} digits
 * @returns {string}
 */
export function hex(value, digits) {
  return (value >>> 0).toString(16).padStart(digits, "0");
}
