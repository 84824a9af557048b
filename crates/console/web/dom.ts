/** Elements in one expression, without markup in strings: the page's Content-Security-Policy allows no such thing. */

export type Child = Node | string | null | undefined | false;

export interface Props {
  class?: string | undefined;
  on?: Partial<{ [K in keyof HTMLElementEventMap]: (event: HTMLElementEventMap[K]) => void }>;
  [attribute: string]: unknown;
}

/** An element with attributes (`true` is an empty one, `false` and `undefined` none), listeners and children. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") continue;
    setAttribute(element, name, value);
  }
  for (const [type, listener] of Object.entries(props.on ?? {})) {
    element.addEventListener(type, listener as EventListener);
  }
  element.append(...children.filter(isNode));
  return element;
}

/** Sets an attribute, or takes it away with `false` or `undefined`. */
export function setAttribute(element: Element, name: string, value: unknown): void {
  if (value === false || value === undefined || value === null) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Puts these in place of all children. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter(isNode));
}

/** The element of `index.html` with this id. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

let ids = 0;

/** An id that no other element has. */
export function freshId(prefix: string): string {
  ids += 1;
  return `${prefix}-${ids}`;
}

/** Sets the text only if it is another one: what did not change is not painted again. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function isNode(child: Child): child is Node | string {
  return child !== null && child !== undefined && child !== false;
}
