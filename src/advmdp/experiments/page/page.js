// The script of an experiment's report, which draws curves and shows tables as the controls select.
"use strict";
// Every change redraws everything: a curve has about a hundred points, so nothing needs to be kept.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const chart = $("chart"), margin = {top: 12, right: 22, bottom: 40, left: 62};
const MOST_DECADES = 5, BEST = 3, AHEAD = 12; // as in advmdp.plot
let view = null; // the scales of the last drawing, for the pointer

function draw() {
  const lines = shown(), log = $("log").checked, which = data.measures[$("measure").value];
  const width = Math.max(280, chart.parentElement.clientWidth), height = Math.round(Math.min(430, 170 + width * 0.3));
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  chart.replaceChildren();
  const last = Math.max(1, ...lines.map((line) => line.t.at(-1)));
  for (const part of document.querySelectorAll("[data-only]")) part.hidden = part.dataset.only !== which.key;
  const bounds = $("bound").checked && which.key === "regret" ? lines.flatMap((line) => line.bound.map((b) => b[1])) : [];
  const [low, high] = extent(lines, which.key, bounds, log);
  const x = scale(log ? 1 : 0, last, margin.left, width - margin.right, log);
  const y = scale(low, high, height - margin.bottom, margin.top, log);
  view = {x, y, last, lines, key: which.key, height};
  const box = {x: margin.left, y: margin.top, width: width - margin.left - margin.right, height: height - margin.top - margin.bottom};
  add(add(add(chart, "defs"), "clipPath", {id: "inside"}), "rect", box);
  axes(x, y, width, height, which.name + inUnit(which.key));
  const inside = add(chart, "g", {"clip-path": "url(#inside)"});
  if ($("guide").checked && which.key === "regret") guide(inside, lines, x, y, last);
  for (const line of lines) curve(inside, line, which.key, x, y);
  if (bounds.length) for (const line of lines) bound(inside, line, x, y);
  add(chart, "line", {class: "cursor", id: "cursor", y1: margin.top, y2: height - margin.bottom});
  add(chart, "g", {id: "spots"});
  caption(lines, which, log, high);
  slide(lines);
}

function shown() {
  const on = new Set([...document.querySelectorAll("#learners input:checked")].map((box) => +box.value));
  const key = data.measures[$("measure").value].key; // which not every learner has
  return data.lines.filter((line) => line.setting === setting() && on.has(line.learner) && line[key]);
}

function setting() { return $("setting") ? +$("setting").value : 0; }

const money = (key) => key === "above" || key === "each" || key.startsWith("regret");
function inUnit(key) { const unit = data.units[setting()]; return unit && money(key) ? ` (${unit})` : ""; }

function extent(lines, key, bounds, log) {
  const near = log || bounds.length || !money(key) ? lines : closest(lines, key);
  const from = key === "each" && !log ? Math.max(...lines.map((line) => line.t.at(-1))) / 4 : 0; // means begin far away
  const values = near.flatMap((line) => line[key].flatMap((part) => part.filter((v, i) => v !== null && line.t[i] >= from))).concat(bounds);
  const high = Math.max(...values, log ? 1e-9 : -Infinity);
  if (!values.length) return [log ? 0.1 : 0, 1];
  if (!log) {
    const low = Math.min(...values, key === "each" ? Infinity : 0), room = (high - low) * 0.06;
    return [low < 0 || key === "each" ? low - room : low, high > low ? high + room : low + 1];
  }
  const means = lines.flatMap((line) => line[key][0]).filter((v) => v > 0);
  return [Math.max(Math.min(high, ...means), Math.max(0, ...means) / 10 ** MOST_DECADES) / 1.3, high * 1.3];
}

// The curves that end lowest: if the worst were in the picture, the best would look the same.
function closest(lines, key) {
  if (!$("best").checked) return lines;
  const end = (line) => line[key][0].at(-1), best = [...lines].sort((a, b) => end(a) - end(b)).slice(0, BEST);
  const [one, two, three] = best.map(end);
  return two > one && AHEAD * (two - one) < three - one ? best.slice(0, 2) : best;
}

