/** A grid of numbers to navigate, select and edit. It highlights changes. Other code supplies the bytes. */

import { el, fill, setAttribute, setText } from "./dom.js";

/** How long a change stays highlighted. */
const MARKED_MS = 900;

/**
 * @typedef {object} HexGridEvents
 * @property {(address: number) => void} move An address was selected. It may be outside the visible range.
 * @property {(address: number, value: number, bytes: number) => void} edit The user typed a number of this many bytes.
 * @property {(rows: number) => void} scroll The user turned the wheel. `rows` is negative for up.
 * @property {() => number} end Called to get the address after the last one that can be selected.
 */

/**
 * A part of memory with a name.
 * @typedef {object} Band
 * @property {string} name
 * @property {number} first
 * @property {number} end The address after its last byte.
 * @property {boolean} odd Alternates from band to band, so that neighbours get different colours.
 */

/** @typedef {{ hex: HTMLElement, value: number, changedAt: number }} Cell */

export class HexGrid {
  /** @readonly @type {HTMLElement} */
  element;
  #events;
  #body = el("div", { class: "rows" });
  /** @type {Cell[]} */
  #cells = [];
  /** @type {HTMLElement[]} */
  #texts = [];
  /** @type {HTMLElement[]} */
  #heads = [];
  /** An empty field above the addresses, as wide as they are. */
  #corner = el("span", { class: "address" });
  /** @type {(number | undefined)[]} */
  #bytes = [];
  #across;
  /** Bytes in a number. */
  #unit = 1;
  #start = 0;
  /** @type {(address: number) => string} */
  #name = (address) => hex(address, 8);
  /** @type {(first: number, end: number) => readonly Band[]} */
  #bands = () => [];
  #selected = 0;
  /** Where the selection began. */
  #anchor = 0;
  /** The bytes that another tool points at. */
  #pointed = { first: 0, end: 0 };
  /** The digits of the number that the user is typing. */
  #typed = "";

