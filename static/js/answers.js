// What may be done with a question and its answer: edit, another answer, continue, copy, ask what is suggested.

import { toast } from "./app.js";
import { options } from "./composer.js";

const page = document.querySelector("[data-thread]");
const words = page.querySelector("[data-words]").dataset;

/** Begin to listen. `ask(frame, { replacing })` puts a question into the thread, in place of an article and all after it. */
export function watchAnswers({ ask, busy }) {
  const unlessBusy = (act) => {
    if (busy()) toast(words.sayBusy);
    else act();
  };
  document.addEventListener("click", (event) => {
    const on = (name) => event.target.closest?.(name);
    const article = on("article");
    if (on("[data-edit]")) unlessBusy(() => edit(article, ask));
    else if (on("[data-retry]")) unlessBusy(() => again(article, ask));
    else if (on("[data-continue]")) ask({ ...options(), text: words.sayContinue, parent: article.dataset.turn });
    else if (on("[data-suggest-next]")) ask({ ...options(), text: on("[data-suggest-next]").textContent });
    else if (on("[data-copy]")) copyAnswer(article);
    else if (on("[data-copy-code]")) copy(on(".code").querySelector("code").textContent);
    else if (on("[data-copy-value]")) copy(document.getElementById(on("[data-copy-value]").dataset.copyValue).value);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest?.("[data-again]");
    if (!form) return;
    event.preventDefault();
    const model = event.submitter?.name === "model" ? event.submitter.value : null;
    form.querySelector("[popover]")?.hidePopover();
    unlessBusy(() => again(form.closest("article"), ask, model));
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    codes(event.target);
    document.getElementById(event.detail.target.id)?.querySelector?.(".why[open]")?.scrollIntoView({ block: "nearest" });
  });
  codes(page);
}

/** Ask the article's question once more, in its place. */
function again(article, ask, model = null) {
  const text = article.querySelector(".q").textContent;
  if (!article.dataset.turn) return;
  ask({ ...options(), text, regenerate: article.dataset.turn, model }, { replacing: article });
}

function edit(article, ask) {
  const heading = article.querySelector(".q");
  const form = document.createElement("form");
  form.className = "edit";
  const field = document.createElement("textarea");
  field.className = "input";
  field.setAttribute("aria-label", words.sayEdited);
  field.maxLength = 16000;
  field.dir = "auto";
  field.value = heading.textContent;
  const row = document.createElement("div");
  row.className = "row";
  const cancel = button(words.sayCancel, "btn sm", "button");
  row.append(cancel, button(words.saySend, "btn primary sm", "submit"));
  form.append(field, row);
  const close = () => {
    form.replaceWith(heading);
    article.querySelector("[data-edit]")?.focus();
  };
  cancel.addEventListener("click", close);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text) return;
    form.replaceWith(heading);
    const parent = article.dataset.parent || words.conversation;
    const attachments = article.dataset.attachments?.split(" ") ?? [];
    ask({ ...options(), text, parent, attachments }, { replacing: article });
  });
  heading.replaceWith(form);
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

function button(text, classes, type) {
  const made = document.createElement("button");
  made.type = type;
  made.className = classes;
  made.textContent = text;
  return made;
}

async function copyAnswer(article) {
  const sources = [...article.querySelectorAll(".sources > .src")].map((source) => source.innerText.replace(/\s*\n\s*/g, " "));
  await copy([article.querySelector(".answer").innerText, ...sources].join("\n\n"));
}

/** Put a text on the clipboard; a page that came without TLS has only the old way. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "sr";
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  toast(document.body.dataset.copied);
}

/** Give each piece of code a button that copies it, and let the keyboard reach what scrolls sideways. */
export function codes(inside) {
  for (const box of inside.querySelectorAll?.(".answer pre, .answer .wide-box, .answer math[display=block]") ?? []) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
  for (const code of inside.querySelectorAll?.(".answer pre") ?? []) {
    if (code.parentElement.className === "code") continue;
    const box = document.createElement("div");
    box.className = "code";
    const act = button("", "btn quiet icon sm", "button");
    act.dataset.copyCode = "";
    act.setAttribute("aria-label", words.sayCopyCode);
    act.append(document.querySelector("[data-icon-copy]").content.cloneNode(true));
    code.replaceWith(box);
    box.append(code, act);
  }
}
