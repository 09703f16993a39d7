// Completes a filter of events while it is written, at the place where it is written. The words are those of the
// server; only where a name begins and ends is known here. Without this file a field suggests examples.
"use strict";

(() => {
  let words, field, list, count, offers = [], at = -1, place = 0, taken = false;

  // Which sign leads from one place of the language to another.
  const next = { subject: { "|": "subject", "+": "action" }, action: { "|": "action", "{": "term", ":": "subject" },
    term: { "!": "term", "=": "value" }, value: { "|": "value", ",": "term", "}": "terms" }, terms: { ":": "subject" } };

  // Where a text ends: at which place, where the word there begins, and of which subjects and term it is.
  const read = (text) => {
    let where = "subject", word = 0, term = "", subjects = [], quoted = false;
    for (let i = 0; i < text.length; i++) {
      const c = text[i], to = next[where][c], done = text.slice(word, i).trim();
      if (c === '"' && where === "value") quoted = !quoted;
      if (quoted && c === "\\") i++;
      if (quoted || !to) continue;
      if (where === "subject") subjects.push(done);
      if (where === "term") term = done;
      if (to === "subject" && where !== "subject") subjects = [];
      where = to;
      word = i + 1;
    }
    return { where, subjects, term, quoted, word: word + text.slice(word).search(/\S|$/), bang: /!\s*$/.test(text) };
  };

  const same = (a, b) => a.toLowerCase() === b.toLowerCase();
  const some = (texts, means) => [...new Set(texts)].map((text) => ({ text, means }));

  // What is possible at a place.
  const possible = (is) => {
    const named = (s, name) => [s.name, ...s.also || []].some((n) => same(n, name));
    const of = words.subjects.filter((s) => is.subjects.some((name) => named(s, name)));
    const from = of.length ? of : words.subjects; // of All, and of a name that is not known, anything
    switch (is.where) {
      case "subject":
        return [...words.subjects.map((s) => ({ text: s.name, means: s.actions.join(", ") })),
          ...some(["All"], "of any type")];
      case "action": return [...some(from.flatMap((s) => s.actions)), ...some(["All"], "whatever happened")];
      case "term": return words.terms.map((t) => ({ text: t.name, means: t.means }));
      case "value": {
        const term = words.terms.find((t) => same(t.name, is.term));
        return some(same(is.term, "type") ? from.flatMap((s) => s.types) : term?.values || []);
      }
    }
    return [];
  };

  const signsAfter = (place, but) => words.signs.filter((s) => s.after === place && s.text !== but)
    .map((s) => ({ ...s, sign: true }));

  // What can be written at the end of a text: words that have what is written there, and signs if it is a whole word.
  const offered = (text) => {
    const is = read(text), part = text.slice(is.word).replace(/^"|\s+$/g, ""), all = possible(is);
    if (is.where === "terms") return [is, signsAfter("terms")];
    const whole = all.some((o) => same(o.text, part)), has = (o) => o.text.toLowerCase().indexOf(part.toLowerCase());
    const found = whole ? [] : all.filter((o) => has(o) >= 0);
    found.sort((a, b) => Math.min(has(a), 1) - Math.min(has(b), 1));
    const open = is.where === "value" && !words.terms.find((t) => same(t.name, is.term))?.only;
    if (part && !is.quoted && (whole || open)) {
      found.push(...signsAfter(is.where === "term" ? "field" : is.where, whole || /\*$/.test(part) ? "*" : ""));
    }
    if (is.where === "term" && !part && !is.bang) found.push(...signsAfter("brace"));
    return [is, found];
  };

  const choose = (n) => {
    list.children[at]?.removeAttribute("aria-selected");
    at = n;
    const one = list.children[at];
    one?.setAttribute("aria-selected", "true");
    one?.scrollIntoView({ block: "nearest" });
    if (one) field.setAttribute("aria-activedescendant", one.id);
    else field.removeAttribute("aria-activedescendant");
  };

  const close = () => {
    if (!list) return;
    list.hidden = true;
    at = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };

  const show = () => {
    if (!words || !field?.isConnected) return;
    place = field.selectionStart;
    const [is, found] = offered(field.value.slice(0, place));
    offers = field.value ? found : [...field.examples, ...found];
    offers.forEach((o) => { o.from ??= o.sign ? field.selectionStart : is.word; });
    list.replaceChildren(...offers.map((o, n) => {
      const line = document.createElement("span"), word = document.createElement("b");
      line.id = list.id + "-" + n;
      line.setAttribute("role", "option");
      word.textContent = o.text;
      line.append(word, " ", o.means || "");
      return line;
    }));
    count.textContent = offers.length ? offers.length + " completions. Down and up choose one, Enter takes it." : "";
    close();
    list.hidden = !offers.length;
    field.setAttribute("aria-expanded", String(!list.hidden));
  };

  // The list is of the place for which it was made: who goes to another one asks again.
  const moved = () => { if (list && !list.hidden && field.selectionStart !== place) close(); };

  const take = (o) => {
    const rest = field.value.slice(field.selectionStart), head = field.value.slice(0, o.from);
    const plain = o.sign || o.whole || read(head).where !== "value" || /^[\w.@\/-]+$/.test(o.text);
    const text = plain ? o.text : '"' + o.text.replace(/["\\]/g, "\\$&") + '"';
    field.value = head + text + (o.sign ? rest : rest.replace(/^[^:+|{},=!"]*"?/, ""));
    field.setSelectionRange(head.length + text.length, head.length + text.length);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };

  // A field becomes a combobox once the words are there.
  const begin = async (input) => {
    try {
      words ??= await fetch(input.dataset.words).then((r) => r.ok ? r.json() : undefined);
    } catch { return; } // the field works as it is
    if (!words || document.activeElement !== input) return;
    field = input;
    list = document.getElementById(input.id + "-words");
    count = list?.nextElementSibling;
    if (list) return;
    list = document.createElement("span");
    count = document.createElement("span");
    Object.assign(list, { id: input.id + "-words", className: "words", hidden: true });
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Completions of the filter");
    count.className = "hidden";
    count.setAttribute("role", "status");
    input.after(list, count);
    input.examples = [...input.list?.options || []]
      .map((o) => ({ text: o.value, means: "an example", from: 0, whole: true }));
    input.removeAttribute("list");
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-expanded", "false");
    input.setAttribute("aria-controls", list.id);
  };

  document.addEventListener("focusin", (e) => { if (e.target.matches("input[data-words]")) begin(e.target); });
  document.addEventListener("focusout", (e) => { if (e.target === field) close(); });
  document.addEventListener("input", (e) => { if (e.target === field) show(); });
  document.addEventListener("mousedown", (e) => { // the focus stays in the field
    if (e.target.closest(".words")) e.preventDefault();
  });
  document.addEventListener("click", (e) => {
    const line = e.target.closest(".words > [role=option]");
    moved();
    if (line && !list.hidden) take(offers[[...line.parentElement.children].indexOf(line)]);
  });
  document.addEventListener("keydown", (e) => {
    if (e.target !== field || !list || e.isComposing) return;
    moved();
    const open = !list.hidden, step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) {
      if (!open) show();
      const n = offers.length + 1; // one is none: what is written
      if (!list.hidden) choose((at + 1 + step + n) % n - 1);
    } else if (e.key === "Enter" && open && at >= 0) {
      take(offers[at]);
      taken = true;
    } else if (e.key === "Escape" && open) {
      close();
    } else {
      if (e.key === "Enter") close();
      return;
    }
    e.preventDefault();
  });
  // The key that takes a completion does not send the form.
  document.addEventListener("keyup", () => {
    taken = false;
    moved();
  });
  document.addEventListener("submit", (e) => {
    if (!taken) return;
    e.preventDefault();
    e.stopPropagation();
  }, true);
  if (document.activeElement?.matches("input[data-words]")) begin(document.activeElement);
})();
