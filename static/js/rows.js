// One menu or question for all rows of a list. The button of a row says what the row is: data-row (its id), data-title,
// data-is (words for its state). What it opens was rendered once for no row at all, and becomes that row's before it shows.

const NOBODY = "00000000-0000-0000-0000-000000000000";

document.addEventListener("click", (event) => {
  const opener = event.target instanceof Element ? event.target.closest("[data-row]") : null;
  if (!opener) return;
  const opened = document.getElementById(opener.dataset.opens ?? opener.getAttribute("popovertarget"));
  become(opened.parentElement, opener.dataset);
  if (!opener.dataset.opens) return; // the browser opens it
  event.preventDefault();
  opened.showPopover({ source: opener });
}, true);

/** Lead everything in `menu` to the row; `title` and `is` decide what it offers. */
function become(menu, { row, title = "", is = "" }) {
  const before = menu.dataset.now ?? NOBODY;
  menu.dataset.now = row;
  for (const place of menu.querySelectorAll("a, form")) {
    for (const name of ["href", "action", "hx-post", "hx-target"]) {
      const led = place.getAttribute(name);
      if (led) place.setAttribute(name, led.replaceAll(before, row));
    }
  }
  for (const field of menu.querySelectorAll("[data-titled]")) field.value = title;
  for (const words of menu.querySelectorAll("[data-says]")) words.textContent = words.dataset.says.replace("{}", () => title);
  const states = is.split(" ");
  for (const part of menu.querySelectorAll("[data-when]")) part.hidden = !states.includes(part.dataset.when);
  for (const part of menu.querySelectorAll("[data-unless]")) part.hidden = states.includes(part.dataset.unless);
  globalThis.htmx.process(menu);
}

document.addEventListener("submit", (event) => {
  if (event.target.closest("[data-rows]")) event.target.closest("[popover]").hidePopover();
});
