// The chat inside the widget's frame. Its session lives in this frame's sessionStorage, so that it outlasts a
// change of page; the page around it only hands over tickets and hears when to close.

import { ConversationSocket } from "./socket.js";

const words = document.body.dataset;
const thread = document.getElementById("thread");
const form = document.getElementById("ask");
const question = document.getElementById("question");
const notice = document.getElementById("notice");
const said = document.getElementById("said");
const stepWords = JSON.parse(document.getElementById("step-words").textContent);
const MARKERS = /\s?\[\[c\d+\]\]|\s?\[\[?c?\d*$/g;
const KEY = `ks-visitor${words.base}`;
const DRAFT = `ks-draft${words.base}`;
const inFrame = parent !== window;
let token = sessionStorage.getItem(KEY) ?? "";
let socket = null;
let turn = null; // the one that is being written
let waitingTicket = null;
let wish = ""; // what was asked before the session was there

document.documentElement.style.setProperty("--brand", words.color);

// Talking to the page around, which is told nothing about the conversation.

const tell = (message) => inFrame && parent.postMessage({ knowsphere: message }, "*");

addEventListener("message", (event) => {
  if (event.source !== parent || typeof event.data?.knowsphereTicket !== "string") return;
  waitingTicket?.(event.data.knowsphereTicket);
  waitingTicket = null;
});

function ticket() {
  const given = location.hash.slice(1);
  if (given) {
    history.replaceState(null, "", location.pathname + location.search);
    return Promise.resolve(given);
  }
  if (!inFrame) return Promise.resolve("");
  return new Promise((resolve) => {
    waitingTicket = resolve;
    tell("ticket");
  });
}

async function call(path, { method = "GET", body = null, bearer = true } = {}) {
  const headers = bearer ? { Authorization: `Bearer ${token}` } : {};
  const url = words.base + path + location.search;
  const response = await fetch(url, { method, headers, body: body && JSON.stringify(body), credentials: "omit" });
  const found = await response.json();
  if (!response.ok) throw found;
  return found;
}

const keep = (given) => {
  token = given.token;
  sessionStorage.setItem(KEY, token);
};

async function signIn() {
  // A ticket that the page just handed over says who is there now: only without one the session simply goes on.
  if (token && location.hash.length < 2) {
    try {
      keep(await call("renew/", { method: "POST" }));
      return;
    } catch {
      // It is over: with a new ticket it goes on.
    }
  }
  keep(await call("session/", { method: "POST", bearer: false, body: { ticket: await ticket(), token } }));
}

function complain(text) {
  notice.textContent = text;
  notice.hidden = !text;
}

// Drawing

class Turn {
  constructor(text) {
    this.article = document.getElementById("turn-template").content.firstElementChild.cloneNode(true);
    this.article.querySelector(".q").textContent = text;
    this.working = this.article.querySelector(".working");
    this.answer = this.article.querySelector(".answer");
    this.cited = this.article.querySelector(".cited");
    this.open = document.createElement("p");
    thread.append(this.article);
    this.reset();
  }

  reset() {
    this.seq = 0;
    this.text = "";
    this.closed = 0;
    this.sources = [];
    this.answer.replaceChildren();
    this.cited.replaceChildren();
    this.working.textContent = words.working;
    this.working.hidden = false;
    this.answer.append(this.open);
  }

  /** Apply one event. False if events are missing before it. */
  apply(frame) {
    if (frame.seq <= this.seq) return true;
    const jump = frame.type === "turn.finished" && frame.status === "interrupted";
    if (frame.seq !== this.seq + 1 && !jump) return false;
    this.seq = frame.seq;
    const below = thread.scrollHeight - thread.scrollTop - thread.clientHeight < 80;
    if (frame.type === "token") {
      this.working.hidden = true;
      this.text += frame.text;
      this.open.textContent = this.text.slice(this.closed).replace(MARKERS, "").trimStart();
    } else if (frame.type === "block") {
      const block = document.createElement("template");
      block.innerHTML = frame.html; // rendered and sanitised on the server
      this.open.before(block.content);
      this.closed = frame.end;
      this.open.textContent = this.text.slice(this.closed).replace(MARKERS, "").trimStart();
    } else if (frame.type === "sources") this.sources = frame.sources;
    else if (frame.type === "step" || frame.type === "tool.started") this.step(frame);
    else if (frame.type === "turn.finished") this.end(frame);
    if (below) thread.scrollTop = thread.scrollHeight;
    return true;
  }

  /** Say what is being done, while nothing is written. */
  step(frame) {
    if (frame.status && frame.status !== "started") return;
    this.working.textContent = stepWords[frame.name]?.[0] ?? words.working;
  }

  end(frame) {
    this.over = true;
    tell("answered");
    this.working.hidden = true;
    if (!this.open.textContent) this.open.remove();
    if (frame.status === "stopped") this.remark(words.stopped);
    else if (frame.status !== "succeeded") this.remark(frame.error?.message ?? words.failed);
    this.list();
    said.textContent = this.answer.textContent;
  }

  remark(text) {
    const line = document.createElement("p");
    line.className = "small faint";
    line.textContent = text;
    this.answer.append(line);
  }

  /** The sources that the answer names, in the order of their markers. */
  list() {
    for (const box of this.answer.querySelectorAll("pre, .wide-box")) if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    const shown = new Map();
    for (const link of this.answer.querySelectorAll("a.cite")) {
      const n = Number(link.dataset.n);
      link.removeAttribute("href");
      link.tabIndex = 0;
      link.setAttribute("role", "button");
      const source = this.sources.find((one) => one.n === n);
      if (source && !shown.has(n)) shown.set(n, this.source(source, shown.size + 1));
      const go = () => {
        const listed = shown.get(n)?.querySelector(".src");
        if (listed?.localName === "button") listed.click();
        else listed?.focus();
      };
      link.addEventListener("click", go);
      link.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          go();
        }
      });
    }
    this.cited.replaceChildren(...shown.values());
  }

  source(source, number) {
    const item = document.createElement("li");
    const page = source.kind === "web" && /^https?:/.test(source.url ?? "");
    const label = document.createElement(page ? "a" : words.excerpts ? "button" : "span");
    label.className = "src";
    const part = (text, classes) => {
      const made = document.createElement("span");
      made.className = classes;
      made.dir = "auto";
      made.textContent = text;
      return made;
    };
    const where = source.page ? words.page.replace("%s", source.page) : "";
    const name = part(source.document || source.url || words.source, "trunc");
    label.append(part(number, "cite alone"), name, part(where, "faint where"));
    item.append(label);
    if (page) Object.assign(label, { href: source.url, target: "_blank", rel: "noopener noreferrer nofollow" });
    else if (!words.excerpts) label.tabIndex = -1;
    else {
      label.type = "button";
      label.setAttribute("aria-expanded", "false");
      label.addEventListener("click", () => this.unfold(item, label, source.n));
    }
    return item;
  }

  async unfold(item, label, n) {
    const quote = item.querySelector("blockquote");
    if (quote) quote.remove();
    else {
      try {
        const found = await call(`turns/${this.id}/sources/${n}/`);
        const box = document.createElement("blockquote");
        box.dir = "auto";
        box.textContent = found.text;
        item.append(box);
        box.scrollIntoView({ block: "nearest" });
      } catch (error) {
        complain(error?.message ?? words.failed);
      }
    }
    label.setAttribute("aria-expanded", String(Boolean(item.querySelector("blockquote"))));
  }
}

