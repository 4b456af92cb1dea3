// The place to ask: Enter sends, the draft survives a reload, the choice of bases is told in words.

const form = document.querySelector("[data-composer]");

if (form) {
  const field = form.elements.text;
  const key = `ks-draft-${location.pathname.split("/")[1]}-${form.dataset.draft}`;

  if (!field.value) field.value = sessionStorage.getItem(key) ?? "";
  field.addEventListener("input", () => sessionStorage.setItem(key, field.value));
  field.addEventListener("keydown", (event) => {
    // An input method's Enter chooses a word; 229 is what older ones send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    if (!field.value.trim()) {
      event.preventDefault();
      event.stopImmediatePropagation();
      field.focus();
      return;
    }
    sessionStorage.removeItem(key);
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

/** What the form asks for, as the socket's frame; null if there is nothing to ask. */
export function question() {
  const text = form.elements.text.value.trim();
  if (!text) return null;
  return {
    type: "ask",
    text,
    client_id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`,
    knowledge_bases: [...form.querySelectorAll("[name=kb]:checked")].map((box) => box.value),
    language: form.elements.language.value || null,
  };
}

/** Empty the field, or put a text back that could not be sent. */
export function write(text) {
  form.elements.text.value = text;
  form.elements.text.dispatchEvent(new Event("input"));
}
