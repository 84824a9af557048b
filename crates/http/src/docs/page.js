// Sends the requests that the page describes, shows the replies, and writes the requests as short programs.
import { code, isLanguage, LANGUAGES, language } from "/console/code.js";

const languages = document.getElementById("language");
for (const [name, label] of Object.entries(LANGUAGES)) languages.add(new Option(label, name));
languages.value = language.value;
languages.addEventListener("change", () => {
  if (isLanguage(languages.value)) language.set(languages.value);
});

const emulator = document.getElementById("emulator");
/** Whether the programs that this page writes need a token. */
let needsToken = false;

fetch("/v1/emulators")
  .then((reply) => reply.json())
  .then(({ emulators }) => {
    for (const { name, title } of emulators) {
      emulator.add(new Option(title ? `${name} (${title})` : name, name));
    }
  })
  .catch(() => {}); // Without the list, requests go to the first emulator.

// This request sends no cookies, because the cookie of a login replaces the token.
fetch("/v1/emulators", { credentials: "omit" })
  .then(({ status }) => {
    needsToken = status === 401;
  })
  .catch(() => {}); // Without the answer, the programs send no token.

document.getElementById("find").addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const section of document.querySelectorAll("section")) {
    let shown = 0;
    for (const details of section.querySelectorAll(":scope > details")) {
      const text = details.textContent.toLowerCase();
      details.hidden = !words.every((word) => text.includes(word));
      shown += details.hidden ? 0 : 1;
    }
    section.hidden = shown === 0;
  }
});

/** The request that a form describes. */
function requestOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const field of form.querySelectorAll("[data-in]")) {
    const { in: place, many } = field.dataset;
    if (field.value === "") continue;
    if (place === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    if (place === "header") headers[field.name] = field.value;
    if (place !== "query") continue;
    const parts = field.value.split(many === "words" ? /[\s,]+/ : ";").map((part) => part.trim());
    const values = many ? parts.filter(Boolean) : [field.value];
    for (const value of values) query.append(field.name, value);
  }
  if (form.dataset.emulator && emulator.value && !query.has("emulator")) query.append("emulator", emulator.value);
  const text = query.toString();
  const body = form.querySelector("textarea")?.value;
  if (body) headers["Content-Type"] = form.dataset.type;
  const method = form.dataset.method.toUpperCase();
  return { url: path + (text && `?${text}`), options: { method, headers, body: body || undefined } };
}

/** The request as a short program. */
function asCode({ url, options: { method, headers, body } }) {
  const { "Content-Type": type = "", ...more } = headers;
  const action = { title: "", method, path: url, headers: more };
  if (body && type.includes("json")) action.json = JSON.parse(body);
  else if (body) action.file = new Blob([body]);
  return code(language.value, action, location.origin, needsToken);
}

/** Shows a reply. For an endless reply, it shows the most recent part until the request is stopped. */
async function show(output, reply, milliseconds) {
  const type = reply.headers.get("content-type") ?? "";
  const head = document.createElement("pre");
  const headers = [...reply.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  head.textContent = `${reply.status} ${reply.statusText} in ${milliseconds.toFixed(1)} ms\n${headers}`;
  output.append(head);
  if (type.startsWith("image/")) {
    const image = new Image();
    image.alt = "The picture of the reply";
    image.src = URL.createObjectURL(await reply.blob());
    output.append(image);
    return;
  }
  const body = document.createElement("pre");
  body.tabIndex = 0;
  output.append(body);
  if (/json/.test(type)) {
    const text = await reply.text();
    body.textContent = JSON.stringify(JSON.parse(text), null, 2);
  } else if (/^text\/event-stream|^multipart\//.test(type)) {
    const reader = reply.body.getReader();
    const decoder = new TextDecoder();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      body.textContent = (body.textContent + decoder.decode(part.value, { stream: true })).slice(-20000);
    }
  } else if (type.startsWith("text/")) {
    body.textContent = (await reply.text()) || "(empty)";
  } else {
    const { size } = await reply.blob();
    body.textContent = `${size} bytes of ${type || "nothing"}`;
  }
}

for (const form of document.forms) {
  let running = null;
  const output = form.querySelector("output");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    running?.abort();
    const mine = (running = new AbortController());
    output.replaceChildren();
    const request = requestOf(form);
    const begun = performance.now();
    try {
      const reply = await fetch(request.url, { ...request.options, signal: mine.signal });
      await show(output, reply, performance.now() - begun);
    } catch (error) {
      if (mine.signal.aborted) return;
      output.append(Object.assign(document.createElement("pre"), { textContent: `No reply: ${error.message}` }));
    }
  });
  form.querySelector(".copy").addEventListener("click", async () => {
    const shown = document.createElement("pre");
    output.replaceChildren(shown);
    try {
      shown.textContent = asCode(requestOf(form));
    } catch (error) {
      shown.textContent = `The body is not JSON: ${error.message}`;
      return;
    }
    await navigator.clipboard?.writeText(shown.textContent).catch(() => {});
  });
  form.querySelector(".stop").addEventListener("click", () => running?.abort());
}

// Opens the operation that the page's address names after "#".
function openLinked() {
  const details = document.getElementById(location.hash.slice(1));
  if (details instanceof HTMLDetailsElement) details.open = true;
}
addEventListener("hashchange", openLinked);
openLinked();
