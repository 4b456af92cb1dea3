// A conversation's socket: opens again after a break, waiting 1, 2, 4, 8 and then always 15 seconds.

const WAITS_S = [1, 2, 4, 8, 15];
const TOLERATED_MS = 3000; // a break shorter than this is not worth a word
const PING_MS = 25_000;
const SILENCE_MS = 10_000;

export class ConversationSocket {
  /** `on` has open(again), frame(frame), waiting(seconds | null), refused(code). `protocols` gives a token's words. */
  constructor(path, on, protocols = () => []) {
    this.url = new URL(path, location.href.replace(/^http/, "ws"));
    this.on = on;
    this.protocols = protocols;
    this.tries = 0;
    this.opened = false;
    this.brokenAt = null;
    addEventListener("online", () => this.now());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.now();
    });
    this.connect();
  }

  get ready() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  connect() {
    clearTimeout(this.timer);
    this.timer = null;
    const socket = new WebSocket(this.url, this.protocols());
    this.socket = socket;
    socket.addEventListener("open", () => {
      this.tries = 0;
      this.brokenAt = null;
      this.on.waiting(null);
      this.on.open(this.opened);
      this.opened = true;
      this.beat();
    });
    socket.addEventListener("message", (event) => {
      clearTimeout(this.silence);
      const frame = JSON.parse(event.data);
      if (frame.type !== "pong") this.on.frame(frame);
    });
    socket.addEventListener("close", (event) => {
      if (socket !== this.socket) return;
      clearInterval(this.pulse);
      clearTimeout(this.silence);
      if (event.code >= 4400 && event.code < 4500) this.on.refused(event.code);
      else this.wait();
    });
  }

  /** Send a frame; false if there is no connection. */
  send(frame) {
    if (!this.ready) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** Try at once instead of at the end of the wait. */
  now() {
    if (this.timer) this.connect();
  }

  wait() {
    this.brokenAt ??= Date.now();
    let left = WAITS_S[Math.min(this.tries, WAITS_S.length - 1)];
    this.tries += 1;
    const tick = () => {
      if (Date.now() - this.brokenAt > TOLERATED_MS || this.tries > 2) this.on.waiting(left);
      if (left <= 0) {
        this.connect();
        return;
      }
      left -= 1;
      this.timer = setTimeout(tick, 1000);
    };
    tick();
  }

  beat() {
    clearInterval(this.pulse);
    this.pulse = setInterval(() => {
      if (!this.send({ type: "ping" })) return;
      clearTimeout(this.silence);
      this.silence = setTimeout(() => this.socket.close(), SILENCE_MS);
    }, PING_MS);
  }
}
