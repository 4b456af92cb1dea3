// KnowSphere's chat on another site:
//   <script src="https://…/widget.js" data-widget="ID" async></script>
// A bubble in a shadow root and a frame: the site's styles do not reach them, nor theirs the site. It never throws into
// the page, loads its frame only when it is opened, and shows nothing where the site is not allowed.
(() => {
  "use strict";
  const tag = document.currentScript;
  const id = tag?.dataset.widget;
  if (!id || window.__knowsphere?.[id]) return;
  (window.__knowsphere ??= {})[id] = true;
  const site = new URL(tag.src).origin;
  const base = `${site}/widget/${encodeURIComponent(id)}/`;
  const language = (tag.dataset.language || document.documentElement.lang || navigator.language || "").slice(0, 2);
  const lang = `?lang=${encodeURIComponent(language)}`;
  const OPEN = `ks-open-${id}`;

  const greet = async () => {
    const body = JSON.stringify({ identity: tag.dataset.identity || "" });
    const response = await fetch(`${base}greet/${lang}`, { method: "POST", body, credentials: "omit", referrerPolicy: "origin" });
    const found = await response.json();
    if (!response.ok) throw new Error(`${found.code}: ${found.message}`);
    return found;
  };

  const start = async () => {
    const hello = await greet();
    let ticket = hello.ticket;
    const host = document.createElement("div");
    host.style.cssText = "all:initial;position:fixed;z-index:2147483000;inset:auto";
    const root = host.attachShadow({ mode: "open" });
    const side = hello.position === "start" ? "left" : "right";
    const style = new CSSStyleSheet(); // a style element would need the site's policy to allow it
    style.replaceSync(`
      button{position:fixed;bottom:20px;${side}:20px;width:56px;height:56px;border:0;border-radius:50%;cursor:pointer;
        background:${hello.color};color:#fff;box-shadow:0 4px 12px rgb(0 0 0/.15),0 12px 32px rgb(0 0 0/.2)}
      button:focus-visible{outline:3px solid ${hello.color};outline-offset:3px}
      svg{width:26px;height:26px;display:block;margin:auto}
      iframe{position:fixed;bottom:92px;${side}:20px;width:400px;height:min(640px,calc(100dvh - 120px));border:1px solid rgb(128 128 128/.3);
        border-radius:16px;background:Canvas;color-scheme:light dark;box-shadow:0 4px 12px rgb(0 0 0/.1),0 24px 64px rgb(0 0 0/.22)}
      .new button::after{content:"";position:absolute;top:0;${side}:0;width:12px;height:12px;border-radius:50%;background:#c4320a;border:2px solid #fff}
      [hidden]{display:none}
      @media (max-width:640px){iframe{inset:0;width:100%;height:100dvh;border:0;border-radius:0}.open button{display:none}}`);
    const box = document.createElement("div");
    const bubble = document.createElement("button");
    bubble.type = "button";
    bubble.setAttribute("aria-label", hello.open);
    bubble.title = hello.title;
    bubble.setAttribute("aria-expanded", "false");
    const drawn = (name, set, ...inside) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(set)) made.setAttribute(key, value);
      made.append(...inside);
      return made;
    };
    const sign = { viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", "stroke-width": "1.8", "stroke-linejoin": "round" };
    bubble.append(drawn("svg", { ...sign, "aria-hidden": "true" }, drawn("path", { d: "M4 5h16v11H9l-5 4z" })));
    box.append(bubble);
    root.adoptedStyleSheets = [style];
    root.append(box);
    document.body.append(host);
    let frame = null;

    const show = (open) => {
      if (open && !frame) {
        frame = document.createElement("iframe");
        frame.title = hello.title;
        frame.allow = "clipboard-write";
        frame.referrerPolicy = "origin";
        frame.src = `${base}${lang}#${ticket}`;
        ticket = null;
        box.prepend(frame);
      }
      if (frame) frame.hidden = !open;
      box.className = open ? "open" : "";
      bubble.setAttribute("aria-expanded", String(open));
      bubble.setAttribute("aria-label", open ? hello.close : hello.open);
      try {
        sessionStorage.setItem(OPEN, open ? "1" : "");
      } catch {
        // A site without storage forgets whether the chat was open.
      }
      if (open) frame.focus();
      else bubble.focus();
    };

    bubble.addEventListener("click", () => show(!frame || frame.hidden));
    addEventListener("message", (event) => {
      if (!frame || event.source !== frame.contentWindow || event.origin !== site) return;
      if (event.data?.knowsphere === "close") show(false);
      else if (event.data?.knowsphere === "answered") {
        if (!frame.hidden) return;
        box.className = "new"; // until it is opened
        bubble.setAttribute("aria-label", hello.unread);
      }
      else if (event.data?.knowsphere === "ticket")
        greet()
          .then((found) => frame.contentWindow.postMessage({ knowsphereTicket: found.ticket }, site))
          .catch(() => {});
    });
    let was = "";
    try {
      was = sessionStorage.getItem(OPEN);
    } catch {
      was = "";
    }
    if (was) show(true);
  };

  const begin = () => start().catch((error) => console.warn(`KnowSphere: ${error.message}`));
  if (document.body) begin();
  else addEventListener("DOMContentLoaded", begin);
})();
