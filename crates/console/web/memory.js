/** The memory panel: a hex grid over the bus or a domain, updated while it is visible. */

import * as actions from "./actions.js";
import { copyText, isRejection } from "./api.js";
import { attempt } from "./app.js";
import { bankedName, offsetIn, parseBanked } from "./banks.js";
import { button, codeInput, field, lineForm, numberChoice, setOptions } from "./controls.js";
import { el, setText } from "./dom.js";
import { FrozenList } from "./frozen.js";
import { hex, HexGrid } from "./hexgrid.js";
import { inspector } from "./inspector.js";
import { LazyPanel } from "./lazy.js";
import { Polling } from "./polling.js";
import { isGameBoy } from "./status.js";
import { Store } from "./store.js";
import { nameList } from "./symbols.js";
import { toast } from "./toast.js";

/**
 * @import { App } from "./app.js"
 * @import { SelectOption } from "./controls.js"
 * @import { Domain, EmulatorClient } from "./emulation.js"
 * @import { Symbols } from "./symbols.js"
 * @import { Place } from "./tiles.js"
 */

/** The shortest time from the start of a read to the start of the next one. */
const EVERY_MS = 50;
/**
 * The shortest time from one request for the memory domains to the next. A cartridge's save memory becomes a domain when the
 * game first uses it, or when a battery save is loaded.
 */
const DOMAINS_EVERY_MS = 2000;
/** On tall screens, the grid has twice as many rows. */
const TALL = matchMedia("(height >= 75rem)");
/** The address of the Game Boy Advance's work RAM. */
const FIRST = 0x0200_0000;
/** The address of the Game Boy's work RAM. */
const FIRST_GAME_BOY = 0xc000;

export class MemoryPanel {
  /** @readonly @type {HTMLElement} */
  element;
  /** @readonly The selected byte. */
  place = new Store(/** @type {Place | undefined} */ (undefined));
  #app;
  #frozen;
  #searches;
  #emulation;
  #symbols;
  /** @type {HexGrid} */
  #grid;
  #domain = el("select", {});
  #address = codeInput({ class: "address", placeholder: "address or symbol" });
  #unit = numberChoice([1, 2, 4], 1, (bytes) => `${bytes * 8} bits`);
  #bar = el("input", { type: "range", class: "scroll-bar", "aria-label": "Position in memory", min: 0 });
  #note = el("p", { class: "note", role: "status" });
  /** @type {(address: number) => void} */
  #inspect;
  /** @type {readonly Domain[]} */
  #domains = [];
  /** When the domains were requested. */
  #domainsAsked = 0;
  #start = FIRST;
  /** The bus address of the console's work RAM. */
  #first = FIRST;
  /** A place to show as soon as its domain is known. @type {Place | undefined} */
  #wanted;
  #polling = new Polling(() => this.#refresh());