function scale(from, to, start, end, log) {
  const f = log ? (v) => Math.log10(Math.max(v, 1e-300)) : (v) => v;
  const a = f(from), b = f(to) === f(from) ? f(from) + 1 : f(to);
  const at = (v) => Math.min(1e5, Math.max(-1e5, start + (end - start) * (f(v) - a) / (b - a)));
  at.ticks = log ? decades(from, to) : steps(from, to, Math.abs(end - start) / 75);
  return at;
}

function steps(from, to, count) {
  const rough = (to - from) / Math.max(2, count), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999), out = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) out.push(i * step || 0); // no -0
  return out;
}

function decades(from, to) {
  const few = Math.log10(to / from) < 2.2, out = [];
  for (let d = Math.floor(Math.log10(from)); d <= Math.log10(to); d++)
    for (const m of few ? [1, 2, 5] : [1]) if (m * 10 ** d >= from * 0.999 && m * 10 ** d <= to * 1.001) out.push(m * 10 ** d);
  return out;
}

function axes(x, y, width, height, name) {
  const bottom = height - margin.bottom;
  for (const v of y.ticks) {
    add(chart, "line", {class: v === 0 ? "axis" : "grid", x1: margin.left, x2: width - margin.right, y1: y(v), y2: y(v)});
    add(chart, "text", {x: margin.left - 8, y: y(v) + 4, "text-anchor": "end"}, brief(v));
  }
  for (const v of x.ticks) {
    add(chart, "line", {class: "grid", x1: x(v), x2: x(v), y1: margin.top, y2: bottom});
    add(chart, "text", {x: x(v), y: bottom + 17, "text-anchor": "middle"}, brief(v));
  }
  add(chart, "line", {class: "axis", x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom});
  add(chart, "text", {x: (margin.left + width - margin.right) / 2, y: height - 6, "text-anchor": "middle"}, "episode");
  const middle = (margin.top + bottom) / 2;
  add(chart, "text", {x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})`}, name);
}

function curve(into, line, key, x, y) {
  const [mean, low, high] = line[key], style = look(line.learner);
  const at = (values) => line.t.map((t, i) => `${x(t).toFixed(1)} ${y(values[i]).toFixed(1)}`);
  if (low[0] !== null) add(into, "path", {class: `band ${style}`, d: `M${at(high).join("L")}L${at(low).reverse().join("L")}Z`});
  add(into, "path", {class: `curve ${style}`, "data-learner": line.learner, d: `M${at(mean).join("L")}`});
}

function guide(into, lines, x, y, last) {
  const ends = lines.map((line) => line.regret[0].at(-1)).filter((v) => v > 0);
  if (!ends.length) return;
  const top = Math.min(...ends); // the best learner; a guide to the worst would be of no use
  const points = [...Array(61).keys()].map((i) => Math.exp(Math.log(last) * i / 60));
  const d = points.map((t) => `${x(t).toFixed(1)} ${y(top * Math.sqrt(t / last)).toFixed(1)}`);
  add(into, "path", {class: "guide", d: `M${d.join("L")}`});
}

function bound(into, line, x, y) {
  const points = line.bound.map(([t, b]) => [x(t), y(b)]);
  const style = look(line.learner);
  if (points.length > 1) add(into, "path", {class: `bound ${style}`, d: `M${points.map((p) => p.join(" ")).join("L")}`});
  else for (const [a, b] of points) add(into, "path", {class: `bound mark ${style}`, d: `M${a - 14} ${b}h14`});
}

function look(learner) { return `k${learner % 8} d${Math.floor(learner / 8) % 4}`; }

function caption(lines, which, log, high) {
  const seeds = [...new Set(lines.map((line) => line.seeds))].join(" or ");
  const bands = lines.some((line) => line[which.key][1][0] !== null);
  let text = lines.length ? `${which.about} Means over ${seeds} ${seeds === "1" ? "seed" : "seeds"}` : "No selected learner has this curve";
  if (bands) text += `; bands are ${data.level} bootstrap intervals of the mean`;
  text += ".";
  const over = lines.filter((line) => !log && line[which.key][0].at(-1) > high).map((line) => `${named(line.learner)} (${short(line[which.key][0].at(-1))})`);
  if (over.length) text += ` Outside the picture at the end: ${over.join(", ")}.`;
  if (which.key === "above" && lines.length) text += " Next to each learner: what it paid so far, and its excess over the least.";
  if (which.key.startsWith("regret") && data.reacts[setting()]) text += ` ${data.reacting}`;
  if (lines.length && which.key === "regret" && $("guide").checked) text += " The dashed grey line grows as √T and ends at the best learner.";
  if (lines.some((line) => line.bound.length) && which.key === "regret" && $("bound").checked)
    text += " Thick strokes at the end, or dotted lines, are guaranteed bounds.";
  if (lines.length && log) text += " A logarithmic axis does not show values of 0 or less.";
  $("caption").textContent = text;
}

function slide(lines) {
  const times = lines.length ? lines[0].t : [0], at = $("at");
  const before = at.dataset.count;
  at.max = times.length - 1;
  if (before !== `${times.length}`) at.value = at.max;
  at.dataset.count = times.length;
  point();
}

function point() {
  const {x, y, lines, key} = view, i = +$("at").value;
  document.querySelectorAll("#learners output").forEach((out) => { out.textContent = ""; });
  $("spots").replaceChildren();
  $("episode").textContent = lines.length ? lines[0].t[i].toLocaleString("en") : "";
  $("at").setAttribute("aria-valuetext", `episode ${$("episode").textContent}`);
  $("cursor").setAttribute("visibility", lines.length ? "visible" : "hidden");
  for (const line of lines) {
    const value = line[key][0][i];
    $("cursor").setAttribute("x1", x(line.t[i]));
    $("cursor").setAttribute("x2", x(line.t[i]));
    document.querySelector(`#learners output[data-learner="${line.learner}"]`).textContent = key === "above" ? `${short(line.paid[0][i])} (${value < 0 ? "−" : "+"}${short(Math.abs(value))})` : short(value);
    if (y(value) <= view.height - margin.bottom && y(value) >= margin.top) add($("spots"), "circle", {class: `spot ${look(line.learner)}`, r: 3.5, cx: x(line.t[i]), cy: y(value)});
  }
}

