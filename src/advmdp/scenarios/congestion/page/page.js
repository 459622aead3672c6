// Maps and curves of one game.  The layout depends on the width only; an episode just repaints links and cursors.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SIDES = ["one", "two"], CHARTS = {delay: 1, changed: 100, gap: 100}, STEPS = [0.5, 0.75, 0.9, 1, 1.5], PAUSE = 140;
const margin = {top: 10, right: 14, bottom: 34, left: 52};
const views = {};
let timer = null;

function episode() { return +$("at").value; }

function load(method, t, link) {
  const row = method.still ? 0 : t - 1;
  return parseInt(method.use.substr(2 * (row * data.links.length + link), 2), 36) / 100;
}

function layMap(side) {
  const svg = $(`map-${side}`), width = Math.max(260, svg.parentElement.clientWidth), pad = 26;
  const factor = (width - 2 * pad) / 1000, height = Math.round(data.height * factor) + 2 * pad;
  const at = data.nodes.map(([, x, y]) => [pad + x * factor, pad + y * factor]);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  views[side] = data.links.map(([a, b]) => {
    const [dx, dy] = [at[b][0] - at[a][0], at[b][1] - at[a][1]], length = Math.hypot(dx, dy) || 1;
    const line = add(svg, "line");
    return {line, title: add(line, "title"), from: at[a], to: at[b], side: [-dy / length, dx / length]};
  });
  for (const [x, y] of at) add(svg, "circle", {cx: x, cy: y, r: 4.5});
  names(svg, at, width, height);
}

