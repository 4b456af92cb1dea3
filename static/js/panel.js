// The source panel: a marker opens its paragraph; [ and ] step through; Esc leads back to the marker.

import { toast } from "./app.js";

const panel = document.getElementById("panel");
const words = document.querySelector("[data-words]").dataset;
const wide = matchMedia("(min-width: 75rem)");
let marker = null; // what was followed, to give the focus back to
let article = null; // whose sources are stepped through

/** Begin to listen. */
export function watchMarkers() {
  document.addEventListener("click", followed);
  document.addEventListener("keydown", pressed);
  // A page that cannot be drawn leaves its text, which is there anyway.
  panel.addEventListener("error", (event) => event.target.closest("[data-page-picture]")?.remove(), true);
  panel.addEventListener("toggle", (event) => {
    if (event.newState === "closed") marker?.focus();
  });
}

function followed(event) {
  const link = event.target.closest?.(".answer .cite[data-n], [data-source]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  const inPanel = panel.contains(link);
  if (!inPanel) {
    marker = link;
    article = link.closest("article");
  }
  show(Number(link.dataset.n), inPanel ? 0 : occurrence(link), !inPanel);
}

function pressed(event) {
  if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
  if (event.key === "[") panel.querySelector('[data-step="previous"]')?.click();
  else if (event.key === "]") panel.querySelector('[data-step="next"]')?.click();
  else if (event.key === "Escape" && marker && wide.matches) marker.focus();
}

/** Which of the markers with the same number in this answer was followed. */
function occurrence(link) {
  const same = link.closest(".answer")?.querySelectorAll(`.cite[data-n="${link.dataset.n}"]`) ?? [];
  return Math.max(0, [...same].indexOf(link));
}

async function show(n, at, focus) {
  const url = `${article.dataset.sourceUrl.replace(/0\/$/, `${n}/`)}?at=${at}`;
  let response;
  try {
    response = await fetch(url, { headers: { "HX-Request": "true", Accept: "text/html" } });
  } catch {
    toast(words.unavailable, { state: "bad" });
    return;
  }
  if (!response.ok) {
    toast(words.unavailable, { state: "bad" });
    return;
  }
  panel.innerHTML = await response.text(); // our own page, rendered and sanitised on the server
  if (!wide.matches && !panel.matches(":popover-open")) panel.showPopover();
  for (const other of document.querySelectorAll(".answer .cite[aria-current]")) other.removeAttribute("aria-current");
  for (const same of article.querySelectorAll(`.answer .cite[data-n="${n}"]`)) same.setAttribute("aria-current", "true");
  const body = panel.querySelector(".panel-body");
  const place = body.querySelector("[data-page-picture]") ? null : (body.querySelector("mark") ?? body.querySelector(".cited"));
  if (place) body.scrollTop += place.getBoundingClientRect().top - body.getBoundingClientRect().top - body.clientHeight / 4;
  if (focus) body.focus({ preventScroll: true });
}
