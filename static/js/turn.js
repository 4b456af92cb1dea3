// One question and its answer while it is written: numbered events in, a growing article out.
// When it is over the server's own drawing of the turn takes its place, the same as after a reload.

const words = document.querySelector("[data-words]").dataset;
const stepWords = JSON.parse(document.getElementById("step-words").textContent);
const SIGNS = { done: "✓", running: "▸", dropped: "✕" };
const MARKERS = /\s?\[\[c\d+\]\]|\s?\[\[?c?\d*$/g; // also one that is only half here

export const seconds = (ms) => words.seconds.replace("%s", (ms / 1000).toFixed(1));

export class LiveTurn {
  constructor(article) {
    this.article = article;
    this.id = article.dataset.turn ?? null;
    this.answer = article.querySelector(".answer");
    this.details = article.querySelector(".steps");
    this.label = article.querySelector("[data-steps-label]");
    this.time = article.querySelector("[data-steps-time]");
    this.list = article.querySelector(".tl");
    this.over = false;
    this.stopping = false; // told to, perhaps before the server has named it
    this.touched = false;
    this.details.querySelector("summary").addEventListener("click", () => {
      this.touched = true;
    });
    this.reset();
  }

  static draw(question, files = []) {
    const article = document.getElementById("turn-template").content.firstElementChild.cloneNode(true);
    article.querySelector(".q").textContent = question;
    const list = article.querySelector(".files");
    list.hidden = !files.length;
    for (const file of files) {
      const item = document.createElement("li");
      item.className = "chip";
      const name = document.createElement("bdi");
      name.className = "trunc";
      name.textContent = file.name;
      item.append(name);
      list.append(item);
    }
    return new LiveTurn(article);
  }

  /** Forget what was drawn: all events come again from the first. */
  reset() {
    this.seq = 0;
    this.text = "";
    this.closed = 0;
    this.steps = new Map();
    this.answer.replaceChildren();
    this.list.replaceChildren();
    this.open = document.createElement("p");
    this.open.className = "open-block caret";
    this.began = performance.now();
  }

  /** Name the turn that the server made of the question. */
  adopt(id, parent, urls) {
    this.id = id;
    this.article.dataset.parent = parent ?? "";
    this.article.id = `turn-${id}`;
    this.article.dataset.turn = id;
    this.article.dataset.url = urls.turn.replace("TURN", id);
    this.article.dataset.sourceUrl = urls.source.replace("TURN", id);
  }

  /** It waits behind another turn, and may be withdrawn. */
  queue() {
    this.wait(words.sayQueued);
    this.queued = document.createElement("button");
    this.queued.type = "button";
    this.queued.className = "btn quiet sm";
    this.queued.dataset.withdraw = "";
    this.queued.textContent = words.sayWithdraw;
    this.article.querySelector(".ask-acts").append(this.queued);
  }

  unqueue() {
    if (!this.queued) return;
    this.queued.remove();
    this.queued = null;
    this.waited = true; // its clock begins now, not when it was asked
    this.label.textContent = words.working;
    this.began = performance.now();
  }

  tick() {
    if (!this.over && !this.queued) this.time.textContent = `· ${seconds(performance.now() - this.began)}`;
  }

  /** Apply one event. False if events are missing before it, so that they must be asked for. */
  apply(frame) {
    if (frame.seq <= this.seq) return true;
    const jump = frame.type === "turn.finished" && frame.status === "interrupted";
    if (frame.seq !== this.seq + 1 && !jump) return false;
    this.seq = frame.seq;
    if (!this.waited) this.began = Math.min(this.began, performance.now() - frame.at_ms);
    switch (frame.type) {
      case "turn.queued":
        if (frame.waiting) this.queue();
        break;
      case "turn.started":
        this.unqueue();
        break;
      case "token":
        this.write(frame.text);
        break;
      case "block":
        this.close(frame);
        break;
      case "step":
        this.node(frame);
        break;
      case "understanding":
        if (frame.rewrite_query) this.detail("query_understand", `“${frame.rewrite_query}”`);
        break;
      case "handoff":
        this.step("handoff", "handoff", "ok");
        this.fold("handoff", words.handoff, frame.text);
        break;
      case "plan":
        this.step("plan", "write_plan", "ok");
        this.fold("plan", words.plan, frame.steps.map((step) => `${SIGNS[step.state] ?? "○"} ${step.title}`).join("\n"));
        break;
      case "tool.started":
        if (!this.text) this.drop("answer");
        if (frame.name === "write_plan") break; // its plan is shown, once
        this.step(frame.call_id, frame.name, "running");
        this.detail(frame.call_id, asked(frame.arguments));
        break;
      case "tool.finished":
        if (!this.steps.has(frame.call_id)) break;
        this.step(frame.call_id, frame.name, frame.ok ? "ok" : "bad", frame.elapsed_ms);
        this.detail(frame.call_id, frame.summary);
        break;
      case "turn.finished":
        this.over = true;
        break;
    }
    return true;
  }

  write(text) {
    if (!this.text) {
      this.step("answer", "answer", "running");
      this.answer.append(this.open);
    }
    this.text += text;
    this.drawing ??= requestAnimationFrame(() => this.drawOpen());
  }

  drawOpen() {
    this.drawing = null;
    this.open.textContent = this.text.slice(this.closed).replace(MARKERS, "").trimStart();
  }

  /** A closed block replaces the plain text that it was, once. */
  close(frame) {
    const block = document.createElement("template");
    block.innerHTML = frame.html; // rendered and sanitised on the server
    this.open.before(block.content);
    this.closed = frame.end;
    this.drawOpen();
  }

  node(frame) {
    const name = frame.name === "agent" || frame.name === "generate" ? "answer" : frame.name;
    if (!(name in stepWords)) return;
    if (frame.status === "started") {
      if (name === "answer" && !this.text) this.drop("answer");
      this.step(name, name, "running");
    } else this.step(name, name, frame.status === "finished" ? "ok" : "bad", frame.elapsed_ms);
    if (typeof frame.detail === "string") this.detail(name, frame.detail);
  }

  step(key, name, state, elapsed = null) {
    let item = this.steps.get(key);
    if (!item) {
      item = document.createElement("li");
      item.append(document.createElement("b"), document.createElement("time"));
      this.steps.set(key, item);
      this.list.append(item);
    }
    const [running, done] = stepWords[name] ?? stepWords.other;
    item.dataset.s = state;
    item.firstChild.textContent = state === "running" ? running : done;
    if (elapsed !== null) item.querySelector("time").textContent = seconds(elapsed);
    if (state === "running") this.label.textContent = running;
  }

  detail(key, text) {
    const item = this.steps.get(key);
    if (!item || !text) return;
    let box = item.querySelector("div");
    if (!box) {
      box = document.createElement("div");
      box.dir = "auto";
      item.append(box);
    }
    box.textContent = box.textContent ? `${box.textContent} · ${text}` : text;
  }

  /** Put a longer text under a step, folded; a newer one replaces it. */
  fold(key, title, text) {
    const item = this.steps.get(key);
    const box = item.querySelector("details") ?? document.createElement("details");
    box.className = "fold";
    box.replaceChildren(document.createElement("summary"), document.createElement("div"));
    box.firstChild.textContent = title;
    box.lastChild.className = "prewrap";
    box.lastChild.dir = "auto";
    box.lastChild.textContent = text;
    item.append(box);
  }

  drop(key) {
    this.steps.get(key)?.remove();
    this.steps.delete(key);
  }

  /** Put the server's drawing of the finished turn in place, touching the answer only where it differs. */
  async settle() {
    const response = await fetch(this.article.dataset.url, { headers: { "HX-Request": "true" } });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const final = page.querySelector("article");
    if (!final) return;
    const details = final.querySelector(".steps");
    details.open = this.touched && this.details.open;
    this.open.remove();
    const answer = final.querySelector(".answer");
    if (answer.textContent.replace(/\s+/g, "") !== this.answer.textContent.replace(/\s+/g, "")) {
      this.answer.replaceWith(answer);
      this.answer = answer;
    }
    this.details.replaceWith(details);
    this.article.querySelector(".asked").replaceWith(final.querySelector(".asked"));
    const files = final.querySelector(".files");
    if (files) this.article.querySelector(".files")?.replaceWith(files);
    if (final.dataset.attachments) this.article.dataset.attachments = final.dataset.attachments;
    this.article.querySelector(".after").replaceWith(final.querySelector(".after"));
    this.article.dataset.status = final.dataset.status;
    this.article.setAttribute("aria-label", final.getAttribute("aria-label"));
  }

  /** Say under the article why nothing moves. */
  wait(sentence) {
    this.label.textContent = sentence;
  }
}

function asked(given) {
  const what = given?.query ?? given?.pattern ?? given?.url;
  return what ? `“${what}”` : "";
}
