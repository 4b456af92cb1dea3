// The command palette: Ctrl K or ⌘K opens it, letters narrow it, arrows choose, Enter opens. The server finds.

const palette = document.getElementById("palette");
const field = document.getElementById("palette-q");
const list = document.getElementById("palette-list");
const status = palette.querySelector("[role=status]");
const options = () => [...list.querySelectorAll("[role=option]")];
const chosen = () => list.querySelector("[aria-selected=true]");

function open() {
  if (palette.open) return;
  palette.showModal();
  field.value = "";
  field.dispatchEvent(new Event("opened"));
}

function choose(option) {
  chosen()?.setAttribute("aria-selected", "false");
  if (!option) return field.removeAttribute("aria-activedescendant");
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option.id);
}

function step(by) {
  const all = options();
  choose(all[(all.indexOf(chosen()) + by + all.length) % all.length]);
}

function failed() {
  list.textContent = document.body.dataset.unreachable;
  status.textContent = list.textContent;
}

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey) || event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (palette.open) palette.close();
  else open();
});
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-palette]");
  if (!link || event.metaKey || event.ctrlKey) return;
  event.preventDefault();
  open();
});
palette.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});
field.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "ArrowDown") step(1);
  else if (event.key === "ArrowUp") step(-1);
  else if (event.key === "Enter" && chosen()) chosen().click();
  else return;
  event.preventDefault();
});
list.addEventListener("pointermove", (event) => {
  const option = event.target.closest("[role=option]");
  if (option && option !== chosen()) choose(option);
});
list.addEventListener("htmx:afterSwap", () => {
  status.textContent = list.firstElementChild?.dataset.said ?? "";
  choose(options()[0]);
});
palette.addEventListener("htmx:responseError", failed);
palette.addEventListener("htmx:sendError", failed);
