// Sends files of the page Submit to the storage: digests in a worker, some requests at once, each again while the
// connection fails. What was sent before is known by its digest: so the same files, chosen again, go on where they were.
"use strict";

(() => {
  const $ = (id) => document.getElementById(id);
  const form = $("submission");
  if (!form) return;
  const parallel = 4, atOnce = 100, tries = 8;
  let files = [], busy = false;

  for (const id of ["choose", "manifest-of"]) $(id).hidden = false;
  for (const p of form.querySelectorAll(".plain")) p.hidden = true;

  const size = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
    return (i ? n.toFixed(1) : n) + " " + units[i];
  };
  const say = (text) => { $("sent").textContent = text; };
  const wait = (ms) => new Promise((done) => {
    setTimeout(done, ms);
    window.addEventListener("online", done, { once: true });
  });

  // Takes the token of a new form: that of this page is refused once its person has signed in again.
  const renew = async () => {
    const answer = await fetch(location.href).catch(() => null);
    const page = answer && answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page && page.getElementById("submission");
    if (!fresh || fresh.dataset.who !== form.dataset.who) return false;
    form.elements.form.value = fresh.elements.form.value;
    return true;
  };

  // A call of the console. What fails on the way, or is a failure of the server, is tried again.
  const call = async (path, body) => {
    let renewed = false;
    for (let n = 1; ; n++) {
      let answer;
      try {
        answer = await fetch(form.dataset.calls + path, { method: "POST", body: JSON.stringify(body),
          headers: { "Content-Type": "application/json", "Archivist-Form": form.elements.form.value } });
      } catch (err) {
        if (n === tries) throw new Error("the archive does not answer");
      }
      if (answer && answer.ok) return answer.json();
      if (answer && answer.status === 403 && !renewed && (renewed = await renew())) continue;
      if (answer && (answer.status < 500 && answer.status !== 429 || n === tries)) {
        const said = await answer.json().catch(() => ({}));
        throw new Error(said.problem || "the archive answers " + answer.status);
      }
      say("The connection has failed; trying again…");
      await wait(Math.min(30000, 500 * 2 ** n));
    }
  };

  // A request for the storage. It has progress, which fetch has not.
  const putOnce = (url, headers, body, progress) => new Promise((done, failed) => {
    const x = new XMLHttpRequest();
    x.open("PUT", url);
    for (const [name, value] of Object.entries(headers || {})) x.setRequestHeader(name, value);
    x.upload.onprogress = (e) => progress(e.loaded);
    x.onload = () => x.status < 300 ? done() : failed(Object.assign(new Error("the storage answers " + x.status),
      { refused: x.status < 500 && x.status !== 429 && x.status !== 408 }));
    x.onerror = () => failed(new Error("the storage does not answer"));
    x.send(body);
  });
  const put = async (url, headers, body, of) => {
    for (let n = 1; ; n++) {
      let before = 0;
      const progress = (loaded) => { moved(of, loaded - before); before = loaded; };
      try {
        await putOnce(url, headers, body, progress);
        progress(body.size);
        return;
      } catch (err) {
        progress(0);
        if (err.refused || n === tries) throw err;
        await wait(Math.min(30000, 500 * 2 ** n));
      }
    }
  };

  let total = 0, done = 0;
  const show = (f, text) => { if (f.cell && f.cell.textContent !== text) f.cell.textContent = text; };
  const moved = (f, n) => {
    f.sent += n;
    done += n;
    $("bar").value = done;
    show(f, f.size ? Math.floor(f.sent / f.size * 100) + " %" : "sending");
    say(size(done) + " of " + size(total) + " sent");
  };

  const inTurn = async (work, each) => {
    const left = work.slice();
    await Promise.all(Array.from({ length: parallel }, async () => {
      while (left.length) await each(left.shift());
    }));
  };

  const digests = async () => {
    const worker = new Worker(form.dataset.worker, { type: "module" });
    const asked = new Map();
    let read = 0;
    worker.onmessage = ({ data }) => {
      if (data.read) {
        read += data.read;
        $("bar").value = read;
        say("Digests: " + size(read) + " of " + size(total) + " read");
      } else {
        asked.get(data.number)(data);
      }
    };
    worker.onerror = () => { for (const f of asked.values()) f({ problem: "the digest cannot be computed" }); };
    try {
      for (const [number, f] of files.entries()) {
        if (f.sha256) { read += f.size; continue; }
        const out = await new Promise((f2) => { asked.set(number, f2); worker.postMessage({ number, file: f.file }); });
        if (out.problem) throw new Error(f.name + " cannot be read: " + out.problem);
        f.sha256 = out.sha256;
        show(f, "read");
      }
    } finally {
      worker.terminate();
    }
  };

  // Sends what is missing of at most a hundred contents, in rounds: a large one is sent in parts.
  const round = async (upload, contents) => {
    for (let fruitless = 0; contents.length && fruitless < 4; fruitless++) {
      const by = new Map(contents.map((f) => [f.sha256, f]));
      const items = await call("/" + upload + "/files",
        { files: contents.map((f) => ({ sha256: f.sha256, size: f.size })) });
      const requests = [], complete = [];
      for (const item of items) {
        const f = by.get(item.sha256);
        if (item.stored) { moved(f, f.size - f.sent); show(f, "sent"); continue; }
        if (item.put) { f.left = 1; requests.push({ f, url: item.put.url, headers: item.put.headers, body: f.file }); }
        if (item.parts) {
          const p = item.parts, sizeOf = (n) => Math.min(p.partSize, f.size - (n - 1) * p.partSize);
          f.left = p.count - p.stored.length;
          moved(f, p.stored.reduce((sum, n) => sum + sizeOf(n), 0) - f.sent);
          for (const n of p.urls) {
            const from = (n.number - 1) * p.partSize;
            requests.push({ f, url: n.url, body: f.file.slice(from, from + sizeOf(n.number)) });
          }
        }
        if (item.parts && f.left === 0) complete.push(f);
      }
      let problem;
      await inTurn(requests, async (q) => {
        try {
          await put(q.url, q.headers, q.body, q.f);
          if (--q.f.left === 0) complete.push(q.f);
          fruitless = -1;
        } catch (err) {
          problem = err; // its request may have expired: the next round has a new one
        }
      });
      const left = new Set(items.filter((i) => !i.stored).map((i) => i.sha256));
      if (complete.length) {
        for (const s of await call("/" + upload + "/stored", { stored: complete.map((f) => f.sha256) })) {
          const f = by.get(s.sha256);
          if (s.stored) { left.delete(s.sha256); show(f, "sent"); continue; }
          problem = new Error(s.problem);
          f.wrong = (f.wrong || 0) + 1;
          if (f.wrong === 3) { // it has changed since its digest was computed: the next try computes that again
            f.sha256 = f.wrong = undefined;
            throw problem;
          }
        }
      }
      contents = contents.filter((f) => left.has(f.sha256));
      if (contents.length && fruitless === 3) throw problem || new Error("the storage takes no more");
    }
  };

  const send = async (again) => {
    if (busy || !files.length) return;
    const collection = form.elements.collection.value.trim();
    if (!collection) { form.elements.collection.reportValidity?.(); form.elements.collection.focus(); return; }
    busy = true;
    $("send").disabled = true;
    $("once-more").hidden = $("ready").hidden = true;
    $("all").hidden = false;
    try {
      $("bar").max = Math.max(total, 1);
      await digests();
      const up = await call("", { collection, each: $("as").value === "each", again,
        chosen: files.map((f) => ({ name: f.name, sha256: f.sha256, size: f.size })) });
      if (up.batch) {
        say("These files were submitted already, as the batch " + up.batch + ".");
        $("once-more").hidden = false;
        return;
      }
      const contents = [...new Map(files.map((f) => [f.sha256, f])).values()];
      if (up.manifest) {
        const text = new Blob([up.manifest]);
        contents.push({ name: "manifest", file: text, size: text.size, sent: 0, sha256: up.manifestSha256 });
        total += text.size;
      }
      done = 0;
      for (const f of contents) f.sent = 0;
      total = contents.reduce((sum, f) => sum + f.size, 0);
      $("bar").max = Math.max(total, 1);
      for (let at = 0; at < contents.length; at += atOnce) await round(up.id, contents.slice(at, at + atOnce));
      for (const f of files) show(f, "sent");
      $("upload").value = up.id;
      $("file").value = up.payload.file || "";
      $("sent-type").value = up.payload.type || "";
      $("sent-name").value = up.payload.filename || "";
      $("ready-id").textContent = up.id;
      $("ready").hidden = false;
      say("All " + files.length + " files are sent: " + size(total) + ". Describe them, and submit.");
    } catch (err) {
      say("Not all is sent: " + err.message + ". Send them again: it goes on where it was.");
    } finally {
      busy = false;
      $("send").disabled = false;
    }
  };

  const choose = (all) => {
    if (busy || !all.length) return;
    files = all.map(([name, file]) => ({ name, file, size: file.size, sent: 0 }));
    total = files.reduce((sum, f) => sum + f.size, 0);
    form.elements.kind.value = "files";
    $("upload").value = "";
    $("ready").hidden = true;
    $("send").hidden = false;
    $("chosen").textContent = files.length + (files.length === 1 ? " file, " : " files, ") + size(total);
    const rows = $("each");
    rows.textContent = "";
    for (const f of files.slice(0, 500)) {
      const row = rows.insertRow();
      const name = row.insertCell(), bytes = row.insertCell();
      f.cell = row.insertCell();
      name.className = "text";
      name.dir = "auto";
      name.textContent = f.name;
      bytes.textContent = size(f.size);
      f.cell.textContent = "waits";
    }
    $("each-wide").hidden = false;
  };

  // In an object, names begin below the folder that was chosen.
  const below = (path) => path.replace(/^[^/]*\//, "");
  $("some").addEventListener("change", (e) => choose([...e.target.files].map((f) => [f.name, f])));
  $("folder").addEventListener("change", (e) =>
    choose([...e.target.files].map((f) => [below(f.webkitRelativePath || f.name), f])));
  const walk = async (entry, path, into) => {
    if (entry.isFile) {
      into.push([path + entry.name, await new Promise((ok, bad) => entry.file(ok, bad))]);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((ok, bad) => reader.readEntries(ok, bad));
      if (!some.length) return;
      for (const e of some) await walk(e, path + entry.name + "/", into);
    }
  };
  const drop = $("drop");
  drop.addEventListener("dragover", (e) => { e.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", async (e) => {
    e.preventDefault();
    drop.classList.remove("over");
    const entries = [...e.dataTransfer.items].map((i) => i.webkitGetAsEntry?.()).filter(Boolean), all = [];
    try {
      for (const entry of entries) await walk(entry, "", all);
    } catch (err) {
      $("chosen").textContent = "It cannot be read: " + err.message;
      return;
    }
    const folder = entries.length === 1 && entries[0].isDirectory;
    choose(folder ? all.map(([name, file]) => [below(name), file]) : all);
  });
  $("send").addEventListener("click", () => send(false));
  $("once-more").addEventListener("click", () => send(true));
  $("as").addEventListener("change", () => { $("upload").value = ""; $("ready").hidden = true; });
  $("manifest-file").addEventListener("change", async (e) => {
    const [file] = e.target.files;
    if (!file) return;
    form.elements.kind.value = "manifest";
    $("manifest").value = await file.text();
  });
  window.addEventListener("beforeunload", (e) => { if (busy) e.preventDefault(); });
})();
