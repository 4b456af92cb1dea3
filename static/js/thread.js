// A conversation: one socket, the turns that it tells of, the composer, and following the end.

import { toast } from "./app.js";
import { question, write } from "./composer.js";
import { watchMarkers } from "./panel.js";
import { ConversationSocket } from "./socket.js";
import { LiveTurn } from "./turn.js";

const page = document.querySelector("[data-thread]");
const thread = page.querySelector(".thread");
const form = page.querySelector("[data-composer]");
const words = page.querySelector("[data-words]").dataset;
const offline = page.querySelector("[data-offline]");
const toEnd = page.querySelector(".to-end");
const sendButton = form.querySelector("[data-send]");
const stopButton = form.querySelector("[data-stop]");
const base = `/${location.pathname.split("/")[1]}/turns/TURN/`;
const urls = { turn: base, source: `${base}sources/0/` };

const turns = new Map(); // by the server's id
let pending = null; // { frame, turn }: a question that the server has not taken yet
let following = true;

for (const article of page.querySelectorAll("article[data-turn]")) {
  if (["queued", "running"].includes(article.dataset.status)) turns.set(article.dataset.turn, new LiveTurn(article));
}

const socket = new ConversationSocket(page.dataset.socket, { open, frame, waiting, refused });

function open(again) {
  for (const turn of turns.values()) if (!turn.over) resume(turn);
  if (pending) socket.send(pending.frame); // the same client_id: never a second turn
  if (again) catchUp();
}

const resume = (turn) => socket.send({ type: "resume", turn: turn.id, after: turn.seq });

/** After a break: turns that were asked elsewhere meanwhile. */
async function catchUp() {
  const response = await fetch(location.href).catch(() => null);
  if (!response?.ok || response.redirected) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const article of fresh.querySelectorAll("article[data-turn]")) {
    if (document.getElementById(article.id) || pending) continue;
    toEnd.before(article);
    if (!["queued", "running"].includes(article.dataset.status)) continue;
    turns.set(article.dataset.turn, new LiveTurn(article));
    resume(turns.get(article.dataset.turn));
  }
}

function frame(event) {
  if (event.type === "error") {
    failed(event);
    return;
  }
  let turn = turns.get(event.turn);
  if (!turn) {
    if (document.getElementById(`turn-${event.turn}`)) return; // finished before this page was drawn
    turn = begin(event);
  }
  if (!turn || turn.over) return;
  if (!turn.apply(event)) {
    resume(turn);
    return;
  }
  if (turn.over) finish(turn, event);
  mode();
  follow();
}

/** A turn that this page did not know: its own question, or one of another tab. */
function begin(event) {
  if (event.question === undefined) {
    socket.send({ type: "resume", turn: event.turn, after: 0 });
    return null;
  }
  const mine = pending && (event.client_id ? event.client_id === pending.frame.client_id : event.question.trim() === pending.frame.text);
  const turn = mine ? pending.turn : LiveTurn.draw(event.question);
  if (mine) pending = null;
  else toEnd.before(turn.article);
  turn.adopt(event.turn, urls);
  turns.set(event.turn, turn);
  return turn;
}

async function finish(turn, event) {
  if (event.status === "interrupted") turn.text = ""; // what was seen above last_seq is void
  await turn.settle().catch(() => null);
  turns.delete(turn.id);
  const answered = event.status === "succeeded" || event.status === "waiting";
  page.querySelector("[data-announce]").textContent = answered ? words.ready : words.broken;
  mode();
  follow();
}

function failed(event) {
  toast(event.message ?? words.refused, { state: "bad" });
  if (!pending) return;
  pending.turn.article.remove();
  write(pending.frame.text);
  pending = null;
  mode();
}

function refused() {
  offline.hidden = true;
  sendButton.disabled = true;
}

function waiting(left) {
  offline.hidden = left === null;
  if (left === null) return;
  offline.querySelector("[data-offline-text]").textContent = left > 0 ? words.lost.replace("%s", left) : words.connecting;
  if (pending) pending.turn.wait(words.waiting);
}
offline.querySelector("[data-reconnect]").addEventListener("click", () => socket.now());

// Asking and stopping

const running = () => [...turns.values()].find((turn) => !turn.over);

function mode() {
  const busy = Boolean(pending || running());
  sendButton.hidden = busy;
  stopButton.hidden = !busy;
  if (!busy) stopButton.disabled = false;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = question();
  if (!asked || pending || running()) return;
  ask(asked);
  write("");
});

function ask(asked) {
  const turn = LiveTurn.draw(asked.text);
  toEnd.before(turn.article);
  pending = { frame: asked, turn };
  if (!socket.send(asked)) turn.wait(words.waiting);
  following = true;
  mode();
  follow();
}

stopButton.addEventListener("click", () => {
  const turn = running();
  if (turn && socket.send({ type: "stop", turn: turn.id })) {
    stopButton.disabled = true;
    turn.wait(words.stopping);
  } else if (pending && !socket.ready) {
    pending.turn.article.remove();
    write(pending.frame.text);
    pending = null;
    mode();
  }
});

document.addEventListener("click", (event) => {
  const retry = event.target.closest?.("[data-retry]");
  if (retry && !pending && !running()) {
    ask({ ...questionOf(retry.closest("article")) });
    return;
  }
  const copy = event.target.closest?.("[data-copy]");
  if (copy) copyAnswer(copy.closest("article"));
});

function questionOf(article) {
  const kept = form.elements.text.value;
  form.elements.text.value = article.querySelector(".q").textContent;
  const asked = question();
  form.elements.text.value = kept;
  return asked;
}

async function copyAnswer(article) {
  const sources = [...article.querySelectorAll(".sources > .src")].map((source) => source.innerText.replace(/\s*\n\s*/g, " "));
  await navigator.clipboard.writeText([article.querySelector(".answer").innerText, ...sources].join("\n\n"));
  toast(document.body.dataset.copied);
}

// Following the end: only a reader who is there already is moved.

thread.addEventListener("scroll", () => {
  following = thread.scrollHeight - thread.scrollTop - thread.clientHeight < 80;
  if (following) toEnd.hidden = true;
});
toEnd.querySelector("button").addEventListener("click", () => {
  following = true;
  follow();
});

function follow() {
  requestAnimationFrame(() => {
    if (following) thread.scrollTop = thread.scrollHeight;
    else toEnd.hidden = thread.scrollHeight - thread.scrollTop - thread.clientHeight < 80;
  });
}

setInterval(() => {
  for (const turn of turns.values()) turn.tick();
  pending?.turn.tick();
}, 100);

watchMarkers();
mode();
thread.scrollTop = thread.scrollHeight;
