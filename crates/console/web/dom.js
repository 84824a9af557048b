/** Creates elements. It does not use HTML in strings, because the page's Content-Security-Policy forbids that. */

/** @typedef {Node | string | null | undefined | false} Child */

/** @typedef {{ class?: string | undefined, [attribute: string]: unknown }} Props */

/**
 * Creates an element. An attribute that is `true` is set without a value. Attributes that are `false`, `undefined` or
 * `null` are not set.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) setAttribute(element, name, value);
  element.append(...children.filter(isPresent));
  return element;
}

/**
 * Sets an attribute. The values `false`, `undefined` and `null` remove it.
 * @type {(element: Element, name: string, value: unknown) => void}
 */
export function setAttribute(element, name, value) {
  if (value === false || value === undefined || value === null) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/**
 * Replaces all children.
 * @type {(element: Element, ...children: Child[]) => void}
 */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter(isPresent));
}

/**
 * Replaces all children. In contrast to `fill`, children that stay keep the focus, and no click on them is lost.
 * @type {(element: Element, ...children: Element[]) => void}
 */
export function refill(element, ...children) {
  for (const child of [...element.children]) if (!children.includes(child)) child.remove();
  children.forEach((child, at) => {
    const there = element.children[at];
    if (there !== child) element.insertBefore(child, there ?? null);
  });
}

/**
 * Shows an element for each item of a list. Items that were there before, with equal contents, keep their elements.
 * @template T
 * @param {Element} list
 * @param {ReadonlyMap<string, Element>} before The result of the last call, or an empty map.
 * @param {readonly T[]} items
 * @param {(item: T) => Element} make
 * @returns {ReadonlyMap<string, Element>} The elements, by the contents of their items.
 */
export function refillWith(list, before, items, make) {
  /** @type {Map<string, Element>} */
  const elements = new Map();
  for (const item of items) {
    const key = JSON.stringify(item);
    elements.set(key, before.get(key) ?? make(item));
  }
  refill(list, ...elements.values());
  return elements;
}

/**
 * The element of `index.html` with this id.
 * @type {(id: string) => HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

let ids = 0;

/**
 * A unique id.
 * @type {(prefix: string) => string}
 */
export function freshId(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}

/**
 * Sets the text of an element if it differs, so that the browser does not paint unchanged text again.
 * @type {(element: Element, text: string) => void}
 */
export function setText(element, text) {
  const { firstChild } = element;
  if (firstChild instanceof Text && !firstChild.nextSibling) {
    // It is less work for the browser to change the text node than to create another one.
    if (firstChild.data !== text) firstChild.data = text;
  } else if (element.textContent !== text) element.textContent = text;
}

/** @type {(child: Child) => child is Node | string} */
function isPresent(child) {
  return child !== null && child !== undefined && child !== false;
}
