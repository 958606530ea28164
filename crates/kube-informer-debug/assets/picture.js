
// The picture: for each informer the server, reflector, queue, store, handlers and work queues, and what flows between them.
const Picture = (() => {
  const HANDLERS_MAX = 4, LANES_MAX = 8, DOTS_MAX = 60, PASS_MS = 1300;
  const place = document.getElementById("picture");
  const choice = document.getElementById("lane");
  const measure = document.createElement("canvas").getContext("2d");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let drawn = "", lanes = new Map(), dots = [], svg = null, under = null, chosen = null, previous = new Map();

  function draw(tag, attributes, parent, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (text !== undefined) element.textContent = visible(text);
    if (parent) parent.append(element);
    return element;
  }

  // Shortens a text to a width, in the middle, because both ends of names tell them apart.
  function fit(text, width, font) {
    measure.font = font + "px system-ui, sans-serif";
    let shown = visible(text);
    if (measure.measureText(shown).width <= width) return shown;
    const letters = Array.from(shown);
    let keep = letters.length;
    while (keep > 2 && measure.measureText(shown).width > width) {
      keep = Math.max(2, Math.min(keep - 1, Math.floor(keep * 0.96)));
      const head = Math.ceil(keep * 0.6);
      shown = letters.slice(0, head).join("") + "…" + letters.slice(letters.length - (keep - head)).join("");
    }
    return shown;
  }

  function box(parent, x, y, w, h, label) {
    const group = draw("g", {}, parent);
    const rect = draw("rect", { x, y, width: w, height: h, rx: 9, class: "box" }, group);
    const title = draw("text", { x: x + 12, y: y + (h < 50 ? 16 : 19), class: "label" }, group, label);
    const main = draw("text", { x: x + 12, y: y + 39, class: "main" }, group);
    const sub = draw("text", { x: x + 12, y: y + (h < 50 ? 33 : 57), class: "small" }, group);
    return { group, rect, title, main, sub, x, y, w, h, width: w - 20, mid: y + h / 2 };
  }

  function edge(parent, points, label) {
    const [a, b] = [points[0], points[points.length - 1]];
    const vertical = points.vertical;
    const d = vertical ? `M${a[0]} ${a[1]}L${b[0]} ${b[1] - 6}`
      : `M${a[0]} ${a[1]}C${(a[0] + b[0]) / 2} ${a[1]} ${(a[0] + b[0]) / 2} ${b[1]} ${b[0] - 6} ${b[1]}`;
    const path = draw("path", { d, class: "edge" }, parent);
    const tip = vertical ? `M${b[0] - 4.5} ${b[1] - 8}L${b[0]} ${b[1] - 1}L${b[0] + 4.5} ${b[1] - 8}Z`
      : `M${b[0] - 8} ${b[1] - 4.5}L${b[0] - 1} ${b[1]}L${b[0] - 8} ${b[1] + 4.5}Z`;
    draw("path", { d: tip, class: "tip" }, parent);
    const text = label === false ? null : vertical
      ? draw("text", { x: a[0] + 12, y: (a[1] + b[1]) / 2 + 4, class: "small" }, parent)
      : draw("text", { x: (a[0] + b[0]) / 2 - 2, y: (a[1] + b[1]) / 2 - 7, class: "small", "text-anchor": "middle" }, parent);
    return { path, text, length: path.getTotalLength() };
  }

  // Returns the controller whose queue a handler fills.
  function controllerOf(handler, data) {
    return data.controllers.find((c) => handler.name === "controller " + c.name);
  }

  function shape(informers, data, width) {
    return JSON.stringify([width, informers.map((i) => [i.name, i.handlers.map((h) => [h.name, !!controllerOf(h, data)])]), data.queues.map((q) => q.name)]);
  }

  function layout(informers, data, width) {
    place.replaceChildren();
    lanes = new Map();
    dots = [];
    const queues = data.queues.length > 0;
    const sizes = [92, 172, 92, 132, 224].concat(queues ? [206] : []);
    const total = sizes.reduce((a, b) => a + b, 0);
    const gap = Math.min(120, (width - total - 8) / (sizes.length - 1));
    if (gap >= 44) wide(informers, data, width, sizes, gap);
    else narrow(informers, data, width);
    const words = informers.map((i) => i.name).join(", ");
    svg.prepend(under);
    draw("title", {}, svg, "The way of events through " + words + "; the tables below have the same facts");
  }

  function canvas(width, height) {
    svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" });
    place.append(svg);
    // Events pass below the boxes, so that they never cover text.
    under = draw("g", {}, null);
    return svg;
  }

  function wide(informers, data, width, sizes, gap) {
    const heights = informers.map((i) => Math.max(68, Math.min(i.handlers.length, HANDLERS_MAX) * 50 - 8));
    const left = Math.max(4, (width - sizes.reduce((a, b) => a + b, 0) - gap * (sizes.length - 1)) / 2);
    const xs = [];
    sizes.reduce((x, size) => { xs.push(x); return x + size + gap; }, left);
    const height = heights.reduce((a, b) => a + b + 46, 10);
    const root = canvas(width, height);
    const server = draw("g", {}, root);
    draw("rect", { x: xs[0], y: 34, width: sizes[0], height: height - 46, rx: 9, class: "box" }, server);
    draw("text", { x: xs[0] + sizes[0] / 2, y: height / 2 + 6, class: "main", "text-anchor": "middle" }, server, "API");
    draw("text", { x: xs[0] + sizes[0] / 2, y: height / 2 + 26, class: "main", "text-anchor": "middle" }, server, "server");
    let y = 10;
    informers.forEach((informer, at) => {
      const lane = { edges: [], boxes: [], routes: [] };
      const group = draw("g", {}, root);
      if (at > 0) draw("line", { x1: xs[1], x2: xs[xs.length - 1] + sizes[sizes.length - 1], y1: y - 4, y2: y - 4, class: "rule" }, group);
      lane.name = draw("text", { x: xs[1], y: y + 14, class: "lane" }, group);
      lane.words = draw("text", { x: xs[1], y: y + 14, class: "words" }, group);
      lane.room = xs[xs.length - 1] + sizes[sizes.length - 1] - xs[1];
      const top = y + 24, mid = top + heights[at] / 2;
      lane.reflector = box(group, xs[1], mid - 34, sizes[1], 68, "REFLECTOR");
      lane.fifo = box(group, xs[2], mid - 34, sizes[2], 68, "QUEUE");
      lane.store = box(group, xs[3], mid - 34, sizes[3], 68, "STORE");
      gauge(lane.reflector);
      lane.incoming = edge(group, [[xs[0] + sizes[0], mid], [xs[1], mid]]);
      lane.toFifo = edge(group, [[xs[1] + sizes[1], mid], [xs[2], mid]], false);
      lane.toStore = edge(group, [[xs[2] + sizes[2], mid], [xs[3], mid]], false);
      lane.handlers = informer.handlers.slice(0, HANDLERS_MAX).map((handler, h) => {
        const shown = Math.min(informer.handlers.length, HANDLERS_MAX);
        const hy = mid - (shown * 50 - 8) / 2 + h * 50;
        const each = box(group, xs[4], hy, sizes[4], 42, "");
        each.edge = edge(group, [[xs[3] + sizes[3], mid], [xs[4], hy + 21]], shown === 1 ? undefined : false);
        if (sizes.length > 5 && controllerOf(handler, data)) {
          each.queue = box(group, xs[5], hy, sizes[5], 42, "");
          each.toQueue = edge(group, [[xs[4] + sizes[4], hy + 21], [xs[5], hy + 21]], false);
        }
        return each;
      });
      lanes.set(informer.name, lane);
      y += heights[at] + 46;
    });
  }

  function narrow(informers, data, width) {
    const informer = informers.find((i) => i.name === chosen) || informers[0];
    if (!informer) return;
    const handlers = informer.handlers.slice(0, HANDLERS_MAX);
    const queues = handlers.filter((h) => controllerOf(h, data)).length;
    const height = 52 + 40 + 3 * 104 + handlers.length * 50 + 30 + queues * 50;
    const root = canvas(width, height), group = draw("g", {}, root);
    const lane = { edges: [], boxes: [], routes: [], room: width - 8, tall: true };
    lane.name = draw("text", { x: 4, y: 16, class: "lane" }, group);
    lane.words = draw("text", { x: 4, y: 36, class: "words" }, group);
    const x = 4, w = width - 8, axis = 40;
    draw("rect", { x, y: 48, width: w, height: 38, rx: 9, class: "box" }, group);
    draw("text", { x: x + 12, y: 72, class: "main" }, group, "API server");
    let y = 86;
    const step = (label, h) => {
      const each = box(group, x, y + 34, w, h, label);
      each.incoming = edge(group, Object.assign([[axis, y], [axis, y + 34]], { vertical: true }));
      y += 34 + h;
      return each;
    };
    lane.reflector = step("REFLECTOR", 68);
    lane.incoming = lane.reflector.incoming;
    gauge(lane.reflector);
    lane.fifo = step("QUEUE", 68);
    lane.toFifo = lane.fifo.incoming;
    lane.store = step("STORE", 68);
    lane.toStore = lane.store.incoming;
    lane.handlers = handlers.map((handler, h) => {
      const each = h === 0 ? step("", 42) : box(group, x, y + 8, w, 42, "");
      if (h > 0) y += 50;
      each.edge = each.incoming || { path: null, text: null };
      if (controllerOf(handler, data)) {
        each.queue = box(group, x + 24, y + 8, w - 24, 42, "");
        y += 50;
      }
      return each;
    });
    svg.setAttribute("viewBox", `0 0 ${width} ${y + 8}`);
    svg.setAttribute("height", y + 8);
    lanes.set(informer.name, lane);
  }

  function gauge(reflector) {
    const at = { x: reflector.x + 12, y: reflector.y + reflector.h - 6, height: 3, rx: 1.5 };
    draw("rect", { ...at, width: reflector.w - 24, class: "gauge" }, reflector.group);
    reflector.filled = draw("rect", { ...at, width: 0, class: "filled" }, reflector.group);
    reflector.sub.setAttribute("y", reflector.y + 55);
  }

  function put(each, main, sub, level) {
    say(each.main, fit(main, each.width, 16));
    say(each.sub, fit(sub, each.width, 12.5));
    dress(each.rect, "box " + (level || ""));
  }

  function fill(lane, informer, data, rates) {
    const bad = informer.level === "bad" || informer.level === "off";
    const name = fit(informer.name, lane.room * (lane.tall ? 1 : 0.45), 16);
    say(lane.name, name);
    measure.font = "650 15px system-ui, sans-serif";
    if (!lane.tall) lane.words.setAttribute("x", lane.reflector.x + measure.measureText(name).width + 18);
    const words = informer.trouble || "up to date";
    const room = lane.tall ? lane.room : lane.room - measure.measureText(name).width - 18;
    const next = informer.next_ms == null ? "" : `, next attempt in ${(informer.next_ms / 1000).toFixed(1)} s`;
    say(lane.words, fit(words + next, room, 13.5));
    dress(lane.words, "words " + informer.level);

    const quiet = informer.staleness_ms;
    const share = quiet == null ? 0 : Math.min(1, quiet / informer.silence_limit_ms);
    const sub = informer.next_ms != null ? `tries again in ${(informer.next_ms / 1000).toFixed(1)} s`
      : quiet == null ? `${number(informer.received)} received` : `heard ${quiet < 1000 ? "just now" : span(quiet) + " ago"}`;
    put(lane.reflector, informer.state, sub, informer.level);
    lane.reflector.filled.setAttribute("width", share * (lane.reflector.w - 24));
    dress(lane.reflector.filled, "filled " + (share > 0.95 ? "bad" : share > 0.85 ? "busy" : ""));
    const behind = informer.lag_ms != null && informer.lag_ms > 1000;
    put(lane.fifo, number(informer.queued), informer.lag_ms == null ? "no lag" : "lag " + span(informer.lag_ms), behind ? "busy" : "");
    put(lane.store, number(informer.objects) + (informer.objects === 1 ? " object" : " objects"), bytes(informer.bytes), informer.failed ? "busy" : informer.synced ? "" : "off");
    dress(lane.incoming.path, "edge " + (bad ? "broken" : rates.events > 0 ? "flows" : ""));
    if (lane.incoming.text) say(lane.incoming.text, bad ? "" : rate(rates.events));
    for (const each of [lane.toFifo, lane.toStore]) dress(each.path, "edge " + (rates.events > 0 ? "flows" : ""));
    lane.handlers.forEach((each, at) => {
      const handler = informer.handlers[at];
      if (!handler) return;
      const delivered = rates.handlers[at] || 0;
      const left = informer.handlers.length - HANDLERS_MAX;
      const hidden = at === HANDLERS_MAX - 1 && left > 0 ? ` · ${left} more` : "";
      say(each.title, fit(handler.name + hidden, each.width, 12));
      const slow = handler.slowest_us == null ? "" : ` · max ${micros(handler.slowest_us)}`;
      const level = handler.panics > 0 ? "bad" : handler.depth > 100 || handler.merged > 0 ? "busy" : "";
      const depth = handler.depth === 0 ? "none wait" : `${number(handler.depth)} wait`;
      say(each.sub, fit(`${rate(delivered)} · ${depth}${slow}`, each.width, 12.5));
      dress(each.rect, "box " + level);
      if (each.edge.path) dress(each.edge.path, "edge " + (delivered > 0 ? "flows" : ""));
      if (each.edge.text) say(each.edge.text, rate(delivered));
      if (each.queue) queue(each, data, controllerOf(handler, data));
    });
  }

  function queue(each, data, controller) {
    const queue = controller && data.queues.find((q) => q.controller === controller.name);
    if (!queue) return;
    say(each.queue.title, fit("work queue " + controller.name, each.queue.width, 12));
    const text = `${queue.ready} ready · ${queue.delayed} later · ${controller.running}/${controller.workers} busy`;
    say(each.queue.sub, fit(text, each.queue.width, 12.5));
    dress(each.queue.rect, "box " + (queue.ready > 100 || (queue.waiting_ms || 0) > 5000 ? "busy" : ""));
    if (each.toQueue) dress(each.toQueue.path, "edge " + (queue.ready + queue.running > 0 ? "flows" : ""));
  }

  // Rates over the last two seconds.
  function rates(informer, now) {
    const history = previous.get(informer.name) || [];
    history.push({ now, events: informer.events, handlers: informer.handlers.map((h) => h.delivered) });
    while (history.length > 2 && now - history[1].now >= 2000) history.shift();
    previous.set(informer.name, history);
    const first = history[0], seconds = Math.max(0.25, (now - first.now) / 1000);
    const per = (a, b) => Math.max(0, (a - (b ?? a)) / seconds);
    return { events: per(informer.events, first.events), handlers: informer.handlers.map((h, at) => per(h.delivered, first.handlers[at])) };
  }

  function update(data) {
    const trouble = { bad: 0, busy: 1, off: 2, ok: 3 };
    const all = data.informers.slice();
    // If not all fit, those in trouble are drawn first.
    if (all.length > LANES_MAX) all.sort((a, b) => trouble[a.level] - trouble[b.level]);
    const informers = all.slice(0, LANES_MAX);
    const width = Math.max(280, Math.floor(place.clientWidth - 20));
    const key = shape(informers, data, width) + chosen;
    if (key !== drawn) { drawn = key; layout(informers, data, width); choices(data); }
    for (const informer of data.informers) {
      const flow = rates(informer, data.now);
      informer.rate = flow.events;
      const lane = lanes.get(informer.name);
      if (lane) fill(lane, informer, data, flow);
    }
  }

  function choices(data) {
    const only = lanes.size < data.informers.length;
    document.getElementById("lane-choice").hidden = !only;
    choice.replaceChildren(...data.informers.map((i) => new Option(visible(i.name), i.name, false, lanes.has(i.name) && lanes.size === 1)));
  }
  choice.addEventListener("change", () => { chosen = choice.value; drawn = ""; });

  // Lets an event be seen passing.
  function pass(event) {
    const lane = lanes.get(event.informer);
    if (!lane || document.hidden) return;
    if (still.matches) {
      lane.reflector.rect.classList.add("flash");
      setTimeout(() => lane.reflector.rect.classList.remove("flash"), 400);
      return;
    }
    if (dots.length >= DOTS_MAX) return;
    const first = lane.handlers[0];
    const way = lane.tall
      ? [[40, 86], [40, lane.store.y + lane.store.h + (first ? 34 : 0)]]
      : [[lane.reflector.x - lane.incoming.length - 6, lane.reflector.mid], [lane.store.x + lane.store.w / 2, lane.store.mid]]
        .concat(first ? [[lane.store.x + lane.store.w, lane.store.mid]] : []);
    const dot = draw("circle", { r: 6, class: "passing " + event.what, cx: way[0][0], cy: way[0][1] }, under);
    dots.push({ dot, lane, way, begin: performance.now() });
    if (dots.length === 1) requestAnimationFrame(move);
  }

  function at(way, share) {
    const lengths = way.slice(1).map((p, i) => Math.hypot(p[0] - way[i][0], p[1] - way[i][1]));
    let left = share * lengths.reduce((a, b) => a + b, 0);
    for (let i = 0; i < lengths.length; i++) {
      if (left <= lengths[i] || i === lengths.length - 1) {
        const part = lengths[i] ? Math.min(1, left / lengths[i]) : 1;
        return [way[i][0] + (way[i + 1][0] - way[i][0]) * part, way[i][1] + (way[i + 1][1] - way[i][1]) * part];
      }
      left -= lengths[i];
    }
    return way[0];
  }

  function move(now) {
    dots = dots.filter((each) => {
      const share = (now - each.begin) / PASS_MS;
      if (share >= 1) {
        each.dot.remove();
        if (!each.last && !each.lane.tall) fan(each, now);
        return each.fanned || false;
      }
      const [x, y] = at(each.way, Math.max(0, share));
      each.dot.setAttribute("cx", x);
      each.dot.setAttribute("cy", y);
      return true;
    }).concat(fans.splice(0));
    if (dots.length) requestAnimationFrame(move);
  }

  // From the store, an event goes to every handler.
  const fans = [];
  function fan(each, now) {
    for (const handler of each.lane.handlers) {
      if (dots.length + fans.length >= DOTS_MAX) return;
      const dot = draw("circle", { r: 5, class: each.dot.getAttribute("class"), cx: -10, cy: -10 }, under);
      const way = [[each.lane.store.x + each.lane.store.w, each.lane.store.mid], [handler.x, handler.mid]];
      fans.push({ dot, lane: each.lane, way, begin: now - PASS_MS * 0.55, last: true });
    }
  }

  return { update, pass, redraw: () => { drawn = ""; } };
})();
