
// Tables whose rows are updated in place, so that a selection and the focus stay.
const Tables = (() => {
  function table(id, caption, columns) {
    const element = document.getElementById(id);
    element.className = "wide";
    const name = make("caption", "unseen", caption);
    const head = element.createTHead().insertRow();
    for (const column of columns) {
      const cell = make("th", column.number ? "number" : "", column.title);
      cell.scope = "col";
      head.append(cell);
    }
    element.prepend(name);
    const body = element.createTBody(), rows = new Map();
    return (items, key) => {
      const seen = new Set();
      items.forEach((item, at) => {
        const id = key(item);
        seen.add(id);
        let row = rows.get(id);
        if (!row) {
          row = make("tr");
          columns.forEach((column, c) => {
            const cell = make(c === 0 ? "th" : "td");
            if (c === 0) cell.scope = "row";
            else cell.dataset.label = column.title;
            row.append(cell);
          });
          rows.set(id, row);
        }
        if (body.children[at] !== row) body.insertBefore(row, body.children[at] || null);
        columns.forEach((column, c) => {
          const cell = row.children[c];
          const alarm = column.alarm ? column.alarm(item) : "";
          dress(cell, [column.number ? "number" : "", column.text ? "text" : "", alarm || ""].join(" ").trim());
          if (column.pill) pill(cell, column.pill(item));
          else say(cell, column.value(item));
          if (column.hint) cell.title = visible(column.hint(item));
        });
      });
      for (const [id, row] of rows) if (!seen.has(id)) { row.remove(); rows.delete(id); }
    };
  }

  function pill(cell, { level, text }) {
    const inside = cell.firstElementChild || cell.appendChild(make("span"));
    dress(inside, "pill " + level);
    say(inside, text);
  }

  const yes = (value) => (value ? "yes" : "no");
  const sum = (reasons) => Object.values(reasons).reduce((a, b) => a + b, 0);

  const informers = table("informers", "State of each informer", [
    { title: "Informer", value: (i) => i.name },
    { title: "State", pill: (i) => ({ level: i.level, text: i.state }) },
    { title: "For", value: (i) => span(i.since_ms), number: true },
    { title: "Synced, live", value: (i) => yes(i.synced) + ", " + yes(i.live), alarm: (i) => (i.live ? "" : "alarm") },
    { title: "Stale", value: (i) => (i.staleness_ms == null ? "–" : span(i.staleness_ms)), number: true },
    { title: "Events", value: (i) => rate(i.rate || 0), number: true },
    { title: "Objects", value: (i) => number(i.objects), number: true },
    { title: "Not kept", value: (i) => i.failed, number: true, alarm: (i) => (i.failed ? "warn" : "") },
    { title: "Memory", value: (i) => bytes(i.bytes), number: true },
    { title: "Version", value: (i) => i.version || "–", number: true },
    { title: "Lists", value: (i) => i.lists, number: true },
    { title: "Watches", value: (i) => i.watches, number: true },
    { title: "Short", value: (i) => i.short_watches, number: true, alarm: (i) => (i.short_watches ? "warn" : "") },
    { title: "After errors", value: (i) => `${sum(i.relists)} + ${sum(i.restarts)}`, number: true, hint: () => "lists + watches after errors" },
    { title: "Last error", value: (i) => [i.last_error, i.advice].filter(Boolean).join(". ") || "none", hint: (i) => i.last_error_text, text: true },
  ]);

  const handlers = table("handlers", "State of each handler", [
    { title: "Handler", value: (h) => h.name },
    { title: "Informer", value: (h) => h.informer },
    { title: "Kind", value: (h) => (h.stream ? "stream" : "callbacks") },
    { title: "Synced", value: (h) => yes(h.synced) },
    { title: "Delivered", value: (h) => number(h.delivered), number: true },
    { title: "Waiting", value: (h) => number(h.depth), number: true, alarm: (h) => (h.depth > 100 ? "warn" : "") },
    { title: "Merged", value: (h) => number(h.merged), number: true, alarm: (h) => (h.merged ? "warn" : "") },
    { title: "Skipped", value: (h) => number(h.skipped), number: true },
    { title: "p99", value: (h) => (h.p99_us == null ? "–" : "≤ " + micros(h.p99_us)), number: true },
    { title: "Slowest", value: (h) => micros(h.slowest_us), number: true, alarm: (h) => (h.slow ? "warn" : "") },
    { title: "Slow calls", value: (h) => h.slow, number: true, alarm: (h) => (h.slow ? "warn" : "") },
    { title: "Panics", value: (h) => h.panics, number: true, alarm: (h) => (h.panics ? "alarm" : "") },
  ]);

  const of = (data, queue, name) => data.controllers.find((c) => c.name === queue.controller)?.[name];
  let last = null;
  const queues = table("queues", "Work queues, and the controllers that drain them", [
    { title: "Queue", value: (q) => q.name || "(without a name)" },
    { title: "Controller", value: (q) => of(last, q, "phase") ?? "–" },
    { title: "Ready", value: (q) => number(q.ready), number: true, alarm: (q) => (q.ready > 100 ? "warn" : "") },
    { title: "Later", value: (q) => number(q.delayed), number: true },
    { title: "In progress", value: (q) => (of(last, q, "workers") ? `${q.running} of ${of(last, q, "workers")}` : q.running), number: true },
    { title: "Longest wait", value: (q) => (q.waiting_ms == null ? "–" : span(q.waiting_ms)), number: true, alarm: (q) => ((q.waiting_ms || 0) > 5000 ? "warn" : "") },
    { title: "Longest run", value: (q) => (q.running_ms == null ? "–" : span(q.running_ms)), number: true, alarm: (q) => ((q.running_ms || 0) > 60000 ? "warn" : "") },
    { title: "Added", value: (q) => number(q.adds), number: true },
    { title: "Retries", value: (q) => number(q.retries), number: true },
    { title: "Reconciled", value: (q) => of(last, q, "succeeded") ?? "–", number: true },
    { title: "Failed", value: (q) => of(last, q, "failed") ?? "–", number: true, alarm: (q) => (of(last, q, "failed") ? "warn" : "") },
    { title: "Panics", value: (q) => of(last, q, "panicked") ?? "–", number: true, alarm: (q) => (of(last, q, "panicked") ? "alarm" : "") },
  ]);

  const failed = table("failed", "Objects that could not be kept, and why", [
    { title: "Object", value: (f) => f.key || "(without a name)" },
    { title: "Informer", value: (f) => f.informer },
    { title: "Reason", value: (f) => f.error, text: true },
  ]);

  function update(data) {
    last = data;
    informers(data.informers, (i) => i.name);
    const all = data.informers.flatMap((i) => i.handlers.map((h, at) => ({ ...h, informer: i.name, id: i.name + "\n" + h.name + "\n" + at })));
    handlers(all, (h) => h.id);
    document.getElementById("queues-section").hidden = data.queues.length === 0;
    queues(data.queues.map((q, at) => ({ ...q, id: q.name + "\n" + at })), (q) => q.id);
  }

  return { update, failed: (rows) => failed(rows, (f) => f.id) };
})();
