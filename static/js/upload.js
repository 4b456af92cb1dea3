// Upload of many files and folders with progress: by drop or choice; two at a time, one request a file.
// The files of one drop are a batch: the server tells when all of them are settled.

import { codeOf, csrf, messageOf, toast } from "./app.js";

const AT_ONCE = 2;

for (const form of document.querySelectorAll("[data-upload]")) begin(form);

function begin(form) {
  const input = form.querySelector("input[type=file]");
  const area = form.querySelector(".drop, [data-drop]");
  const list = form.querySelector(".uploads");
  const waiting = [];
  let running = 0;
  let page = null; // where to go when all is stored, if not here

  input.addEventListener("change", () => {
    add(input.files);
    input.value = "";
  });
  // Anywhere on the page, so that a file dropped beside the area does not replace the page.
  document.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    area.dataset.over = "";
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) delete area.dataset.over;
  });
  document.addEventListener("drop", (event) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    delete area.dataset.over;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    if (entries.some((entry) => entry.isDirectory)) filesOf(entries).then(add);
    else add(event.dataTransfer.files);
  });
  form.querySelector("[data-folder]")?.addEventListener("change", (event) => {
    add(event.target.files);
    event.target.value = "";
  });
  addEventListener("beforeunload", (event) => {
    if (running || waiting.length) event.preventDefault();
  });

  function add(files) {
    const found = [...files].filter((file) => file.name !== ".DS_Store" && file.name !== "Thumbs.db");
    const batch = found.length > 1 ? { id: crypto.randomUUID?.() ?? "", total: found.length } : null;
    for (const file of found) waiting.push(Object.assign(row(file), { batch }));
    next();
  }

  function row(file) {
    const item = document.createElement("li");
    const name = document.createElement("bdi");
    name.className = "trunc";
    name.textContent = file.name;
    const side = document.createElement("span");
    side.className = "row nw";
    const state = document.createElement("span");
    state.className = "faint num";
    state.textContent = form.dataset.waiting;
    const stop = document.createElement("button");
    stop.type = "button";
    stop.className = "linkish";
    stop.textContent = form.dataset.cancel;
    side.append(state, stop);
    const bar = document.createElement("progress");
    bar.className = "prog";
    bar.max = 100;
    bar.value = 0;
    bar.setAttribute("aria-label", file.name);
    item.append(name, side, bar);
    list.append(item);
    const job = { file, item, state, stop, bar, request: null };
    stop.addEventListener("click", () => {
      const place = waiting.indexOf(job);
      if (place >= 0) waiting.splice(place, 1);
      job.request?.abort();
      item.remove();
    });
    return job;
  }

  function next() {
    while (running < AT_ONCE && waiting.length) {
      running += 1;
      send(waiting.shift());
    }
  }

  function send(job) {
    if (job.file.size > Number(form.dataset.largest) * 2 ** 20) {
      failed(job, form.dataset.tooLarge);
      running -= 1;
      return;
    }
    const body = new FormData();
    body.append("file", job.file);
    const folder = form.querySelector("input[name=folder]");
    if (folder) body.append("folder", folder.value);
    body.append("path", job.file.path || job.file.webkitRelativePath || "");
    body.append("if_same_name", job.sameName ?? "ask");
    if (job.batch?.id) {
      body.append("batch", job.batch.id);
      body.append("batch_total", job.batch.total);
    }
    const request = new XMLHttpRequest();
    job.request = request;
    request.open("POST", form.action);
    request.setRequestHeader("X-CSRFToken", csrf());
    request.setRequestHeader("Accept", "application/json");
    job.state.textContent = form.dataset.sending;
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      const share = Math.floor((100 * event.loaded) / event.total);
      job.bar.value = share;
      job.state.textContent = `${form.dataset.sending} ${share}%`;
    });
    request.addEventListener("load", () => {
      if (request.status === 201) arrived(job, JSON.parse(request.responseText));
      else if (codeOf(request.responseText) === "same_name") ask(job, messageOf(request.responseText));
      else failed(job, messageOf(request.responseText) ?? form.dataset.refused);
    });
    request.addEventListener("error", () => failed(job, form.dataset.broken));
    request.addEventListener("loadend", () => {
      running -= 1;
      next();
      if (running || request.status !== 201) return;
      if (page && !list.children.length) location.assign(page);
      else toast(form.dataset.done);
    });
    request.send(body);
  }

  function arrived(job, answer) {
    job.item.remove();
    if ("go" in form.dataset) page = answer.page;
    const rows = document.getElementById("rows");
    if (!rows) return;
    document.getElementById("no-documents")?.remove();
    document.getElementById(`document-${answer.id}`)?.remove();
    if (job.file.path || job.file.webkitRelativePath) {
      if (!running && !waiting.length) location.reload(); // folders that were made are in the table then
      return;
    }
    rows.insertAdjacentHTML("afterbegin", answer.row);
    htmx.process(rows);
    htmx.trigger("#poll", "resume");
  }

  // Another document of this name is there: the reader says what is to become of it.
  function ask(job, sentence) {
    job.bar.remove();
    job.state.textContent = "";
    const words = document.createElement("p");
    words.className = "err row";
    words.append(sentence);
    for (const [choice, label] of [["replace", form.dataset.replace], ["keep", form.dataset.keepBoth]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "btn sm";
      button.textContent = label;
      button.addEventListener("click", () => {
        words.replaceWith(job.bar);
        job.sameName = choice;
        waiting.push(job);
        next();
      });
      words.append(button);
    }
    job.item.append(words);
  }

  function failed(job, sentence) {
    job.bar.remove();
    job.state.textContent = "";
    job.stop.textContent = form.dataset.dismiss;
    const words = document.createElement("p");
    words.className = "err";
    words.textContent = sentence;
    job.item.append(words);
  }
}

/** The files below dropped entries, each with its path from where it was dropped. */
async function filesOf(entries) {
  const found = [];
  for (const entry of entries) {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      file.path = entry.fullPath.replace(/^\//, "");
      found.push(file);
    } else {
      const reader = entry.createReader();
      for (;;) {
        const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
        if (!some.length) break;
        found.push(...(await filesOf(some)));
      }
    }
  }
  return found;
}

// After "Try again", "Cancel" and "Delete" the server asks to look at the rows again.
document.addEventListener("resume", (event) => {
  if (event.target.id !== "poll") htmx.trigger("#poll", "resume");
});
