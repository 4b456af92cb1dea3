// What stands above the part of a conversation that is shown: it is fetched when its reader comes near it, and the page
// never holds more than MOST turns, so that the thousandth is drawn as quickly as the first.

import { codes } from "./answers.js";

export const MOST = 80;

export class Past {
  /** `on` has busy() and leave(article), which is told of every article that is taken away. */
  constructor(page, on) {
    this.page = page;
    this.on = on;
    this.thread = page.querySelector(".thread");
    this.above = page.querySelector("[data-earlier]");
    this.below = page.querySelector("[data-latest]");
    this.near = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.fetch(), {
      root: this.thread,
      rootMargin: "600px 0px 0px",
    });
    // Only who scrolls asks for more: a page that is being drawn stands at its beginning for a moment.
    this.thread.addEventListener("wheel", () => this.near.observe(this.above), { once: true, passive: true });
    this.thread.addEventListener("touchmove", () => this.near.observe(this.above), { once: true, passive: true });
    this.thread.addEventListener("keydown", () => this.near.observe(this.above), { once: true });
    this.thread.addEventListener("pointerdown", () => this.near.observe(this.above), { once: true });
    this.above.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      this.near.observe(this.above);
      this.fetch();
    });
  }

  get articles() {
    return [...this.thread.querySelectorAll(":scope > article")];
  }

  /** Put the turns above into their place; what is being read stays where it is. */
  async fetch() {
    if (this.above.hidden || this.fetching) return;
    this.fetching = true;
    try {
      const response = await fetch(this.above.querySelector("a").href);
      if (!response.ok || response.redirected) return;
      const found = new DOMParser().parseFromString(await response.text(), "text/html");
      const fresh = [...found.querySelectorAll("article[data-turn]")].filter((one) => !document.getElementById(one.id));
      const first = this.articles[0];
      if (!first) return;
      const at = first.getBoundingClientRect().top;
      first.before(...fresh);
      this.above.replaceChildren(...found.querySelector("[data-earlier]").childNodes);
      this.above.hidden = !fresh.length || found.querySelector("[data-earlier]").hidden;
      this.thread.scrollTop += first.getBoundingClientRect().top - at;
      for (const article of fresh) {
        codes(article);
        globalThis.htmx?.process(article);
      }
      this.leaveEnd();
      this.near.unobserve(this.above); // few or short turns may leave it near
      this.near.observe(this.above);
    } catch {
      // No connection: the link is still there.
    } finally {
      this.fetching = false;
    }
  }

  /** A reader far up leaves the newest turns behind; a link leads back, and so does asking. */
  leaveEnd() {
    if (this.on.busy()) return;
    const gone = this.articles.slice(MOST);
    if (!gone.length) return;
    if (!("past" in this.page.dataset)) this.nameEnd(gone.at(-1).dataset.turn);
    for (const article of gone) this.take(article);
  }

  /** From now on the page does not show the end: the link and the form name it. */
  nameEnd(turn) {
    this.page.dataset.past = "";
    this.below.querySelector("a").href = `?turn=${turn}`;
    this.below.hidden = false;
    const form = this.page.querySelector("[data-composer]");
    const named = form.elements.parent ?? document.createElement("input");
    named.type = "hidden";
    named.name = "parent";
    named.value = turn;
    form.append(named);
  }

  /** Somebody who asks on and on leaves the oldest turns behind. */
  forget() {
    const all = this.articles;
    const gone = all.slice(0, Math.max(0, all.length - MOST));
    if (!gone.length || this.on.busy()) return;
    const first = all[gone.length];
    const at = first.getBoundingClientRect().top;
    for (const article of gone) this.take(article);
    this.thread.scrollTop += first.getBoundingClientRect().top - at;
    this.above.querySelector("a").href = `?before=${first.dataset.turn}`;
    this.above.hidden = false;
  }

  take(article) {
    this.on.leave(article);
    article.remove();
  }
}