  /**
   * @param {string} label
   * @param {number} across Bytes in a row.
   * @param {number} rows
   * @param {HexGridEvents} events
   */
  constructor(label, across, rows, events) {
    this.#events = events;
    this.#across = across;
    this.element = el(
      "div",
      { class: "hexgrid", role: "grid", "aria-label": label, "aria-multiselectable": "true" },
      this.#body,
    );
    this.resize(across, rows);
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.element.addEventListener("copy", (event) => {
      event.clipboardData?.setData("text/plain", this.selectedText());
      event.preventDefault();
    });
    this.element.addEventListener("pointerdown", (event) => {
      const address = this.#under(event);
      if (address === undefined || event.button !== 0) return;
      event.preventDefault();
      this.select(address, true, event.shiftKey);
    });
    this.element.addEventListener("pointermove", (event) => {
      if ((event.buttons & 1) === 0 || event.pointerType === "touch") return;
      const address = this.#under(event);
      if (address !== undefined && address !== this.#selected) this.select(address, true, true);
    });
  }

  /** @returns {number} The number of bytes that it can show. */
  get size() {
    return this.#texts.length;
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
   * The first selected byte, and the one after the last.
   * @returns {{ first: number, end: number }}
   */
  get selection() {
    return {
      first: Math.min(this.#anchor, this.#selected),
      end: Math.max(this.#anchor, this.#selected) + this.#unit,
    };
  }

  /**
   * The selected numbers as they are shown.
   * @returns {string}
   */
  selectedText() {
    const { first, end } = this.selection;
    /** @type {string[]} */
    const numbers = [];
    for (let address = first; address < Math.min(end, this.#start + this.size); address += this.#unit) {
      const value = this.#number(address - this.#start);
      if (value !== undefined) numbers.push(hex(value, this.#unit * 2));
    }
    return numbers.join(" ");
  }

  /**
   * Sets the number of bytes in a row, and the number of rows.
   * @type {(across: number, rows: number) => void}
   */
  resize(across, rows) {
    const focus = this.#hasFocus;
    this.#across = across;
    this.#cells = [];
    this.#texts = [];
    this.#heads = [];
    /** @type {HTMLElement[]} */
    const lines = [];
    for (let row = 0; row < rows; row += 1) {
      const head = el("span", { class: "address", role: "rowheader" });
      const hexes = el("span", { class: "bytes", role: "presentation" });
      const texts = el("span", { class: "texts", "aria-hidden": "true" });
      for (let column = 0; column < across; column += this.#unit) {
        const index = row * across + column;
        const cell = el("span", { class: "byte", role: "gridcell", tabindex: "-1", "data-index": index });
        hexes.append(cell);
        this.#cells.push({ hex: cell, value: -1, changedAt: -Infinity });
      }
      for (let column = 0; column < across; column += 1) {
        const text = el("span", {}, " ");
        texts.append(text);
        this.#texts.push(text);
      }
      this.#heads.push(head);
      lines.push(el("div", { class: "row", role: "row" }, head, hexes, texts));
    }
    const offsets = Array.from({ length: across / this.#unit }, (_, column) =>
      el("span", { class: "byte" }, hex(column * this.#unit, 2)),
    );
    const heads = el(
      "div",
      { class: "row heads", "aria-hidden": "true" },
      this.#corner,
      el("span", { class: "bytes" }, ...offsets),
    );
    fill(this.#body, heads, ...lines);
    this.element.style.setProperty("--across", String(across / this.#unit));
    this.element.style.setProperty("--digits", String(this.#unit * 2));
    this.show(this.#start, focus);
  }

  /**
   * Sets how many bytes a number has: 1, 2 or 4.
   * @param {number} unit
   */
  setUnit(unit) {
    this.#unit = unit;
    this.#selected -= this.#selected % unit;
    this.#anchor = this.#selected;
    this.resize(this.#across, this.#heads.length);
  }

  /**
   * Sets the function that turns an address into text.
   * @param {(address: number) => string} name
   */
  setNames(name) {
    this.#name = name;
    this.#showNames();
  }

  /**
   * Sets the function that lists the named parts of a range, in order.
   * @param {(first: number, end: number) => readonly Band[]} bands
   */
  setBands(bands) {
    this.#bands = bands;
    this.#showBands();
  }

  /**
   * Moves the grid to `start`. The bytes are unknown until `update` is called. If the focus is in the grid, it moves to
   * the selected number, because digits are typed into this number.
   * @param {number} start
   */
  show(start, focus = this.#hasFocus) {
    this.#start = start;
    this.#bytes = [];
    this.#typed = "";
    this.#showNames();
    for (const cell of this.#cells) {
      cell.value = -1;
      cell.changedAt = -Infinity;
      setText(cell.hex, "·".repeat(this.#unit * 2));
      cell.hex.classList.remove("changed", "typing");
    }
    for (const text of this.#texts) setText(text, " ");
    this.#showBands();
    this.#showPointed();
    this.#showSelection(focus);
  }

  /**
   * Sets the bytes and highlights changes for a while. `now` is the current time in milliseconds. There can be more
   * bytes than the grid shows; the method `byte` returns these, too.
   * @type {(bytes: Uint8Array, now: number) => void}
   */
  update(bytes, now) {
    this.#bytes = [...bytes];
    this.#texts.forEach((text, index) => {
      const value = bytes[index];
      if (value !== undefined)
        setText(text, value >= 0x20 && value < 0x7f ? String.fromCharCode(value) : "·");
    });
    this.#cells.forEach((cell, index) => {
      const at = index * this.#unit;
      const value = this.#number(at);
      if (value === undefined) return;
      if (value !== cell.value) {
        if (cell.value >= 0) cell.changedAt = now;
        cell.value = value;
        if (this.#typed === "" || this.#start + at !== this.#selected)
          setText(cell.hex, hex(value, this.#unit * 2));
        cell.hex.classList.toggle("zero", value === 0);
      }
      cell.hex.classList.toggle("changed", now - cell.changedAt < MARKED_MS);
    });
  }

  /**
   * The byte at an address, if it is known.
   * @type {(address: number) => number | undefined}
   */
  byte(address) {
    return this.#bytes[address - this.#start];
  }

  /**
   * Selects a number. With `extend`, selects everything from the start of the selection to it.
   * @param {number} address
   */
  select(address, focus = false, extend = false) {
    this.#stopTyping();
    const inside = Math.max(0, Math.min(this.#events.end() - 1, address));
    this.#selected = inside - (inside % this.#unit);
    if (!extend) this.#anchor = this.#selected;
    this.#events.move(this.#selected);
    this.#showSelection(focus);
  }

  /**
   * Marks a range of bytes. Removes the mark from the range that was marked before.
   * @param {number} address
   * @param {number} length 0 for no bytes.
   */
  point(address, length) {
    this.#pointed = { first: address, end: address + length };
    this.#showPointed();
  }

  /**
   * The number whose first byte has this index; `undefined` if a byte of it is unknown.
   * @type {(index: number) => number | undefined}
   */
  #number(index) {
    let value = 0;
    for (let at = this.#unit - 1; at >= 0; at -= 1) {
      const byte = this.#bytes[index + at];
      if (byte === undefined) return undefined;
      value = value * 256 + byte;
    }
    return value;
  }

  /**
   * The address of the cell at the pointer.
   * @type {(event: Event) => number | undefined}
   */
  #under(event) {
    /** @type {HTMLElement | null} */
    const cell = /** @type {Element} */ (event.target).closest("[data-index]");
    return cell ? this.#start + Number(cell.dataset.index) : undefined;
  }

  get #hasFocus() {
    return this.element.contains(document.activeElement);
  }

  #showNames() {
    this.#heads.forEach((head, row) => {
      setText(head, this.#name(this.#start + row * this.#across));
    });
    setText(this.#corner, " ".repeat(this.#name(this.#start).length));
  }

  #showPointed() {
    const { first, end } = this.#pointed;
    this.#cells.forEach(({ hex: cell }, index) => {
      const address = this.#start + index * this.#unit;
      cell.classList.toggle("pointed", address + this.#unit > first && address < end);
    });
  }

  #showBands() {
    const bands = this.#bands(this.#start, this.#start + this.size);
    this.#cells.forEach(({ hex: cell }, index) => {
      const address = this.#start + index * this.#unit;
      const band = bands.findLast(({ first, end }) => address >= first && address < end);
      cell.classList.toggle("band", band !== undefined);
      cell.classList.toggle("odd", band?.odd === true);
      cell.classList.toggle("first", band?.first === address);
      setAttribute(cell, "title", band?.name);
    });
  }

  /** @param {boolean} focus */
  #showSelection(focus) {
    const { first, end } = this.selection;
    const chosen = this.#cells[(this.#selected - this.#start) / this.#unit] ?? this.#cells[0];
    this.#cells.forEach((cell, index) => {
      const address = this.#start + index * this.#unit;
      const selected = address >= first && address < end;
      cell.hex.tabIndex = cell === chosen ? 0 : -1;
      if (cell.hex.getAttribute("aria-selected") !== String(selected))
        cell.hex.setAttribute("aria-selected", String(selected));
    });
    if (focus) chosen?.hex.focus({ preventScroll: true });
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (event.ctrlKey || event.shiftKey || event.deltaY === 0) return;
    event.preventDefault();
    this.#events.scroll(event.deltaY > 0 ? 3 : -3);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = this.#across * Math.max(1, this.#heads.length - 1);
    // The first address of each row is a multiple of the row's length.
    const column = this.#selected % this.#across;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: this.#unit,
      ArrowLeft: -this.#unit,
      ArrowDown: this.#across,
      ArrowUp: -this.#across,
      PageDown: page,
      PageUp: -page,
      Home: -column,
      End: this.#across - this.#unit - column,
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      this.select(this.#selected + step, true, event.shiftKey);
    } else if (event.key === "Escape") {
      this.#stopTyping();
    } else if (/^[0-9a-f]$/i.test(event.key)) {
      event.preventDefault();
      this.#type(event.key.toLowerCase());
    }
  }

  /** @param {string} digit */
  #type(digit) {
    const cell = this.#cells[(this.#selected - this.#start) / this.#unit];
    if (!cell) return;
    this.#typed += digit;
    const length = this.#unit * 2;
    if (this.#typed.length < length) {
      cell.hex.classList.add("typing");
      cell.hex.textContent = this.#typed.padEnd(length, "_");
      return;
    }
    const value = Number.parseInt(this.#typed, 16);
    this.#stopTyping();
    this.#events.edit(this.#selected, value, this.#unit);
    this.select(this.#selected + this.#unit, true);
  }

  #stopTyping() {
    if (this.#typed === "") return;
    this.#typed = "";
    const cell = this.#cells[(this.#selected - this.#start) / this.#unit];
    cell?.hex.classList.remove("typing");
    if (cell)
      setText(cell.hex, cell.value < 0 ? "·".repeat(this.#unit * 2) : hex(cell.value, this.#unit * 2));
  }
}

/**
 * A number in hexadecimal with at least `digits` digits.
 * @type {(value: number, digits: number) => string}
 */
export function hex(value, digits) {
  return (value >>> 0).toString(16).padStart(digits, "0");
}
