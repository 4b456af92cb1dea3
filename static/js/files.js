// Files of a question: uploaded at once, each a chip that says how far it is; sent as ids.

import { csrf, messageOf, toast } from "./app.js";

export class Files {
  constructor(form) {
    this.form = form;
    this.list = form.querySelector(".files");
    this.input = form.querySelector("[data-attach]");
    this.most = Number(form.dataset.mostFiles || 10);
    if (!this.list) return;
    this.input.addEventListener("change", () => {
      this.add(this.input.files);
      this.input.value = "";
    });
    form.elements.text.addEventListener("paste", (event) => {
      if (!event.clipboardData?.files.length) return;
      event.preventDefault();
      this.add(event.clipboardData.files);
    });
    // Anywhere on the page, so that a file dropped beside the field does not replace the page;
    // a page that takes documents has its own place for them.
    if (document.querySelector("[data-upload]")) return;
    document.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      form.dataset.over = "";
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) delete form.dataset.over;
    });
    document.addEventListener("drop", (event) => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      delete form.dataset.over;
      this.add(event.dataTransfer.files);
    });
  }

  add(files) {
    for (const file of files) {
      if (this.list.children.length >= this.most) {
        toast(this.form.dataset.tooMany.replace("%s", this.most), { state: "bad" });
        return;
      }
      this.upload(file, this.chip(file.name || this.form.dataset.pasted));
    }
  }

  chip(name) {
    const item = document.createElement("li");
    item.className = "chip";
    const label = document.createElement("bdi");
    label.className = "trunc";
    label.textContent = name;
    const bar = document.createElement("progress");
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "btn quiet icon sm";
    remove.setAttribute("aria-label", this.form.dataset.removeFile.replace("%s", name));
    remove.textContent = "×";
    remove.addEventListener("click", () => this.remove(item));
    item.append(label, bar, remove);
    this.list.append(item);
    this.list.hidden = false;
    return item;
  }

  upload(file, item) {
    const request = new XMLHttpRequest();
    item.request = request;
    request.open("POST", this.form.dataset.attachUrl);
    request.setRequestHeader("X-CSRFToken", csrf());
    request.setRequestHeader("Accept", "application/json");
    const bar = item.querySelector("progress");
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable && event.loaded < event.total) bar.value = event.loaded / event.total;
      else bar.removeAttribute("value"); // all is there; now it is read
    });
    request.addEventListener("load", () => {
      if (request.status !== 201) {
        this.fail(item, messageOf(request.responseText) ?? document.body.dataset.failed);
        return;
      }
      const found = JSON.parse(request.responseText);
      item.dataset.id = found.id;
      item.dataset.kind = found.kind;
      const hidden = document.createElement("input"); // for the form as it is sent without a socket
      hidden.type = "hidden";
      hidden.name = "attachment";
      hidden.value = found.id;
      item.append(hidden);
      bar.remove();
    });
    request.addEventListener("error", () => this.fail(item, document.body.dataset.unreachable));
    const data = new FormData();
    data.append("file", file, file.name || this.form.dataset.pasted);
    request.send(data);
  }

  fail(item, sentence) {
    item.querySelector("progress")?.remove();
    item.dataset.s = "bad";
    item.title = sentence;
    toast(sentence, { state: "bad" });
  }

  remove(item) {
    item.request?.abort();
    const id = item.dataset.id;
    if (id) {
      fetch(`${this.form.dataset.attachUrl}${id}/remove/`, { method: "POST", headers: { "X-CSRFToken": csrf() } }).catch(() => null);
    }
    item.remove();
    this.list.hidden = !this.list.children.length;
    this.form.elements.text.focus();
  }

  /** Whether the question may go: nothing is on its way. What failed is left behind. */
  settled() {
    if (!this.list?.querySelector("progress")) return true;
    toast(this.form.dataset.uploading);
    return false;
  }

  ids() {
    return [...(this.list?.querySelectorAll("[data-id]") ?? [])].map((item) => item.dataset.id);
  }

  /** Return what is shown with the question, and empty the list. */
  take() {
    if (!this.list) return [];
    const found = [...this.list.querySelectorAll("[data-id]")].map((item) => ({
      id: item.dataset.id,
      kind: item.dataset.kind,
      name: item.querySelector("bdi").textContent,
    }));
    this.list.replaceChildren();
    this.list.hidden = true;
    return found;
  }
}
