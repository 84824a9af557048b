/** Icons as paths on a 24 by 24 grid, drawn with strokes in the text colour. */

const PATHS = /** @type {const} */ ({
  pause: "M8 5v14 M16 5v14",
  play: "M7 4.5v15l12-7.5z",
  step: "M6 5v14l9-7z M18.5 5v14",
  reset: "M4 12a8 8 0 1 0 2.6-5.9 M4 4v4.5h4.5",
  sound: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5z M15.5 9a4.2 4.2 0 0 1 0 6 M18 6.5a8 8 0 0 1 0 11",
  mute: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5z M16 9.5l5 5 M21 9.5l-5 5",
  lock: "M6 11h12v9H6z M8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  curl: "M8 8l-4 4 4 4 M16 8l4 4-4 4 M13.5 5l-3 14",
  copy: "M9 9h11v11H9z M15 9V4H4v11h5",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z M12 2.5v2 M12 19.5v2 M2.5 12h2 M19.5 12h2 M5.3 5.3l1.4 1.4 M17.3 17.3l1.4 1.4 M18.7 5.3l-1.4 1.4 M6.7 17.3l-1.4 1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  auto: "M12 3.5a8.5 8.5 0 1 0 0 17z M12 3.5a8.5 8.5 0 0 1 0 17",
  plus: "M12 5v14 M5 12h14",
  search: "M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12z M15 15l5 5",
  close: "M6 6l12 12 M18 6L6 18",
  load: "M12 15V4 M7.5 8.5L12 4l4.5 4.5 M4.5 19.5h15",
  rename: "M4 20l1-4L16 5l3 3L8 19z M14 7l3 3",
  trash: "M5 7h14 M9.5 7V4.5h5V7 M7 7l1 13h8l1-13 M10.5 11v5.5 M13.5 11v5.5",
  record: "M12 6.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z",
  stop: "M6.5 6.5h11v11h-11z",
  download: "M12 4v11 M7.5 10.5L12 15l4.5-4.5 M4.5 19.5h15",
  full: "M4 9V4h5 M15 4h5v5 M20 15v5h-5 M9 20H4v-5",
  camera: "M4 8h3.5L9 5.5h6L16.5 8H20v11H4z M12 10.5a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  warning: "M12 4L2.8 19.5h18.4z M12 10v4.5 M12 17.2v.3",
  up: "M6 14.5l6-6 6 6",
  down: "M6 9.5l6 6 6-6",
});

/** @typedef {keyof typeof PATHS} IconName */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An icon. It is hidden from assistive technology, because there is always a text or a label next to it.
 * @type {(name: IconName) => SVGSVGElement}
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
