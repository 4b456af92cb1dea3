// What every page does: theme, toasts, password peek, copy buttons, the time zone, being offline.

export const csrf = () => document.body.dataset.csrf;

/** Show a short message at the foot of the page; `state` "bad" stays until it is closed. */
export function toast(text, { state = "", action = null } = {}) {
  const box = document.createElement("div");
  box.className = "toast";
  box.dataset.s = state;
  const words = document.createElement("span");
  words.textContent = text;
  box.append(words);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn sm";
  button.textContent = action ? action.label : document.body.dataset.close;
  button.addEventListener("click", () => {
    box.remove();
    action?.run();
  });
  box.append(button);
  document.getElementById("toasts").append(box);
  if (state !== "bad") fade(box);
}

/** Take a message away after ten seconds in which nobody pointed at it or was in it: Undo does not vanish under a hand. */
function fade(box) {
  let timer;
  const wait = () => { clearTimeout(timer); timer = setTimeout(() => box.remove(), 10_000); };
  for (const name of ["pointerenter", "focusin"]) box.addEventListener(name, () => clearTimeout(timer));
  for (const name of ["pointerleave", "focusout"]) box.addEventListener(name, wait);
  wait();
}

for (const shown of document.querySelectorAll("#toasts > .toast")) fade(shown);

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  const theme = target?.closest("[data-set-theme]");
  if (theme) setTheme(theme.dataset.setTheme);
  const copied = target?.closest("[data-copy-text]");
  if (copied) navigator.clipboard.writeText(copied.dataset.copyText).then(() => toast(document.body.dataset.copied));
  if (target?.closest("[data-back]")) history.back();
  const peek = target?.closest("[data-peek]");
  if (peek) {
    const input = document.getElementById(peek.dataset.peek);
    input.type = input.type === "password" ? "text" : "password";
    peek.setAttribute("aria-pressed", String(input.type === "text"));
  }
});

// What a server refuses for its size comes back without what was typed, so such a form is not sent at all.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.mostMb) return;
  const bytes = (value) => new Blob([typeof value === "string" ? value.replace(/\r?\n/g, "\r\n") : value]).size;
  const whole = [...new FormData(form)].reduce((sum, [name, value]) => sum + name.length + bytes(value) + 2, 0);
  if (whole <= Number(form.dataset.mostMb) * 2 ** 20) return;
  event.preventDefault();
  toast(form.dataset.tooMuch, { state: "bad" });
}, true);

document.addEventListener("change", (event) => {
  if (event.target.matches?.("[data-submits]")) event.target.form.requestSubmit();
});

function setTheme(theme) {
  const root = document.documentElement;
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  keep("ks_theme", theme, theme ? 365 * 24 * 3600 : 0);
  for (const button of document.querySelectorAll("[data-set-theme]")) {
    button.setAttribute("aria-pressed", String(button.dataset.setTheme === theme));
  }
}

// The server shows times as here: it learns the zone with the next request, and keeps it until another is chosen.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`ks_zone=${zone}`)) keep("ks_zone", zone, 365 * 24 * 3600);

function keep(name, value, life) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${name}=${value}; Path=/; Max-Age=${life}; SameSite=Lax${secure}`;
}

const offline = document.getElementById("offline");
const reach = () => { offline.hidden = navigator.onLine; };
addEventListener("online", reach);
addEventListener("offline", reach);
reach();

document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRFToken"] = csrf();
});
document.addEventListener("toast", (event) => {
  const { text, undo } = event.detail;
  toast(text, { action: undo ? { label: document.body.dataset.undo, run: () => post(undo) } : null });
});
document.addEventListener("toasts", (event) => {
  for (const { text } of event.detail.toasts) toast(text);
});
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.elt.closest("[data-quiet]")) return;
  toast(messageOf(event.detail.xhr.responseText) ?? document.body.dataset.failed, { state: "bad" });
});
document.addEventListener("htmx:sendError", (event) => {
  if (event.detail.elt.closest("[data-quiet]")) return;
  toast(document.body.dataset.unreachable, { state: "bad" });
});

/** Send a form without fields, as a button of the page would. */
function post(action) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = action;
  const token = document.createElement("input");
  token.type = "hidden";
  token.name = "csrfmiddlewaretoken";
  token.value = csrf();
  form.append(token);
  document.body.append(form);
  form.submit();
}

/** The code of an error answer, if it is our JSON. */
export function codeOf(body) {
  try {
    return JSON.parse(body).code ?? null;
  } catch {
    return null;
  }
}

/** The sentence of an error answer, if it is our JSON. */
export function messageOf(body) {
  try {
    return JSON.parse(body).message ?? null;
  } catch {
    return null;
  }
}
