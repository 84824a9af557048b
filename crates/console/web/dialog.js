/**
 * Asks questions in a modal `<dialog>`, which keeps the focus inside. When it closes, the focus returns to the element
 * that had it before.
 */

import { el, freshId } from "./dom.js";

/**
 * @import { Api } from "./api.js"
 * @import { Child } from "./dom.js"
 */

/**
 * Asks for a confirmation. Returns whether the user confirms. While the page copies actions as commands instead of
 * sending them (`api.copying`), returns true without asking.
 * @type {(api: Api, question: string, detail: string, yes: string) => Promise<boolean>}
 */
export async function confirm(api, question, detail, yes) {
  return api.copying.value || ask(question, yes, "danger", el("p", {}, detail));
}

/**
 * Asks for a text; `undefined` if the user cancels or enters nothing.
 * @type {(question: string, label: string, value: string, yes: string) => Promise<string | undefined>}
 */
export async function prompt(question, label, value, yes) {
  const input = el("input", {
    type: "text",
    name: "answer",
    value,
    required: true,
    autocomplete: "off",
    id: freshId("field"),
  });
  const confirmed = await ask(question, yes, "primary", el("label", { for: input.id }, label), input);
  return confirmed ? input.value.trim() || undefined : undefined;
}

/** @type {(question: string, yes: string, kind: string, ...content: Child[]) => Promise<boolean>} */
function ask(question, yes, kind, ...content) {
  const title = el("h2", { id: freshId("title") }, question);
  const dialog = el("dialog", { "aria-labelledby": title.id });
  const cancel = el("button", { type: "button" }, "Cancel");
  cancel.addEventListener("click", () => dialog.close());
  const form = el(
    "form",
    { method: "dialog" },
    title,
    ...content,
    el("div", { class: "answers" }, cancel, el("button", { class: kind, value: "yes" }, yes)),
  );
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  dialog.querySelector("input")?.select();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}
