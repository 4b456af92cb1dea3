// A document's page: scroll to the highlighted passage.

const sheet = document.querySelector("[data-target]");
const place = sheet && document.getElementById(sheet.dataset.target);
if (place) {
  const words = place.querySelector("mark") ?? place;
  words.scrollIntoView({ block: "center" });
}
