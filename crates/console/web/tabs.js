/**
 * Tabs as in the ARIA Authoring Practices: all tabs are one stop in the focus order, and arrow keys move between them.
 * In a wide window, the tabs are a rail at the side. In a very wide window, two panels are visible next to each other:
 * the open one, and the one that was open before.
 */

import { el } from "./dom.js";
import { oneOf, setting } from "./settings.js";

/**
 * @import { Panel } from "./lazy.js"
 * @import { Store } from "./store.js"
 */

/**
 * @typedef {object} Tab
 * @property {string} id
 * @property {string} label
 * @property {Panel} panel
 * @property {Store<boolean>} [present] Whether the page has this tab now. Without this property, the tab is always there.
 */

const RAIL = matchMedia("(width >= 88rem)");
const TWO_PANELS = matchMedia("(width >= 140rem)");

/**
 * The tabs with their panels. The page remembers the open tab.
 * @param {string} label
 * @param {readonly Tab[]} all
 * @returns {{ element: HTMLElement, opened: Store<string>, open: (id: string) => void }}
 */
export function tabs(label, all) {
  const list = el("div", { class: "tablist", role: "tablist", "aria-label": label });
  const root = el("div", { class: "tabs" }, list);
  const isTab = oneOf(all.map(({ id }) => id));
  const open = setting("tab", all[0]?.id ?? "", isTab);
  /** The tab that was open before. */
  const before = setting("tab-before", all[1]?.id ?? "", isTab);
  let last = open.value;
  /** A tab that the user wants to see, but that is not there yet. It opens when it appears. @type {string | undefined} */
  let missed;
  const buttons = all.map((tab) => {
    const control = el(
      "button",
      { type: "button", role: "tab", id: `tab-${tab.id}`, "aria-controls": `panel-${tab.id}` },
      tab.label,
    );
    control.addEventListener("click", () => {
      missed = undefined;
      open.set(tab.id);
    });
    const { element } = tab.panel;
    element.id = `panel-${tab.id}`;
    element.classList.add("panel");
    element.hidden = true;
    element.setAttribute("role", "tabpanel");
    element.setAttribute("aria-labelledby", control.id);
    list.append(control);
    root.append(element);
    return control;
  });
  list.addEventListener("keydown", (event) => {
    const there = all.filter(({ present }) => present?.value !== false);
    const now = there.findIndex(({ id }) => id === open.value);
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: now + 1,
      ArrowDown: now + 1,
      ArrowLeft: now - 1 + there.length,
      ArrowUp: now - 1 + there.length,
      Home: 0,
      End: there.length - 1,
    };
    const next = steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    open.set(there[next % there.length]?.id ?? open.value);
    buttons[all.findIndex(({ id }) => id === open.value)]?.focus();
  });
  const show = () => {
    list.setAttribute("aria-orientation", RAIL.matches ? "vertical" : "horizontal");
    list.setAttribute("aria-multiselectable", String(TWO_PANELS.matches));
    all.forEach((tab, index) => {
      const isOpen = tab.id === open.value;
      const isSecond = TWO_PANELS.matches && tab.id === before.value && tab.present?.value !== false;
      const control = buttons[index];
      control?.setAttribute("aria-selected", String(isOpen || isSecond));
      control?.setAttribute("tabindex", isOpen ? "0" : "-1");
      const visible = isOpen || isSecond;
      if (visible === !tab.panel.element.hidden) return;
      tab.panel.element.hidden = !visible;
      tab.panel.shown?.(visible);
    });
  };
  all.forEach(({ id, present }, index) => {
    present?.follow((is) => {
      buttons[index]?.toggleAttribute("hidden", !is);
      if (!is && open.value === id) {
        missed = id;
        open.set(all[0]?.id ?? "");
      } else if (is && missed === id) {
        missed = undefined;
        open.set(id);
      }
      show();
    });
  });
  open.follow((id) => {
    if (id !== last) before.set(last);
    last = id;
    show();
    const control = buttons[all.findIndex((tab) => tab.id === id)];
    control?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  RAIL.addEventListener("change", show);
  TWO_PANELS.addEventListener("change", show);
  return {
    element: root,
    opened: open,
    open: (id) => {
      if (all.find((tab) => tab.id === id)?.present?.value === false) missed = id;
      else if (isTab(id)) open.set(id);
    },
  };
}
