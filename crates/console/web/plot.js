/** Small plots of a value over time. */

/** @import { Series } from "./series.js" */

const SVG = "http://www.w3.org/2000/svg";
/** The height of a plot in its own units. */
const HEIGHT = 100;
/** The space above the largest value and below the smallest. */
const MARGIN = 5;

/**
 * A plot of the last part of a series. `span` is the length of this part, in the unit of the points' `at`. The plot
 * draws steps, because each value lasts until the next one. It is an SVG path, so that it is sharp at any zoom and takes
 * its colours from the style sheet.
 * @type {(span: number) => { element: SVGSVGElement, draw(series: Series, now: number): void }}
 */
export function plot(span) {
  const element = document.createElementNS(SVG, "svg");
  element.setAttribute("class", "plot");
  element.setAttribute("viewBox", `0 0 ${span} ${HEIGHT}`);
  element.setAttribute("preserveAspectRatio", "none");
  element.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  element.append(path);
  let shown = "";
  return {
    element,
    draw(series, now) {
      const line = lineOf(series, now, span);
      if (line === shown) return;
      shown = line;
      path.setAttribute("d", line);
    },
  };
}

/**
 * The outline of the area below the values. Its right side and its lower edge are outside of the plot. So is its left
 * side, if the series begins before the plot.
 * @type {(series: Series, now: number, span: number) => string}
 */
function lineOf(series, now, span) {
  const range = series.range();
  const first = series.points[0];
  if (!range || !first) return "";
  const spread = range.most - range.least;
  /** @type {(value: number) => number} */
  const y = (value) =>
    spread === 0
      ? HEIGHT / 2
      : Math.round(HEIGHT - MARGIN - ((value - range.least) / spread) * (HEIGHT - 2 * MARGIN));
  const begin = now - span;
  let before = y(first.value);
  const x = Math.round(first.at - begin);
  let line = `M${x} ${2 * HEIGHT}V${before}`;
  for (const { at, value } of series.points) {
    const top = y(value);
    if (top === before) continue;
    line += `H${Math.round(at - begin)}V${top}`;
    before = top;
  }
  return `${line}H${2 * span}V${2 * HEIGHT}`;
}
