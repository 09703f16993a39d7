// The console works without this file. It adds what changes in place, times in the reader's zone, and shortcuts.
"use strict";

(() => {
  const live = () => document.getElementById("live");

  // Times are written in UTC. They are shown in the zone of the reader; UTC is the title.
  const local = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const showTimes = (root) => {
    for (const t of root.querySelectorAll("time[datetime]:not([title])")) {
      const at = new Date(t.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      t.title = t.textContent;
      t.textContent = local.format(at);
    }
  };

  // A part is not replaced while somebody writes in it, has opened something in it, or has selected something.
  const busy = (part) => {
    const at = document.activeElement;
    if (part.contains(at) && at.matches("input, select, textarea")) return true;
    if (part.querySelector("details[open]")) return true;
    for (const field of part.querySelectorAll("input:not([type=hidden])")) {
      if (field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue) {
        return true;
      }
    }
    return false;
  };

  // In a narrow window the pages stand in a row, which is scrolled to the one that is open.
  const here = document.querySelector("nav.places [aria-current]");
  if (here) {
    const row = here.closest("nav"), at = here.getBoundingClientRect();
    row.scrollLeft += at.left + at.width / 2 - row.clientWidth / 2;
  }

  const stale = (text, to) => {
    const p = document.getElementById("stale");
    p.hidden = !text;
    p.textContent = text;
    if (to) {
      const a = document.createElement("a");
      a.href = location.href;
      a.textContent = to;
      p.append(" ", a);
    }
  };

  document.addEventListener("htmx:configRequest", (e) => {
    const tag = e.detail.elt.dataset.tag;
    if (tag) e.detail.headers["If-None-Match"] = tag;
  });
  // While nothing changes, it is asked less and less often: after twice as long each time, up to what the page says.
  // live.go counts by the same rule.
  const most = (part) => 1000 * part.dataset.most, least = (part) => 1000 * part.dataset.least;
  let pause = 0, next = 0;
  document.addEventListener("htmx:beforeRequest", (e) => {
    if (e.detail.elt.id !== "live") return;
    if (document.hidden || performance.now() < next) {
      e.preventDefault();
    } else if (busy(e.detail.elt)) {
      e.preventDefault();
      stale("Not refreshed while you fill in a form or have something open.");
    }
  });
  document.addEventListener("htmx:afterRequest", (e) => {
    const status = e.detail.xhr.status, part = live();
    if (status === 200 || status === 304) stale("");
    if (!part?.dataset.most) return; // it is not asked for again
    pause = status === 304 ? Math.min(2 * Math.max(pause, least(part)), most(part)) : least(part);
    next = performance.now() + pause - 100; // a tick of the clock is not missed by a little
  });
  document.addEventListener("htmx:responseError", (e) => {
    const status = e.detail.xhr.status;
    if (status === 401) stale("Your session has ended: what you see is not refreshed any more.", "Sign in");
    else stale("The archive answers " + status + ": what you see may be old.", "Load it again");
  });
  document.addEventListener("htmx:sendError", () => stale("The archive does not answer: what you see may be old."));
  // Who has the focus in the part has it on the same element of the new one: that of the same kind, address and name.
  const like = (part, at) => [...part.querySelectorAll(at.localName)].filter((e) =>
    e.getAttribute("href") === at.getAttribute("href") && e.textContent === at.textContent &&
    e.getAttribute("aria-label") === at.getAttribute("aria-label"));
  // Output that is followed stays at its end; who has scrolled up in it reads on where they are.
  const tail = () => live()?.querySelector(".tail");
  // How high is what came behind a text: its end is looked for, since the page of much output loses its begin.
  const behind = (log, text) => {
    const end = text.slice(-500), all = log.textContent, nodes = document.createTreeWalker(log, NodeFilter.SHOW_TEXT);
    let rest = all.lastIndexOf(end) + end.length;
    if (rest < end.length) return log.scrollHeight; // all of it is new
    if (rest === all.length) return 0;
    const range = document.createRange();
    range.selectNodeContents(log);
    while (nodes.nextNode() && rest >= nodes.currentNode.length) rest -= nodes.currentNode.length;
    range.setStart(nodes.currentNode, rest);
    return range.getBoundingClientRect().height;
  };
  let had = null, read = null;
  document.addEventListener("htmx:beforeSwap", () => {
    const part = live(), at = document.activeElement, log = tail();
    read = log && log.scrollTop < -1 ? { top: log.scrollTop, text: log.textContent } : null;
    had = part.contains(at) ? { at, n: like(part, at).indexOf(at) } : null;
  });
  document.addEventListener("htmx:afterSwap", () => {
    const part = live();
    if (had) like(part, had.at)[had.n]?.focus({ preventScroll: true });
    had = null;
    const log = tail();
    if (read && log) log.scrollTop = read.top - behind(log, read.text);
    read = null;
    const said = document.getElementById("said");
    if (part.dataset.said !== said.textContent) said.textContent = part.dataset.said;
    prepare(part);
  });
  document.addEventListener("visibilitychange", () => {
    const part = live();
    next = 0;
    if (!document.hidden && part) part.dispatchEvent(new Event("wake"));
  });

  // Selection of all rows of a list.
  const picked = () => {
    const count = document.getElementById("picked");
    if (count) count.textContent = "(" + document.querySelectorAll("input[name=job]:checked").length + ")";
  };
  document.addEventListener("change", (e) => {
    if (e.target.matches("input.all")) {
      for (const box of document.querySelectorAll("input[name=job]")) box.checked = e.target.checked;
    }
    picked();
  });

  const prepare = (root) => {
    showTimes(root);
    for (const hidden of root.querySelectorAll("button.copy[hidden], button.keys[hidden], input.all[hidden]")) {
      hidden.hidden = false;
    }
    picked();
  };

  document.addEventListener("click", (e) => {
    if (e.target.matches("button.copy")) {
      const button = e.target;
      navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent).then(
        () => { button.textContent = "Copied"; },
        () => { button.textContent = "Not copied: select it"; });
    }
    if (e.target.matches("button.keys")) document.getElementById("keys").showModal();
  });

  // A form is sent once: a second click does nothing. The API would know the request again, too.
  document.addEventListener("submit", (e) => {
    if (e.target.method !== "post") return;
    if (e.target.dataset.sent) e.preventDefault();
    e.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  // Shortcuts. They can be switched off, and do nothing while somebody writes.
  const on = document.getElementById("keys-on");
  on.checked = localStorage.getItem("archivist-keys") !== "off";
  on.addEventListener("change", () => localStorage.setItem("archivist-keys", on.checked ? "on" : "off"));
  let going = 0;
  document.addEventListener("keydown", (e) => {
    const writes = e.target.matches("input:not([type=checkbox]), select, textarea, [contenteditable]");
    if (!on.checked || writes || e.ctrlKey || e.altKey || e.metaKey || document.querySelector("dialog[open]")) return;
    if (e.key === "?") {
      document.getElementById("keys").showModal();
    } else if (e.key === "/") {
      e.preventDefault();
      document.getElementById("q")?.focus();
    } else if (e.key === "g") {
      going = e.timeStamp;
    } else if (e.timeStamp - going < 1500) {
      going = 0;
      document.querySelector('nav.places a[data-key="' + CSS.escape(e.key) + '"]')?.click();
    }
  });

  prepare(document);
})();
