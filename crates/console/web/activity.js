/** The log of the page's actions. Each entry can be copied as code: a curl command or a short program. */

import { attempt } from "./app.js";
import { ENDINGS, isLanguage, LANGUAGES, language } from "./code.js";
import { about, button, choice, emptyEntry, field } from "./controls.js";
import { el, fill } from "./dom.js";
import { target } from "./curl.js";
import { saveFile } from "./transport.js";

/**
 * @import { App } from "./app.js"
 * @import { LogEntry } from "./api.js"
 */

/** @type {(app: App) => HTMLElement} */
export function activity(app) {
  const list = el("ol", { class: "log" });
  const languages = choice(Object.entries(LANGUAGES), language.value);
  languages.addEventListener("change", () => {
    if (isLanguage(languages.value)) language.set(languages.value);
  });
  const panel = el(
    "div",
    {},
    about("The requests that this page sent for you. Copy one as a command for a terminal or a script."),
    el(
      "div",
      { class: "line" },
      field("Copy as", languages),
      button({ icon: "download", label: "Save as a program" }, () =>
        saveFile(new Blob([app.api.program()]), `log.${ENDINGS[language.value]}`),
      ),
    ),
    list,
  );
  const show = () => {
    const log = app.api.log.value;
    if (log.length === 0)
      fill(list, emptyEntry("No requests yet. Each action on this page sends one request."));
    else fill(list, ...log.map((done) => row(app, done)));
  };
  app.api.log.follow(show);
  language.follow(show);
  return panel;
}

/** @type {(app: App, done: LogEntry) => HTMLElement} */
function row(app, done) {
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
        done.status === 0 ? "failed" : String(done.status),
      ),
      el("span", { class: "took" }, `${done.milliseconds.toFixed(1)} ms`),
      el("time", { datetime: done.at.toISOString() }, done.at.toLocaleTimeString()),
    ),
    el("code", { class: "request" }, `${done.action.method} ${target(done.action)}`),
    done.problem !== undefined && el("p", { class: "problem" }, done.problem),
    button(
      {
        icon: "copy",
        label: `Copy "${done.action.title}" as ${LANGUAGES[language.value]}`,
        compact: true,
        kind: "quiet",
      },
      () => attempt(() => app.api.copy(done.action)),
    ),
  );
}
