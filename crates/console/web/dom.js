/** Elements in one expression, without markup in strings: the page's Content-Security-Policy allows no such thing. */

/** @typedef {Node | string | null | undefined | false} Child */

/** @typedef {Partial<{ [K in keyof HTMLElementEventMap]: (event: HTMLElementEventMap[K]) => void }>} Listeners */

/** @typedef {{ class?: string | undefined, on?: Listeners, [attribute: string]: unknown }} Props */

/**
 * An element with attributes (`true` is an empty one, `false` and `undefined` none), listeners and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") continue;
    setAttribute(element, name, value);
  }
  for (const [type, listener] of Object.entries(props.on ?? {})) {
    element.addEventListener(type, /** @type {EventListener} */ (listener));
  }
  element.append(...children.filter(isNode));
  return element;
}

/**
 * Sets an attribute, or takes it away with `false` or `undefined`.
 * @param {Element} element
 * @param {string} name
 * @param {unknown} value
 */
export function setAttribute(element, name, value) {
  if (value === false || value === undefined || value === null) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/**
 * Puts these in place of all children.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter(isNode));
}

/**
 * The element of `index.html` with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

let ids = 0;

/**
 * An id that no other element has.
 * @param {string} prefix
 * @returns {string}
 */
export function freshId(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}

/**
 * Sets the text only if it is another one: what did not change is not painted again.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * @param {Child} child
 * @returns {child is Node | string}
 */
function isNode(child) {
  return child !== null && child !== undefined && child !== false;
}