// A name goes to the first side of its node where it covers nothing; if there is none, it is omitted.
function names(svg, at, width, height) {
  const taken = at.map(([x, y]) => [x - 5, y - 5, x + 5, y + 5]);
  data.nodes.forEach(([name], k) => {
    const [x, y] = at[k], long = 6.6 * name.length;
    const places = [[x + 8, y + 4, "start"], [x - 8, y + 4, "end"], [x, y - 9, "middle"], [x, y + 18, "middle"]];
    for (const [px, py, anchor] of places) {
      const left = anchor === "start" ? px : anchor === "end" ? px - long : px - long / 2;
      const box = [left, py - 10, left + long, py + 3];
      if (box[0] < 2 || box[2] > width - 2 || box[1] < 2 || box[3] > height - 2) continue;
      if (taken.some((other, i) => i !== k && box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
      taken.push(box);
      add(svg, "text", {x: px, y: py, "text-anchor": anchor}, name);
      return;
    }
  });
}

function paintMap(side, t) {
  const method = data.methods[$(side).value];
  views[side].forEach(({line, title, from, to, side: right}, i) => {
    const use = load(method, t, i), wide = 1.2 + 3.4 * Math.min(use, 2), off = 1.2 + wide / 2;
    const ends = {x1: from[0] + off * right[0], y1: from[1] + off * right[1], x2: to[0] + off * right[0], y2: to[1] + off * right[1]};
    for (const [key, value] of Object.entries(ends)) line.setAttribute(key, value.toFixed(1));
    line.setAttribute("stroke-width", wide.toFixed(2));
    line.setAttribute("class", `u${STEPS.filter((step) => use >= step).length}`);
    title.textContent = `${data.nodes[data.links[i][0]][0]} → ${data.nodes[data.links[i][1]][0]}: ${Math.round(100 * use)}%`;
  });
  const text = `mean delay ${short(method.delay[t - 1])} ${data.unit}, peak load ${Math.round(100 * method.peak[t - 1])}%, ` +
    `${(100 * method.changed[t - 1]).toFixed(1)}% of routes changed` +
    (data.demand ? `, demand ${Math.round(100 * data.demand[t - 1])}% of its mean` : "");
  $(`now-${side}`).textContent = text;
  $(`map-${side}`).setAttribute("aria-label", `${method.name}, episode ${t}: ${text}`);
}

function layChart(key) {
  const svg = $(key), factor = CHARTS[key], log = key === "delay";
  const width = Math.max(280, svg.parentElement.clientWidth), height = Math.round(Math.min(250, 130 + width * 0.12));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const on = [...document.querySelectorAll("#learners input:checked")].map((box) => +box.value);
  const values = on.flatMap((i) => data.methods[i][key]).map((v) => v * factor).filter((v) => !log || v > 0);
  const high = Math.max(...values, log ? 1e-9 : 1), low = log ? Math.min(high, ...values) / 1.15 : 0;
  const x = scale(1, Math.max(2, data.episodes), margin.left, width - margin.right, false);
  const y = scale(low, log ? high * 1.15 : high * 1.04, height - margin.bottom, margin.top, log && high > 0);
  for (const v of y.ticks) {
    add(svg, "line", {class: v === 0 ? "axis" : "grid", x1: margin.left, x2: width - margin.right, y1: y(v), y2: y(v)});
    add(svg, "text", {x: margin.left - 8, y: y(v) + 4, "text-anchor": "end"}, short(v));
  }
  for (const v of x.ticks) add(svg, "text", {x: x(v), y: height - margin.bottom + 16, "text-anchor": "middle"}, short(v));
  add(svg, "text", {x: width - margin.right, y: height - 4, "text-anchor": "end"}, "episode");
  for (const i of on.reverse()) { // the first method on top
    const d = data.methods[i][key].map((v, t) => `${x(t + 1).toFixed(1)} ${y(v * factor).toFixed(1)}`).join("L");
    add(svg, "path", {class: `curve ${data.methods[i].look}`, "data-method": i, d: `M${d}`});
  }
  views[key] = {x, cursor: add(svg, "line", {class: "cursor", y1: margin.top, y2: height - margin.bottom})};
}

function scale(from, to, start, end, log) {
  const f = log ? Math.log10 : (v) => v, a = f(from), b = f(to) === a ? a + 1 : f(to);
  const at = (v) => start + (end - start) * (f(Math.max(v, log ? from : v)) - a) / (b - a);
  at.back = (p) => a + (b - a) * (p - start) / (end - start);
  at.ticks = log ? decades(from, to) : steps(from, to, Math.abs(end - start) / 60);
  return at;
}

function steps(from, to, count) {
  const rough = (to - from) / Math.max(2, count), power = 10 ** Math.floor(Math.log10(rough)), out = [];
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  for (let i = Math.ceil(from / step); i * step <= to * 1.0001; i++) out.push(i * step);
  return out;
}

function decades(from, to) {
  const out = [];
  for (let d = Math.floor(Math.log10(from)); d <= Math.log10(to); d++)
    for (const m of [1, 2, 5]) if (m * 10 ** d >= from && m * 10 ** d <= to) out.push(m * 10 ** d);
  return out;
}

function short(v) { return v.toLocaleString("en", {maximumSignificantDigits: Math.abs(v) >= 1000 ? 4 : 3}); }

function paint() {
  const t = episode();
  $("episode").textContent = `${t} of ${data.episodes}`;
  $("at").setAttribute("aria-valuetext", `episode ${t} of ${data.episodes}`);
  for (const side of SIDES) paintMap(side, t);
  for (const key of Object.keys(CHARTS)) {
    views[key].cursor.setAttribute("x1", views[key].x(t));
    views[key].cursor.setAttribute("x2", views[key].x(t));
  }
  data.methods.forEach((method, i) => {
    document.querySelector(`#learners output[data-learner="${i}"]`).textContent = `${short(method.delay[t - 1])} ${data.unit}`;
  });
}

function lay() {
  SIDES.forEach(layMap);
  Object.keys(CHARTS).forEach(layChart);
  paint();
}

function go(t) {
  $("at").value = Math.min(data.episodes, Math.max(1, t));
  paint();
}

function stop() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
  $("play").setAttribute("aria-pressed", "false");
}

function play() {
  if (timer !== null) { stop(); return; }
  if (episode() === data.episodes) go(1);
  $("play").textContent = "Pause";
  $("play").setAttribute("aria-pressed", "true");
  timer = setInterval(() => { go(episode() + 1); if (episode() === data.episodes) stop(); }, PAUSE);
}

function hover(event) {
  if (event.type === "pointermove" && !event.buttons) return;
  const svg = event.currentTarget, box = svg.getBoundingClientRect();
  stop();
  go(Math.round(views[svg.id].x.back((event.clientX - box.left) * svg.viewBox.baseVal.width / box.width)));
}

function add(parent, name, attributes = {}, text = null) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  return parent.appendChild(node);
}

$("at").max = data.episodes;
$("one").value = data.shown[0];
$("two").value = data.shown[1];
for (const side of SIDES) $(side).addEventListener("change", paint);
$("at").addEventListener("input", () => { stop(); paint(); });
$("play").addEventListener("click", play);
$("back").addEventListener("click", () => { stop(); go(episode() - 1); });
$("on").addEventListener("click", () => { stop(); go(episode() + 1); });
$("controls").addEventListener("submit", (event) => event.preventDefault());
$("controls").addEventListener("change", () => { Object.keys(CHARTS).forEach(layChart); paint(); });
for (const key of Object.keys(CHARTS)) for (const kind of ["pointerdown", "pointermove"]) $(key).addEventListener(kind, hover);
$("at").value = data.start;
let drawn = document.body.clientWidth; // heights follow from the width
lay();
new ResizeObserver(() => { if (document.body.clientWidth !== drawn) { drawn = document.body.clientWidth; lay(); } }).observe(document.body);
