/** The log of what was done here, each with its command. */

import { type App, attempt } from "./app.ts";
import type { Done } from "./api.ts";
import { button, empty } from "./controls.ts";
import { el, fill } from "./dom.ts";
import { target } from "./curl.ts";

export function activity(app: App): HTMLElement {
  const list = el("ol", { class: "log" });
  const panel = el(
    "div",
    {},
    el(
      "p",
      { class: "about" },
      "What you did here, as requests: copy one as a command for a terminal or a script.",
    ),
    list,
  );
  app.api.log.follow((log) => {
    if (log.length === 0)
      fill(list, el("li", {}, empty("Nothing yet. Each button of this page is one request.")));
    else fill(list, ...log.map((done) => row(app, done)));
  });
  return panel;
}

function row(app: App, done: Done): HTMLElement {
  const good = done.status >= 200 && done.status < 300;
  return el(
    "li",
    {},
    el(
      "div",
      { class: "what" },
      el("strong", {}, done.action.title),
      el(
        "span",
        { class: `status ${good ? "good" : "bad"}` },
        done.status === 0 ? "no answer" : String(done.status),
      ),
      el("span", { class: "took" }, `${done.milliseconds.toFixed(1)} ms`),
      el("time", { datetime: done.at.toISOString() }, done.at.toLocaleTimeString()),
    ),
    el("code", { class: "request" }, `${done.action.method} ${target(done.action)}`),
    done.problem !== undefined && el("p", { class: "problem" }, done.problem),
    button({ icon: "copy", label: `Copy "${done.action.title}" as curl`, compact: true, kind: "quiet" }, () =>
      attempt(() => app.api.copy(done.action)),
    ),
  );
}