const turns = new Map();

function busy() {
  const writing = Boolean(turn && !turn.over);
  form.querySelector("[data-stop]").hidden = !writing;
  form.querySelector("[data-send]").hidden = writing;
}

function draw(past) {
  for (const one of thread.querySelectorAll("article")) one.remove();
  turns.clear();
  turn = null;
  for (const old of past) {
    const drawn = new Turn(old.question);
    drawn.id = old.id;
    turns.set(old.id, drawn);
    if (old.active) {
      turn = drawn;
      if (socket?.ready) socket.send({ type: "resume", turn: old.id, after: 0 });
      continue;
    }
    drawn.over = true;
    drawn.working.hidden = true;
    drawn.answer.innerHTML = old.html; // rendered and sanitised on the server
    drawn.sources = old.sources;
    if (old.status !== "succeeded") drawn.remark(old.status === "stopped" ? words.stopped : words.failed);
    drawn.list();
  }
  thread.querySelector(".greeting").hidden = past.length > 0;
  thread.scrollTop = thread.scrollHeight;
  busy();
}

// The socket

function listen() {
  socket = new ConversationSocket(
    words.socket,
    {
      open: () => {
        complain("");
        if (!turn || turn.over) return;
        socket.send(turn.id ? { type: "resume", turn: turn.id, after: turn.seq } : turn.frame);
        if (turn.stopping) stop();
      },
      frame: (frame) => take(frame),
      waiting: (left) => complain(left === null ? "" : words.waiting),
      refused: (code) => void refused(code),
    },
    () => ["knowsphere", token],
  );
}

