// The table of documents: choose all, count the chosen; one more pair of question and answer; no row is forgotten.

function count() {
  const label = document.querySelector("[data-chosen]");
  const chosen = document.querySelectorAll("input[name=documents]:checked").length;
  if (label) label.textContent = `${chosen} ${label.dataset.chosen}`;
}

document.addEventListener("change", (event) => {
  const target = event.target;
  if (target.dataset?.all) {
    for (const box of document.querySelectorAll(`input[name=${target.dataset.all}]`)) box.checked = target.checked;
  }
  count();
});

document.addEventListener("click", (event) => {
  const open = document.querySelector(".drop-down[open]");
  if (open && !open.contains(event.target)) open.open = false;
  if (!(event.target instanceof Element) || !event.target.closest("[data-more-pairs]")) return;
  const pairs = document.querySelector("[data-pairs]");
  const fresh = pairs.lastElementChild.cloneNode(true);
  for (const field of fresh.querySelectorAll("input, textarea")) field.value = "";
  pairs.append(fresh);
  fresh.querySelector("input").focus();
});

// An answer that was on its way while a row began to move does not know of it, and the wish to ask again went with the
// element that it replaced.
document.addEventListener("htmx:load", ({ detail: { elt } }) => {
  if (elt.id !== "poll" || elt.getAttribute("hx-trigger").includes("load")) return;
  if (document.querySelector("#documents [name=row]")) setTimeout(() => globalThis.htmx.trigger(elt, "resume"), 1000);
});