  /**
   * `watch` is called when the user adds an expression to the watches.
   * @param {App} app
   * @param {EmulatorClient} emulation
   * @param {Symbols} symbols
   * @param {(expression: string) => void} watch
   */
  constructor(app, emulation, symbols, watch) {
    this.#app = app;
    this.#frozen = new FrozenList(app);
    this.#emulation = emulation;
    this.#symbols = symbols;
    this.#grid = new HexGrid("Memory", 16, rows(), {
      move: (address) => this.#moved(address),
      edit: (address, value, bytes) => void this.#write(address, value, `u${bytes * 8}`),
      scroll: (rows) => this.#scroll(this.#start + rows * this.#grid.across),
      end: () => this.#end,
    });
    this.#unit.classList.add("columns");
    this.#unit.addEventListener("change", () => this.#grid.setUnit(Number(this.#unit.value)));
    this.#bar.addEventListener("input", () => {
      this.#scroll(this.#area.start + Number(this.#bar.value) * this.#grid.across);
    });
    /** @param {Place} place */
    const reveal = (place) => this.reveal(place);
    const names = nameList(symbols);
    this.#address.setAttribute("list", names.id);
    symbols.all.follow(() => this.#updateNames());
    const inspection = inspector({
      bytes: (address, count) =>
        Array.from({ length: count }, (_, index) => this.#grid.byte(address + index)),
      symbol: (address) => (this.#onBus ? symbols.around(address) : undefined),
      domain: () => this.#domain.value,
      write: (address, value, type) => this.#write(address, value, type),
      freeze: (address, value, type) => this.#freeze(address, value, type),
      watch,
    });
    this.#inspect = inspection.show;
    this.#searches = new LazyPanel(async () => {
      const { finder } = await import("./find.js");
      const { searcher } = await import("./search.js");
      const use = { reveal, watch };
      return { element: el("div", {}, finder(app, use), searcher(app, use)) };
    });
    this.element = el(
      "div",
      { class: "memory" },
      lineForm(
        () => this.#go(),
        field("Memory domain", this.#domain, true),
        field("Address or symbol", this.#address, true),
        names,
        button({ label: "Go" }, () => this.#go()),
        field("Columns", this.#unit, true),
        button({ icon: "up", label: "Page up", compact: true }, () =>
          this.goTo(this.#start - this.#grid.size),
        ),
        button({ icon: "down", label: "Page down", compact: true }, () =>
          this.goTo(this.#start + this.#grid.size),
        ),
        button({ icon: "copy", label: "Copy the selected bytes", compact: true }, () =>
          attempt(() => this.#copy()),
        ),
      ),
      el("div", { class: "scrolled" }, this.#grid.element, this.#bar),
      this.#note,
      inspection.element,
      this.#frozen.element,
      this.#searches.element,
    );
    this.#domain.addEventListener("change", () => {
      this.#domainChanged();
      this.goTo(this.#onBus ? this.#first : 0);
    });
    app.api.emulator.follow(() => {
      // The domains and the bytes belong to the emulator that was selected before.
      this.#domains = [];
      const wasOnBus = this.#onBus;
      this.#domain.value = "";
      this.#domainChanged();
      // An offset in a domain is not an address on the bus.
      if (wasOnBus) this.#grid.show(this.#start);
      else this.goTo(this.#first);
      this.#inspect(this.#grid.selected);
      // Reads at once, because the answer of the emulator that was selected before may take long.
      if (this.#polling.visible) void this.#polling.now();
    });
    // Another game can have other domains. They are loaded again before the next read.
    app.poller.game.follow(() => {
      this.#domains = [];
    });
    app.marks.place.follow((place) => {
      const here = place?.domain === this.#domain.value ? place : undefined;
      this.#grid.point(here?.address ?? 0, here?.length ?? 0);
    });
    app.status.follow(({ emulator }) => {
      // The game of an emulator that is not connected is not known.
      if (emulator?.connected) this.#setConsole(isGameBoy(emulator));
    });
    new ResizeObserver(() => this.#fit()).observe(this.element);
    TALL.addEventListener("change", () => this.#fit());
    this.goTo(FIRST);
  }

  /** @param {boolean} visible */
  shown(visible) {
    this.#searches.shown(visible);
    this.#polling.shown(visible);
  }

  /**
   * Shows an address and selects its byte.
   * @param {number} address
   */
  goTo(address) {
    this.#scroll(address);
    this.#grid.select(address);
  }

  /**
   * Shows a part of memory and marks its bytes.
   * @param {Place} place
   */
  reveal(place) {
    this.#wanted = place;
    this.#showWanted();
  }

  /** Shows the wanted place, once its domain is known. */
  #showWanted() {
    if (!this.#wanted) return;
    const { domain, address, length } = this.#wanted;
    if (domain !== "" && this.#domains.length === 0) return;
    this.#wanted = undefined;
    if (domain !== "" && !this.#domains.some(({ id }) => id === domain)) {
      toast(`This game has no memory domain ${domain}.`, "bad");
      return;
    }
    this.#setDomain(domain);
    this.goTo(address);
    this.#grid.point(address, length);
  }

  /**
   * Adapts the panel to the console. A Game Boy's addresses have 16 bits, and its work RAM is at another address. If the
   * Game Boy has the selected address, the address stays selected, because it may come from a link.
   * @param {boolean} gameBoy
   */
  #setConsole(gameBoy) {
    const first = gameBoy ? FIRST_GAME_BOY : FIRST;
    if (first === this.#first) return;
    this.#first = first;
    this.#updateNames();
    const { selected } = this.#grid;
    if (this.#onBus) this.goTo(gameBoy && selected < this.#end ? selected : first);
  }

  /** @param {string} domain */
  #setDomain(domain) {
    if (this.#domain.value === domain) return;
    this.#domain.value = domain;
    this.#domainChanged();
  }

  /** Removes the mark from the bytes of the domain that was selected before, and shows the names of this one. */
  #domainChanged() {
    this.#grid.point(0, 0);
    this.#updateNames();
  }

  /** Sets the addresses and symbols that the grid shows. They depend on the console and on the domain. */
  #updateNames() {
    const domain = this.#domain.value;
    if (this.#gameBoy && domain !== "") this.#grid.setNames((offset) => bankedName(domain, offset));
    else this.#grid.setNames((address) => hex(address, this.#gameBoy ? 4 : 8));
    this.#grid.setBands((first, end) => (this.#onBus ? this.#symbols.within(first, end) : []));
  }

  get #gameBoy() {
    return this.#first === FIRST_GAME_BOY;
  }

  /**
   * The range that the scroll bar covers: the chosen domain, or a Game Boy's whole bus. On the bus of the Game Boy
   * Advance, it is the domain that contains the first visible address, or else the 16 MiB around this address.
   * @returns {{ start: number, end: number }}
   */
  get #area() {
    const chosen = this.#chosen;
    if (chosen) return { start: 0, end: chosen.size };
    if (this.#gameBoy) return { start: 0, end: 0x1_0000 };
    const around = this.#domains.find(({ base, size }) => this.#start >= base && this.#start < base + size);
    const block = this.#start - (this.#start % 0x100_0000);
    return around
      ? { start: around.base, end: around.base + around.size }
      : { start: block, end: block + 0x100_0000 };
  }

  /** The selected domain; `undefined` for the bus. */
  get #chosen() {
    return this.#domains.find(({ id }) => id === this.#domain.value);
  }

  /** @returns {number} The address after the last one of the domain or the bus. */
  get #end() {
    return this.#chosen?.size ?? (this.#gameBoy ? 0x1_0000 : 2 ** 32);
  }

  async #copy() {
    const text = this.#grid.selectedText();
    await copyText(text);
    // Only visible bytes are copied.
    toast(`Bytes copied: ${text.replaceAll(" ", "").length / 2}.`, "copied");
  }

  get #onBus() {
    return this.#domain.value === "";
  }

  #go() {
    const text = this.#address.value;
    const banked = this.#gameBoy ? parseBanked(text) : undefined;
    const domain = this.#domains.find(({ id }) => id === banked?.domain);
    if (banked && domain) {
      if (banked.offset >= domain.size) {
        const last = hex(Math.ceil(domain.size / banked.size) - 1, 2);
        toast(`${domain.label} ends before ${text.trim()}. Its last bank is ${last}.`, "bad");
        return;
      }
      this.#setDomain(banked.domain);
      this.goTo(banked.offset);
      return;
    }
    const place = this.#symbols.resolve(text);
    if (!place) {
      toast(
        `${JSON.stringify(text)} is neither an address nor a known symbol. Use an address such as 02000044, or a symbol's name.`,
        "bad",
      );
      return;
    }
    if (place.symbol) this.#setDomain("");
    const address = this.#gameBoy ? offsetIn(this.#domain.value, place.address) : place.address;
    if (address >= this.#end) {
      const advice = this.#onBus ? "" : " For an address on the bus, choose Bus.";
      toast(`This memory ends before ${text}.${advice}`, "bad");
      return;
    }
    this.goTo(address);
  }

  /**
   * Scrolls by rows until the byte at `address` is visible, and shows its value in the inspector.
   * @param {number} address
   */
  #moved(address) {
    const { across } = this.#grid;
    const row = address - (address % across);
    const last = this.#start + this.#grid.size - across;
    if (row < this.#start) this.#scroll(row);
    else if (row > last) this.#scroll(this.#start + row - last);
    this.#inspect(address);
    const domain = this.#domain.value;
    this.place.set({ domain, address, length: 1, text: hex(address, domain === "" ? 8 : 4) });
  }

  /** @param {number} start */
  #scroll(start) {
    const { across, size } = this.#grid;
    // The largest address at which the grid may start.
    const last = Math.ceil((this.#end - size) / across) * across;
    this.#start = Math.max(0, Math.min(last, start - (start % across)));
    this.#grid.show(this.#start);
    this.#showBar();
  }

  #showBar() {
    const { start, end } = this.#area;
    const { across, size } = this.#grid;
    this.#bar.max = String(Math.max(0, Math.ceil((end - start - size) / across)));
    this.#bar.value = String(Math.floor((this.#start - start) / across));
    this.#bar.setAttribute("aria-valuetext", `from ${hex(this.#start, 4)}`);
  }

  async #refresh() {
    const begun = performance.now();
    const emulator = this.#app.api.emulator.value;
    let domain = this.#domain.value;
    const isSame = () => emulator === this.#app.api.emulator.value && domain === this.#domain.value;
    try {
      if (this.#domains.length === 0 || begun - this.#domainsAsked > DOMAINS_EVERY_MS)
        await this.#loadDomains();
      const start = this.#start;
      domain = this.#domain.value;
      const bytes = await this.#read(domain, start);
      if (start === this.#start && isSame()) this.#grid.update(bytes, performance.now());
      await this.#frozen.refreshIfOld();
      setText(this.#note, "");
      this.#inspect(this.#grid.selected);
    } catch (error) {
      if (isSame()) setText(this.#note, error instanceof Error ? `Not up to date: ${error.message}.` : "");
    }
    return document.hidden ? 1000 : Math.max(10, EVERY_MS - (performance.now() - begun));
  }

  /**
   * Reads the bytes that the grid shows. If there is no memory after the area in which they begin, as after the BIOS, reads
   * only those in this area.
   * @type {(domain: string, start: number) => Promise<Uint8Array>}
   */
  async #read(domain, start) {
    const inside = this.#area.end - start;
    const length = this.#length;
    try {
      return await this.#emulation.read(domain, start, length);
    } catch (error) {
      if (!isRejection(error) || length <= inside) throw error;
      return this.#emulation.read(domain, start, inside);
    }
  }

  /**
   * The number of bytes to read: those that the grid shows, and those of a 32-bit number that begins at the last of them.
   * There are fewer at the end of a domain or of the bus.
   * @returns {number}
   */
  get #length() {
    const shown = Math.min(this.#grid.size, this.#end - this.#start);
    // There may be no memory after the area.
    const after = Math.min(3, this.#area.end - this.#start - shown);
    return Math.max(1, shown + Math.max(0, after));
  }

  async #loadDomains() {
    const emulator = this.#app.api.emulator.value;
    const game = this.#app.poller.game.value;
    this.#domainsAsked = performance.now();
    const domains = await this.#emulation.domains();
    if (emulator !== this.#app.api.emulator.value || game !== this.#app.poller.game.value) return;
    this.#domains = domains.filter(({ size }) => size > 0);
    const chosen = this.#domain.value;
    /** @type {SelectOption[]} */
    const options = this.#domains.map(({ id, label, size }) => [id, `${label} (${sizeText(size)})`]);
    setOptions(this.#domain, [["", "Bus"], ...options]);
    if (this.#domain.value !== chosen) {
      this.#domainChanged();
      this.goTo(this.#first);
    } else if (this.#grid.selected >= this.#end) {
      // The domain of this game is smaller.
      this.goTo(this.#end - 1);
    }
    this.#showBar();
    this.#showWanted();
  }

  /** @type {(address: number, value: number, type: string) => Promise<void>} */
  async #write(address, value, type) {
    await attempt(() =>
      this.#app.api.act(actions.write(this.#domain.value, `0x${hex(address, 8)}`, value, type)),
    );
  }

  /** @type {(address: number, value: number, type: string) => Promise<void>} */
  async #freeze(address, value, type) {
    if (!this.#onBus) {
      toast("Only values on the bus can be frozen. Choose Bus, then select the address there.", "bad");
      return;
    }
    await this.#frozen.act(actions.freeze(`0x${hex(address, 8)}`, value, type));
  }

  /** Fits the grid to the panel and the screen. A row has 16 bytes, or 8 if 16 do not fit even in smaller text. */
  #fit() {
    const across = this.element.clientWidth < 520 ? 8 : 16;
    this.element.classList.toggle("tight", across === 16 && this.element.clientWidth < 640);
    const isFitting = across === this.#grid.across && across * rows() === this.#grid.size;
    if (this.element.clientWidth === 0 || isFitting) return;
    this.#grid.resize(across, rows());
    this.#scroll(this.#start);
  }
}

/** @returns {number} The number of rows of the grid. */
function rows() {
  return TALL.matches ? 32 : 16;
}

/** @type {(bytes: number) => string} */
function sizeText(bytes) {
  return bytes < 1024 ? `${bytes} bytes` : `${bytes >> 10} KiB`;
}