function hover(event) {
  if (!view || !view.lines.length) return;
  const box = chart.getBoundingClientRect(), px = (event.clientX - box.left) * chart.viewBox.baseVal.width / box.width;
  const away = view.lines[0].t.map((t) => Math.abs(view.x(t) - px));
  $("at").value = away.indexOf(Math.min(...away));
  point();
}

function named(learner) { return document.querySelectorAll("#learners .name")[learner].textContent; }

function choose() {
  document.querySelectorAll("[data-setting]").forEach((part) => { part.hidden = +part.dataset.setting !== setting(); });
  draw();
}

function short(v) {
  const size = Math.abs(v);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return v.toExponential(Number.isInteger(Math.log10(size)) ? 0 : 1).replace("e+", "e");
  return v.toLocaleString("en", {maximumSignificantDigits: size >= 1000 ? 4 : 3});
}

function brief(v) { return Math.abs(v) < 1e4 ? short(v) : v.toLocaleString("en", {notation: "compact"}); }

function add(parent, name, attributes = {}, text = null) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  return parent.appendChild(node);
}

$("controls").addEventListener("submit", (event) => event.preventDefault());
$("controls").addEventListener("change", choose);
if ($("setting")) $("setting").addEventListener("change", choose);
$("at").addEventListener("input", point);
chart.addEventListener("pointermove", hover);
chart.addEventListener("pointerdown", hover);
let drawn = 0; // only its width matters: the height follows from it
new ResizeObserver(() => { if (chart.parentElement.clientWidth !== drawn) { drawn = chart.parentElement.clientWidth; draw(); } })
  .observe(chart.parentElement);
choose();
