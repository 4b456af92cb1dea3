// A conversation: one socket, the turns that it tells of, the composer, and following the end.

import { codes, watchAnswers } from "./answers.js";
import { toast } from "./app.js";
import { question, takeFiles, write } from "./composer.js";
import { Past } from "./past.js";
import { watchMarkers } from "./panel.js";
import { ConversationSocket } from "./socket.js";
import { LiveTurn } from "./turn.js";

const page = document.querySelector("[data-thread]");
const thread = page.querySelector(".thread");
const form = page.querySelector("[data-composer]");
const words = page.querySelector("[data-words]").dataset;
const offline = page.querySelector("[data-offline]");
const toEnd = page.querySelector(".to-end");
const behind = page.querySelector("[data-latest]"); // what stands after the last turn
const sendButton = form.querySelector("[data-send]");
const stopButton = form.querySelector("[data-stop]");
const base = `/${location.pathname.split("/")[1]}/turns/TURN/`;
const urls = { turn: base, source: `${base}sources/0/` };

const turns = new Map(); // by the server's id
const pending = new Map(); // client_id → { frame, turn }: questions that the server has not taken yet
let following = true;

for (const article of page.querySelectorAll("article[data-turn]")) {
  if (["queued", "running"].includes(article.dataset.status)) turns.set(article.dataset.turn, new LiveTurn(article));
}

const socket = new ConversationSocket(page.dataset.socket, { open, frame, waiting, refused });

function open(again) {
  for (const turn of turns.values()) {
    if (turn.over) continue;
    resume(turn);
    if (turn.stopping) stop(turn);
  }
  for (const { frame } of pending.values()) socket.send(frame); // the same client_id: never a second turn
  if (again) catchUp();
}

const resume = (turn) => socket.send({ type: "resume", turn: turn.id, after: turn.seq });

/** After a break: turns that were asked elsewhere meanwhile. */
async function catchUp() {
  if ("past" in page.dataset) return;
  const response = await fetch(location.href).catch(() => null);
  if (!response?.ok || response.redirected) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const article of fresh.querySelectorAll("article[data-turn]")) {
    if (document.getElementById(article.id) || pending.size) continue;
    behind.before(article);
    codes(article);
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
  if (event.question === undefined || event.client_id === undefined) {
    socket.send({ type: "resume", turn: event.turn, after: 0 });
    return null;
  }
  const mine = pending.get(event.client_id);
  const turn = mine ? mine.turn : LiveTurn.draw(event.question, event.attachments);
  pending.delete(event.client_id);
  if (!mine && !place(turn, event.parent)) return null;
  turn.adopt(event.turn, event.parent, urls);
  entitle(event.question);
  turns.set(event.turn, turn);
  if (turn.stopping) stop(turn);
  return turn;
}

/** The first question names the conversation, as a reload would. */
function entitle(question) {
  const title = page.querySelector("[data-untitled]");
  if (!title) return;
  delete title.dataset.untitled;
  title.textContent = question.replace(/\s+/g, " ").trim();
}

/** Put another tab's question behind the one that it follows; what stood there is another branch now. */
function place(turn, parent) {
  const before = parent ? document.getElementById(`turn-${parent}`) : null;
  if (parent && !before) {
    if (pending.size === 0 && !running()) location.assign(location.pathname); // it belongs to a branch that is not shown
    return false;
  }
  clearAfter(before);
  behind.before(turn.article);
  return true;
}

/** Take away all articles behind one; without one, all. */
function clearAfter(article) {
  const all = [...thread.querySelectorAll(":scope > article")];
  for (const old of all.slice(article ? all.indexOf(article) + 1 : 0)) {
    turns.delete(old.dataset.turn);
    old.remove();
  }
}

async function finish(turn, event) {
  if (event.status === "interrupted") turn.text = ""; // what was seen above last_seq is void
  await turn.settle().catch(() => null);
  codes(turn.article);
  globalThis.htmx?.process(turn.article);
  turns.delete(turn.id);
  const answered = event.status === "succeeded" || event.status === "waiting";
  page.querySelector("[data-announce]").textContent = answered ? words.ready : words.broken;
  mode();
  follow();
  past.forget();
}