/** Stop what is written; without a connection, as soon as there is one. Frames are taken in order, so no name is needed. */
function stop() {
  if (!turn) return;
  turn.stopping = true;
  socket.send({ type: "stop", turn: turn.id ?? null });
}

async function refused(code) {
  if (code !== 4401) return;
  try {
    await signIn();
    await reload();
    socket.connect();
  } catch (error) {
    complain(error?.message ?? words.failed);
  }
}

function take(frame) {
  if (frame.type === "error") {
    complain(frame.message);
    if (turn && !turn.id) {
      if (!question.value) question.value = turn.article.querySelector(".q").textContent; // nothing typed is lost
      turn.article.remove();
      turn = null;
      busy();
    }
    return;
  }
  let drawn = turns.get(frame.turn);
  if (!drawn && frame.type === "turn.queued") {
    drawn = turn && !turn.id && turn.client === frame.client_id ? turn : new Turn(frame.question);
    drawn.id = frame.turn;
    turns.set(frame.turn, drawn);
    turn = drawn;
    thread.querySelector(".greeting").hidden = true;
    busy();
  }
  if (!drawn || drawn.over) return;
  if (!drawn.apply(frame)) socket.send({ type: "resume", turn: frame.turn, after: drawn.seq });
  if (drawn.over && frame.status === "interrupted") void reload();
  busy();
}

async function reload() {
  draw((await call("history/")).turns);
}

function ask(text) {
  if ((turn && !turn.over) || !text.trim()) return;
  if (!socket) {
    wish = text;
    return;
  }
  complain("");
  turn = new Turn(text);
  turn.client = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;
  turn.frame = { type: "ask", text, client_id: turn.client, language: document.documentElement.lang };
  thread.querySelector(".greeting").hidden = true;
  thread.scrollTop = thread.scrollHeight;
  socket.send(turn.frame);
  busy();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (turn && !turn.over) return;
  ask(question.value);
  question.value = "";
  sessionStorage.removeItem(DRAFT);
});
question.value = sessionStorage.getItem(DRAFT) ?? "";
question.addEventListener("input", () => sessionStorage.setItem(DRAFT, question.value));
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) {
    event.preventDefault();
    form.requestSubmit();
  }
});
form.querySelector("[data-stop]").addEventListener("click", stop);
for (const one of form.elements) one.disabled = false; // what was asked before anybody listened would be lost
for (const starter of document.querySelectorAll("[data-starter]"))
  starter.addEventListener("click", () => ask(starter.textContent));
document.querySelector("[data-close]").addEventListener("click", () => tell("close"));
addEventListener("keydown", (event) => event.key === "Escape" && tell("close"));
document.querySelector("[data-again]").addEventListener("click", async () => {
  try {
    await call("again/", { method: "POST" });
    socket?.socket.close();
    draw([]);
    socket?.connect();
    question.focus();
  } catch (error) {
    complain(error?.message ?? words.failed);
  }
});

try {
  await signIn();
  await reload();
  listen();
  tell("ready");
  if (wish) ask(wish);
} catch (error) {
  complain(error?.code === "visitor_expired" && !inFrame ? words.alone : (error?.message ?? words.failed));
}
