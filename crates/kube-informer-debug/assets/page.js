
// The page: its connection, the list of events, and objects in detail.
(() => {
  const KEPT = 500, SHOWN = 150, PER_MESSAGE = 15;
  const $ = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const base = location.pathname.endsWith("/") ? location.pathname : location.pathname + "/";
  let about = { objects: false, buttons: [] }, events = [], paused = false, failures = "";

  function address(name, parameters) {
    const query = new URLSearchParams(parameters);
    if (token) query.set("token", token);
    return base + name + "?" + query;
  }

  async function ask(name, parameters, options) {
    const answer = await fetch(address(name, parameters), options);
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  // Summary.
  function summarize(data) {
    const all = data.informers.length, troubled = data.informers.filter((i) => i.level === "bad");
    const busy = data.informers.filter((i) => i.level === "busy" || i.level === "off");
    const names = (some) => some.slice(0, 3).map((i) => i.name).join(", ") + (some.length > 3 ? ", …" : "");
    let level = "ok", text = all === 1 ? "the informer is live" : `all ${all} informers are live`;
    if (all === 0) [level, text] = ["off", "there are no informers"];
    else if (troubled.length) [level, text] = ["bad", `in trouble: ${names(troubled)}`];
    else if (busy.length) [level, text] = ["busy", `not up to date: ${names(busy)}`];
    dress($("summary"), "pill " + level);
    say($("summary"), text);
  }

  // Events.
  const filters = $("filters");
  function passes(event) {
    const what = event.what === "missed" ? "delete" : event.what;
    return filters.elements[what].checked
      && (!filters.elements.informer.value || filters.elements.informer.value === event.informer)
      && event.namespace.includes(filters.elements.namespace.value.trim())
      && event.name.includes(filters.elements.name.value.trim());
  }

  const WORDS = { add: "added", update: "updated", delete: "deleted", missed: "deleted" };
  function row(event) {
    const item = make("li"), line = make("button", "event");
    line.type = "button";
    line.setAttribute("aria-expanded", "false");
    const key = make("bdi", "key", (event.namespace ? event.namespace + "/" : "") + event.name);
    line.append(make("time", "", clock(event.at)), make("span", "what " + event.what, WORDS[event.what]),
      make("bdi", "of", event.informer), key, make("span", "version", "version " + event.version));
    line.addEventListener("click", () => expand(event, item, line));
    item.append(line);
    return item;
  }

  async function expand(event, item, line) {
    const open = item.querySelector(".detail");
    line.setAttribute("aria-expanded", String(!open));
    if (open) return open.remove();
    const detail = make("div", "detail");
    item.append(detail);
    try {
      const found = await ask("event", { seq: event.seq });
      detail.append(...describe(found));
    } catch (problem) {
      detail.append(make("p", "hint", "This event is no longer kept."));
    }
    const show = make("button", "", "Show the object");
    show.type = "button";
    show.addEventListener("click", () => object(event));
    detail.append(show);
  }

  function describe(event) {
    const nodes = [];
    if (event.what === "missed") nodes.push(make("p", "hint", "The delete itself was missed: a list showed that the object is gone."));
    if (event.hidden) return nodes.concat(make("p", "hint", "The program hides the content of objects."));
    if (event.what !== "update") return nodes;
    if (!event.changes.length) return nodes.concat(make("p", "hint", "Nothing but the version changed."));
    const table = make("table", "changes");
    const head = table.createTHead().insertRow();
    for (const title of ["Field", "Before", "After"]) head.append(Object.assign(make("th", "", title), { scope: "col" }));
    const body = table.createTBody();
    for (const change of event.changes) {
      const row = body.insertRow();
      row.append(make("td", "", change.path), make("td", "old", change.old ?? "–"), make("td", "new", change.new ?? "–"));
    }
    nodes.push(table);
    if (event.more) nodes.push(make("p", "hint", `and ${event.more} more changes`));
    return nodes;
  }

  function refilter() {
    const shown = events.filter(passes).slice(-SHOWN).reverse();
    $("events").replaceChildren(...shown.map(row));
    empty();
  }

  function empty() {
    const none = $("events").children.length === 0;
    $("no-events").hidden = !none;
    if (none && events.length) say($("no-events"), "No event matches the filters.");
  }

  function arrive(data) {
    events.push(...data.events);
    if (events.length > KEPT) events = events.slice(-KEPT);
    for (const event of data.events) Picture.pass(event);
    if (paused || (!data.events.length && !data.more)) return;
    const list = $("events"), fresh = data.events.filter(passes);
    const left = data.more + Math.max(0, fresh.length - PER_MESSAGE);
    if (left > 0) list.prepend(make("li", "more", `${left} more`));
    for (const event of fresh.slice(-PER_MESSAGE)) list.prepend(row(event));
    while (list.children.length > SHOWN) list.lastChild.remove();
    empty();
  }

  filters.addEventListener("input", refilter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  $("pause").addEventListener("click", () => {
    paused = !paused;
    $("pause").setAttribute("aria-pressed", String(paused));
    say($("pause"), paused ? "Paused" : "Pause");
    if (!paused) refilter();
  });

  function offer(informers) {
    const select = filters.elements.informer, names = informers.map((i) => i.name);
    const known = Array.from(select.options).slice(1).map((option) => option.value);
    if (names.join("\n") === known.join("\n")) return;
    const chosen = select.value;
    select.replaceChildren(new Option("all", ""), ...names.map((name) => new Option(visible(name), name)));
    select.value = names.includes(chosen) ? chosen : "";
  }

  // Objects.
  function facts(pairs) {
    const list = make("dl");
    for (const [name, value] of pairs) if (value !== "" && value != null) list.append(make("dt", "", name), make("dd", "", value));
    return list;
  }

  async function object({ informer, namespace, name }) {
    const body = $("object-body");
    say($("object-title"), (namespace ? namespace + "/" : "") + name);
    body.replaceChildren(make("p", "hint", "reading …"));
    if (!$("object").open) $("object").showModal();
    let found;
    try {
      found = await ask("object", { informer, namespace, name });
    } catch (problem) {
      return body.replaceChildren(make("p", "hint", "The object is not in the cache any more, and its states are not kept."));
    }
    const nodes = [facts([["Informer", found.informer], ["uid", found.uid], ["Version", found.version], ["Generation", found.generation],
      ["State", found.cached ? (found.deleting ? "being deleted" : "in the cache") : "deleted; this is its last state"],
      ["Labels", found.labels.map(([label, value]) => label + "=" + value).join("\n")]])];
    if (found.owners.length) nodes.push(make("h3", "", "Owners"), owners(found.owners));
    nodes.push(make("h3", "", "History"), history(found.history));
    nodes.push(make("h3", "", "Content"), found.text == null ? make("p", "hint", "The program hides the content of objects.") : Object.assign(make("pre", "", found.text), { tabIndex: 0 }));
    body.replaceChildren(...nodes);
  }

  function owners(all) {
    const list = make("ul", "plain");
    for (const owner of all) {
      const item = make("li"), text = `${owner.kind} ${owner.name}` + (owner.controller ? " (controller)" : "");
      if (owner.informer) {
        const link = make("button", "link", text);
        link.type = "button";
        link.addEventListener("click", () => object(owner));
        item.append(link);
      } else item.append(make("span", "", text + ", which no informer has"));
      list.append(item);
    }
    return list;
  }

  function history(rows) {
    if (!rows.length) return make("p", "hint", "No change of it is kept.");
    const list = make("ol", "events");
    for (const event of rows) {
      const item = row(event);
      item.firstChild.querySelector(".key").remove();
      list.append(item);
    }
    return list;
  }
  $("close").addEventListener("click", () => $("object").close());

  // Objects that could not be kept.
  async function unkept(informers) {
    const troubled = informers.filter((i) => i.failed > 0);
    const now = troubled.map((i) => i.name + i.failed + i.version).join("\n");
    if (now === failures) return;
    failures = now;
    $("failed-section").hidden = troubled.length === 0;
    const rows = [];
    for (const { name } of troubled) {
      const found = await ask("failed", { informer: name }).catch(() => ({ failed: [] }));
      found.failed.forEach((f, at) => rows.push({ ...f, informer: name, id: name + at }));
    }
    Tables.failed(rows);
  }

  // Buttons.
  function buttons() {
    $("break").hidden = $("pressed-legend").hidden = about.buttons.length === 0;
    $("buttons").replaceChildren(...about.buttons.map(({ label, explanation }) => {
      const whole = make("div"), button = make("button", "", label);
      button.type = "button";
      button.addEventListener("click", async () => {
        button.disabled = true;
        try {
          await ask("press", { button: label }, { method: "POST" });
          say($("pressed"), `pressed: ${label}`);
        } catch (problem) {
          say($("pressed"), `${label} did not work: ${problem.message}`);
        }
        button.disabled = false;
      });
      whole.append(button, make("span", "hint", explanation));
      return whole;
    }));
  }

  // Theme.
  const theme = $("theme");
  function dressed(name) {
    document.documentElement.dataset.theme = name;
    theme.value = name;
  }
  let stored = "auto";
  try { stored = localStorage.getItem("kube-informer-theme") || "auto"; } catch (_) { /* no storage */ }
  dressed(["light", "dark"].includes(stored) ? stored : "auto");
  theme.addEventListener("change", () => {
    dressed(theme.value);
    try { localStorage.setItem("kube-informer-theme", theme.value); } catch (_) { /* no storage */ }
  });

  // The connection.
  function show(data) {
    $("lost").hidden = true;
    if (!document.hidden) {
      Picture.update(data);
      Tables.update(data);
    }
    summarize(data);
    offer(data.informers);
    unkept(data.informers);
  }

  const source = new EventSource(address("stream", {}));
  source.addEventListener("hello", (message) => {
    const data = JSON.parse(message.data);
    about = data.about;
    document.title = visible(about.title);
    say($("title"), about.title);
    buttons();
    events = data.events.slice();
    show(data);
    Timeline.reset(data);
    refilter();
  });
  source.addEventListener("beat", (message) => {
    const data = JSON.parse(message.data);
    show(data);
    Timeline.add(data);
    arrive(data);
  });
  source.addEventListener("error", () => {
    $("lost").hidden = false;
    dress($("summary"), "pill off");
    say($("summary"), "not connected");
  });
  window.addEventListener("resize", () => Picture.redraw());
})();