function failed(event) {
  toast(event.message ?? words.refused, { state: "bad" });
  const [id, mine] = [...pending].at(-1) ?? [];
  if (!mine) return;
  pending.delete(id);
  takeBack(mine);
  mode();
}

/** A question that was not taken goes back into the field; what it stood in place of comes back. */
function takeBack({ frame, turn, replaced }) {
  turn.article.remove();
  if (replaced.length) behind.before(...replaced);
  else write(frame.text);
}

function refused() {
  offline.hidden = true;
  sendButton.disabled = true;
}

function waiting(left) {
  offline.hidden = left === null;
  if (left === null) return;
  offline.querySelector("[data-offline-text]").textContent = left > 0 ? words.lost.replace("%s", left) : words.connecting;
  for (const { turn } of pending.values()) turn.wait(words.waiting);
}
offline.querySelector("[data-reconnect]").addEventListener("click", () => socket.now());

// Asking and stopping

const running = () => [...turns.values()].find((turn) => !turn.over);
const busy = () => Boolean(pending.size || running());

/** Send and Stop share a place; while an answer is written, what is typed may be sent to wait its turn. */
function mode() {
  const typed = form.elements.text.value.trim() !== "";
  sendButton.hidden = busy() && !typed;
  stopButton.hidden = !busy() || typed;
  if (!busy()) stopButton.disabled = false;
}
form.elements.text.addEventListener("input", mode);

form.addEventListener("submit", (event) => {
  if ("past" in page.dataset) return; // far up in the past: the form leads to the end
  event.preventDefault();
  const asked = question();
  if (!asked) return;
  write("");
  ask(asked, { files: takeFiles() });
});

/** Put a question into the thread and send it: at the end, or in place of an article and all behind it. */
function ask(frame, { replacing = null, files = [] } = {}) {
  if ("past" in page.dataset && !replacing) {
    write(frame.text);
    form.requestSubmit();
    return;
  }
  const replaced = replacing ? [...thread.querySelectorAll(":scope > article")] : [];
  replaced.splice(0, replacing ? replaced.indexOf(replacing) : 0);
  if (!replacing && !frame.parent && !busy()) frame.parent = lastShown();
  for (const old of replaced) old.remove();
  const turn = LiveTurn.draw(frame.text, files);
  behind.before(turn.article);
  if (busy()) turn.wait(words.sayQueued);
  pending.set(frame.client_id, { frame, turn, replaced });
  if (!socket.send(frame)) turn.wait(words.waiting);
  following = true;
  mode();
  follow();
}

/** The turn that is last on this page: what is asked here follows it, whatever another tab has asked. */
const lastShown = () => [...thread.querySelectorAll(":scope > article[data-turn]")].at(-1)?.dataset.turn ?? null;

// What is shared is what is here now, not what was here when the page was drawn.
page.querySelector("#share").addEventListener("beforetoggle", () => {
  for (const field of page.querySelectorAll("#share [name=turn]")) field.value = lastShown() ?? "";
});

/** Stop a turn: now, or as soon as it has its name and there is a connection to say so. */
function stop(turn) {
  turn.stopping = true;
  turn.wait(words.stopping);
  if (turn.id) socket.send({ type: "stop", turn: turn.id });
}

stopButton.addEventListener("click", () => {
  if (pending.size && !socket.ready) {
    for (const mine of pending.values()) takeBack(mine);
    pending.clear();
    mode();
  }
  const turn = running() ?? [...pending.values()][0]?.turn;
  if (!turn) return;
  stopButton.disabled = true;
  stop(turn);
});

document.addEventListener("click", (event) => {
  const article = event.target.closest?.("[data-withdraw]")?.closest("article");
  if (article?.dataset.turn) socket.send({ type: "stop", turn: article.dataset.turn });
});

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
  for (const { turn } of pending.values()) turn.tick();
}, 100);

const past = new Past(page, { busy, leave: (article) => turns.delete(article.dataset.turn) });
watchMarkers();
watchAnswers({ ask, busy });
mode();
if (!location.hash) thread.scrollTop = thread.scrollHeight;
