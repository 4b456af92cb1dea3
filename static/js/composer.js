// The place to ask: Enter sends, the draft survives a reload, the choice of bases is told in words,
// files are taken by drop, paste and choice.

import { Files } from "./files.js";

const form = document.querySelector("[data-composer]");
let files = null;

if (form) {
  const field = form.elements.text;
  const key = `ks-draft-${location.pathname.split("/")[1]}-${form.dataset.draft}`;
  files = new Files(form);

  if (!field.value) field.value = sessionStorage.getItem(key) ?? "";
  field.addEventListener("input", () => sessionStorage.setItem(key, field.value));
  field.addEventListener("keydown", (event) => {
    // An input method's Enter chooses a word; 229 is what older ones send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    if (field.value.trim() && files.settled()) {
      sessionStorage.removeItem(key);
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    field.focus();
  });
  form.addEventListener("change", name);
  addEventListener("pageshow", name);
  name();

  for (const chip of document.querySelectorAll("[data-suggest]")) {
    chip.addEventListener("click", () => {
      field.value = chip.dataset.suggest;
      form.requestSubmit();
    });
  }
}

/** Say which bases are chosen on the button that opens the choice. */
function name() {
  const label = form.querySelector("[data-bases-label]");
  if (!label) return;
  const chosen = [...form.querySelectorAll("[name=kb]:checked")];
  if (!chosen.length) label.textContent = form.dataset.all;
  else if (chosen.length === 1) label.textContent = chosen[0].dataset.name;
  else label.textContent = form.dataset.some.replace("%s", chosen.length);
}

/** A name of its own for a question, so that a repeated frame is harmless. */
export const clientId = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;

/** What the form asks for, as the socket's frame; null if there is nothing to ask. */
export function question() {
  const text = form.elements.text.value.trim();
  return text ? { ...options(), text, attachments: files.ids() } : null;
}

/** A frame with what the form chooses beside the words: where to look, the web, the language. */
export function options() {
  return {
    type: "ask",
    text: "",
    client_id: clientId(),
    knowledge_bases: [...form.querySelectorAll("[name=kb]:checked")].map((box) => box.value),
    web: Boolean(form.elements.web?.checked),
    language: form.elements.language.value || null,
  };
}

/** Empty the field and the files, or put a question back that could not be sent. */
export function write(text) {
  form.elements.text.value = text;
  form.elements.text.dispatchEvent(new Event("input"));
}

/** The files that go with the question, and none from now on. */
export const takeFiles = () => files.take();
