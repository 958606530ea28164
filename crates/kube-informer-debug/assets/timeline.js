
// The timeline: the rate of events in the last ten minutes, and what went wrong.
const Timeline = (() => {
  const MINUTES = 10, MARKS_MAX = 300, LISTED = 40, H = 146, LEFT = 52, TOP = 8, BOTTOM = 54;
  const GLYPHS = { relist: "▲", resume: "●", down: "✕", up: "✓", skipped: "◆", button: "■" };
  const place = document.getElementById("timeline"), list = document.getElementById("marks");
  let points = [], marks = [], drawnAt = 0;

  function draw(tag, attributes, parent, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (text !== undefined) element.textContent = visible(text);
    parent.append(element);
    return element;
  }

  function reset(data) {
    points = [];
    marks = [];
    list.replaceChildren();
    add(data);
  }

  function add(data) {
    points.push(...data.points);
    while (points.length > 60 * MINUTES) points.shift();
    for (const mark of data.marks) {
      marks.push(mark);
      const item = make("li");
      item.append(make("time", "", clock(mark.at)), make("span", "glyph " + mark.kind, GLYPHS[mark.kind] || "·"));
      if (mark.informer) item.append(make("bdi", "of", mark.informer));
      item.append(make("span", "", mark.kind === "button" ? "pressed: " + mark.text : mark.text));
      list.prepend(item);
    }
    while (marks.length > MARKS_MAX) marks.shift();
    while (list.children.length > LISTED) list.lastChild.remove();
    if (data.now - drawnAt >= 900 || data.marks.length) { drawnAt = data.now; plot(data.now); }
  }

  // A round number that is at least as large.
  function ceiling(n) {
    const power = 10 ** Math.floor(Math.log10(Math.max(1, n)));
    return [1, 2, 5, 10].map((k) => k * power).find((k) => k >= n);
  }

  function plot(now) {
    const width = Math.max(280, place.clientWidth), begin = now - MINUTES * 60000;
    const x = (t) => LEFT + (width - LEFT - 8) * (t - begin) / (MINUTES * 60000);
    const shown = points.filter((p) => p.at >= begin);
    const top = ceiling(Math.max(5, ...shown.map((p) => p.events)));
    const base = H - BOTTOM, y = (n) => base - (base - TOP) * n / top;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["viewBox", `0 0 ${width} ${H}`], ["height", H], ["role", "img"]]) svg.setAttribute(name, value);
    const total = shown.reduce((sum, p) => sum + p.events, 0);
    draw("title", {}, svg, `${total} events in ten minutes, at most ${Math.max(0, ...shown.map((p) => p.events))} in a second`);
    for (const p of shown) if (p.down) draw("rect", { x: x(p.at), y: TOP, width: Math.max(1, x(p.at + 1000) - x(p.at) + 0.5), height: base - TOP, class: "gap" }, svg);
    for (const n of [0, top / 2, top]) {
      draw("line", { x1: LEFT, x2: width - 8, y1: y(n), y2: y(n), class: "grid" }, svg);
      draw("text", { x: LEFT - 8, y: y(n) + 4, class: "small", "text-anchor": "end" }, svg, n === 0 ? "0" : rate(n).replace(".0", ""));
    }
    const every = width < 560 ? 5 : 1;
    for (let m = 0; m <= MINUTES; m += every) {
      const anchor = m === 0 ? "end" : m === MINUTES ? "start" : "middle";
      draw("text", { x: m === 0 ? width - 8 : x(now - m * 60000), y: H - 4, class: "small", "text-anchor": anchor }, svg, m === 0 ? "now" : `${m} min`);
    }
    let line = "", before = null;
    for (const p of shown) {
      const gap = before === null || p.at - before > 3000;
      line += `${gap ? "M" : "L"}${x(p.at).toFixed(1)} ${y(p.events).toFixed(1)}`;
      before = p.at;
    }
    if (line) {
      const runs = line.split("M").slice(1);
      for (const run of runs) {
        const ends = run.split("L");
        const from = ends[0].split(" ")[0], to = ends[ends.length - 1].split(" ")[0];
        draw("path", { d: `M${from} ${base}L${run}L${to} ${base}Z`, class: "area" }, svg);
      }
      draw("path", { d: line, class: "line" }, svg);
    }
    // Marks that would cover each other are drawn once; the list below has all of them.
    const last = {};
    for (const mark of marks) if (mark.at >= begin) {
      const column = x(mark.at), row = mark.kind === "up" || mark.kind === "button" ? 1 : 0;
      if (column - (last[row] ?? -100) < 9) continue;
      last[row] = column;
      const glyph = draw("text", { x: column, y: base + 14 + 14 * row, class: "mark " + mark.kind }, svg, GLYPHS[mark.kind] || "·");
      draw("title", {}, glyph, `${clock(mark.at)} ${mark.informer} ${mark.text}`);
    }
    place.replaceChildren(svg);
  }

  return { reset, add };
})();
