/** A grid of bytes that can be walked, edited, and shows what changes. It knows nothing of where bytes come from. */

import { el, fill, setText } from "./dom.ts";

/** How long a change stays marked. */
const MARKED_MS = 900;

export interface HexGridEvents {
  /** The user moved to an address; it may be outside of what is shown. */
  move(address: number): void;
  /** The user typed a byte. */
  edit(address: number, value: number): void;
}

interface Cell {
  hex: HTMLElement;
  text: HTMLElement;
  value: number;
  changedAt: number;
}

export class HexGrid {
  readonly element: HTMLElement;
  readonly #events: HexGridEvents;
  readonly #body: HTMLElement;
  #cells: Cell[] = [];
  #heads: HTMLElement[] = [];
  #across: number;
  #start = 0;
  #selected = 0;
  /** The first digit of a byte that is being typed. */
  #typed: number | undefined;

  constructor(label: string, across: number, rows: number, events: HexGridEvents) {
    this.#events = events;
    this.#across = across;
    this.#body = el("div", { class: "rows" });
    this.element = el("div", { class: "hexgrid", role: "grid", "aria-label": label }, this.#body);
    this.resize(across, rows);
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("mousedown", (event) => {
      const cell = (event.target as Element).closest<HTMLElement>("[data-index]");
      if (!cell) return;
      event.preventDefault();
      this.select(this.#start + Number(cell.dataset.index), true);
    });
  }

  get size(): number {
    return this.#cells.length;
  }

  get across(): number {
    return this.#across;
  }

  get selected(): number {
    return this.#selected;
  }

  /** Makes it so wide and high. */
  resize(across: number, rows: number): void {
    this.#across = across;
    this.#cells = [];
    this.#heads = [];
    const lines: HTMLElement[] = [];
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
      el("span", { class: "address" }, "        "),
      el("span", { class: "bytes" }, ...offsets),
    );
    fill(this.#body, heads, ...lines);
    this.element.style.setProperty("--across", String(across));
    this.show(this.#start);
  }

  /** Shows the bytes from `start` on; what they are comes with [`update`]. */
  show(start: number): void {
    this.#start = start;
    this.#heads.forEach((head, row) => {
      setText(head, hex(start + row * this.#across, 8));
    });
    for (const cell of this.#cells) {
      cell.value = -1;
      cell.changedAt = -Infinity;
      setText(cell.hex, "··");
      setText(cell.text, " ");
      cell.hex.classList.remove("changed");
    }
    this.#mark(false);
  }

  /** The present bytes. Where they differ from those before, that is marked for a while. */
  update(bytes: Uint8Array, now: number): void {
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

  /** The byte at an address, if it is shown and known. */
  byte(address: number): number | undefined {
    const value = this.#cells[address - this.#start]?.value;
    return value === undefined || value < 0 ? undefined : value;
  }

  /** Chooses a byte. */
  select(address: number, focus = false): void {
    this.#stopTyping();
    this.#selected = Math.max(0, Math.min(0xffff_ffff, address));
    this.#events.move(this.#selected);
    this.#mark(focus);
  }

  #mark(focus: boolean): void {
    const chosen = this.#cells[this.#selected - this.#start] ?? this.#cells[0];
    for (const cell of this.#cells) {
      const is = cell === chosen;
      if (cell.hex.tabIndex === (is ? 0 : -1)) continue;
      cell.hex.tabIndex = is ? 0 : -1;
      cell.hex.setAttribute("aria-selected", String(is));
    }
    if (focus) chosen?.hex.focus({ preventScroll: true });
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = this.#across * Math.max(1, this.#heads.length - 1);
    const steps: Record<string, number> = {
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

  #type(digit: number): void {
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

  #stopTyping(): void {
    if (this.#typed === undefined) return;
    this.#typed = undefined;
    const cell = this.#cells[this.#selected - this.#start];
    cell?.hex.classList.remove("typing");
    if (cell) setText(cell.hex, cell.value < 0 ? "··" : hex(cell.value, 2));
  }
}

/** A number in hex with so many digits. */
export function hex(value: number, digits: number): string {
  return (value >>> 0).toString(16).padStart(digits, "0");
}
