// The page: asks the lab, and draws what came out. Everything that is drawn is a function of the films and of
// the moment `now`, so that the picture is right wherever the slider is.
"use strict";
const CHOICES = 0, ASK = 1, FILM = 2, RESULT = 3, WHY = 4, REPORT = 5;
const NEVER = 0xffffffff;
const $ = (id) => document.getElementById(id);
const state = document.documentElement.dataset;
const calm = matchMedia("(prefers-reduced-motion: reduce)");
state.state = "starting";

// ---- the lab, in a worker

const lab = (() => {
  const source = $("engine").textContent, waiting = new Map();
  let count = 0, send, worker = null;
  const hear = (m) => {
    const { yes, no } = waiting.get(m.id);
    waiting.delete(m.id);
    if (m.error) no(new Error(m.error));
    else yes(m.out);
  };
  function begin() {
    try {
      const code = source + "\nconst hear=engine((m,t)=>postMessage(m,t));onmessage=(e)=>hear(e.data);";
      const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
      const mine = (worker = new Worker(url));
      worker.onmessage = (e) => { if (worker === mine) hear(e.data); };
      send = (m) => mine.postMessage(m);
    } catch {
      send = new Function(source + "\nreturn engine;")()((m) => hear(m));
    }
    return ask({ packed: $("packed").textContent.trim() });
  }
  /** Ends what is being done, if that is possible, and begins anew. */
  function restart() {
    if (!worker) return null;
    worker.terminate();
    for (const { no } of waiting.values()) no(new Error("stopped"));
    waiting.clear();
    return begin();
  }
  const ask = (message) => new Promise((yes, no) => {
    message.id = ++count;
    waiting.set(message.id, { yes, no });
    send(message);
  });
  const bytes = (what, input) => ask({ what, input: input === undefined ? "" : JSON.stringify(input) });
  const json = async (what, input) => JSON.parse(new TextDecoder().decode(await bytes(what, input)));
  return { begin, restart, bytes, json };
})();

// ---- what is chosen

let choices, scene, films = [], marks = [];
const chosen = { load: "app-start", text: "", disk: "nas2020", schedulers: ["mq-deadline", "bfq"], set: {}, seed: 1, runtime: "" };
let now = 0, playing = false, before = 0, picked = null;

function element(tag, attributes, ...inside) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key in e && key !== "list") e[key] = value;
    else e.setAttribute(key, value);
  }
  e.append(...inside);
  return e;
}

function readHash() {
  const at = new URLSearchParams(location.hash.slice(1));
  const known = (list, name) => list.some((x) => x.name === name);
  if (known(choices.loads, at.get("load"))) chosen.load = at.get("load");
  if (at.has("text")) chosen.text = at.get("text");
  if (known(choices.disks, at.get("disk"))) chosen.disk = at.get("disk");
  for (const [i, key] of ["a", "b"].entries()) {
    if (known(choices.schedulers, at.get(key)) && chosen.schedulers[1 - i] !== at.get(key)) chosen.schedulers[i] = at.get(key);
  }
  chosen.set = {};
  for (const one of at.getAll("set")) {
    const [path, value] = one.split("=");
    if (value) chosen.set[path] = value;
  }
  chosen.runtime = [...$("runtime").options].some((o) => o.value === at.get("runtime")) ? at.get("runtime") : "";
  const seed = Number(at.get("seed"));
  if (at.has("seed") && Number.isInteger(seed) && seed >= 0) chosen.seed = seed;
  if ([...$("speed").options].some((o) => o.value === at.get("speed"))) $("speed").value = at.get("speed");
  return at.has("t") ? Number(at.get("t")) * 1e6 || 0 : null;
}

function hash() {
  const at = new URLSearchParams({ load: chosen.load, disk: chosen.disk, a: chosen.schedulers[0], b: chosen.schedulers[1] });
  if (chosen.text) at.set("text", chosen.text);
  for (const [path, value] of Object.entries(chosen.set)) at.append("set", path + "=" + value);
  if (chosen.seed !== 1) at.set("seed", chosen.seed);
  if (chosen.runtime) at.set("runtime", chosen.runtime);
  if ($("speed").value !== "1") at.set("speed", $("speed").value);
  if (now > 0) at.set("t", (now / 1e6).toFixed(3));
  return "#" + at;
}

let written = "";
function writeHash() {
  written = hash();
  try {
    history.replaceState(null, "", written);
  } catch {
    location.hash = written;
  }
}

// ---- running

/** The columns of a film, and what drawing needs of them: sorted times and who waited. */
function readFilm(bytes, tasks, rows) {
  const all = new Uint32Array(bytes.buffer);
  const [n, calls, idles, dropped] = all;
  let at = 4;
  const column = (length) => all.subarray(at, (at += length));
  const f = { n, dropped, task: column(n), kind: column(n), place: column(n), sectors: column(n), made: column(n), inserted: column(n), issued: column(n), begun: column(n), finished: column(n), completed: column(n), reason: column(n), carrier: column(n) };
  f.calls = { n: calls, task: column(calls), began: column(calls), ended: column(calls) };
  f.idles = { n: idles, from: column(idles), to: column(idles), task: column(idles), reason: column(idles) };
  f.who = Uint8Array.from(f.task, (t) => tasks[t] ? tasks[t].who : rows);
  const indices = Uint32Array.from({ length: n }, (_, i) => i);
  const carried = indices.filter((i) => f.carrier[i] === NEVER && f.issued[i] !== NEVER);
  f.byBegun = carried.filter((i) => f.begun[i] !== NEVER && f.finished[i] !== NEVER).sort((a, b) => f.begun[a] - f.begun[b] || f.finished[a] - f.finished[b]);
  f.byIssued = carried.slice().sort((a, b) => f.issued[a] - f.issued[b]);
  const times = (column, who) => column.filter((t, i) => f.who[i] === who && t !== NEVER && f.made[i] !== NEVER).sort();
  f.rows = Array.from({ length: rows + 1 }, (_, who) => ({ made: times(f.made, who), issued: times(f.issued, who), finished: times(f.finished, who) }));
  f.slots = new Uint16Array(n);
  const free = [];
  for (const i of f.byIssued) {
    let slot = free.findIndex((until) => until <= f.issued[i]);
    if (slot < 0) slot = free.length < 4096 ? free.push(0) - 1 : 4095;
    free[slot] = f.finished[i];
    f.slots[i] = slot;
  }
  f.depth = free.length;
  return f;
}

/** The first index in `list` whose value is above `t`. */
function above(list, t, of) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((of ? of[list[middle]] : list[middle]) <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A run that takes longer than this is cut short. */
const PATIENCE_MS = 9000;

/** Asks; a run that takes too long is ended and asked again with a time for its jobs. */
async function patiently(question) {
  let late = false;
  const timer = setTimeout(() => { late = lab.restart() !== null; }, PATIENCE_MS);
  try {
    return await lab.json(ASK, question);
  } catch (error) {
    if (!late) throw error;
    if (chosen.runtime === "1s") throw new Error("this takes too long here; choose a smaller load");
    chosen.runtime = question.runtime = "1s";
    writeHash();
    return patiently(question);
  } finally {
    clearTimeout(timer);
  }
}

let asked = 0;
async function run(moment) {
  const mine = ++asked;
  state.state = "running";
  const set = Object.entries(chosen.set).filter(([path]) => chosen.schedulers.some((s) => path.startsWith(s + "."))).map(([path, value]) => path + "=" + value);
  const question = { job: chosen.load, text: chosen.text, disk: chosen.disk, schedulers: chosen.schedulers, set, seed: chosen.seed, runtime: chosen.runtime };
  let got;
  try {
    got = await patiently(question);
    performance.mark('asked');
    const taken = [];
    for (const i of got.runs.keys()) taken.push(await lab.bytes(FILM, i));
    if (mine !== asked) return;
    performance.mark('films');
    films = taken.map((bytes) => readFilm(bytes, got.tasks, got.names.length - 1));
    reach();
  } catch (error) {
    if (mine !== asked) return;
    $("wrong").textContent = error.message;
    $("lead").textContent = "The lab says: " + error.message;
    state.state = "wrong";
    return;
  }
  performance.mark('read');
  scene = got;
  $("wrong").textContent = "";
  show();
  const end = length();
  now = moment === null ? Math.min(now, end) : Math.min(moment, end);
  $("time").max = Math.ceil(end / 1000);
  picked = null;
  overviews();
  draw();
  performance.mark('ready');
  state.state = "ready";
}

/** The part of the disk that the runs use: the platter shows that part, so that the arm's way can be seen. */
let used = { low: 0, span: 1 };
function reach() {
  let low = NEVER, high = 0;
  for (const f of films) for (const i of f.byBegun) { low = Math.min(low, f.place[i]); high = Math.max(high, f.place[i]); }
  used = { low: Math.min(low, high), span: Math.max(1, high - low) };
}

const length = () => Math.max(...scene.runs.map((r) => r.elapsed_us)) + 1;

// ---- words

const seconds = (us) => us >= 1e6 ? (us / 1e6).toFixed(us >= 1e7 ? 1 : 2) + " s" : us >= 1000 ? (us / 1000).toFixed(us >= 1e5 ? 0 : 1) + " ms" : Math.round(us) + " µs";
const mib = (bytes) => (bytes / 1048576).toFixed(bytes > 1e8 ? 0 : 1) + " MiB/s";
const kib = (sectors) => sectors >= 2048 ? (sectors / 2048).toFixed(sectors % 2048 ? 1 : 0) + " MiB" : sectors / 2 + " KiB";
const size = (bytes) => bytes >= 1e9 ? Math.round(bytes / 1e9) + " GB" : Math.max(1, Math.round(bytes / 1e6)) + " MB";
const OPS = ["read", "write", "flush", "discard"];

function lead() {
  const star = scene.star, [a, b] = scene.runs;
  const load = choices.loads.find((l) => l.name === chosen.load);
  const about = chosen.text ? "Your job file." : load.about[0].toUpperCase() + load.about.slice(1).replace(/ \(the default\)/, "") + ".";
  const name = (r) => "<b>" + r.scheduler + "</b>";
  let told = "";
  if (star && a.star && b.star) {
    const over = (r) => now >= r.star.ended_us;
    if (star.opens && over(a) && over(b)) {
      const [quick, slow] = a.star.took_us <= b.star.took_us ? [a, b] : [b, a];
      const factor = slow.star.took_us / Math.max(1, quick.star.took_us);
      told = factor < 1.05 ? `Both open the window after ${quick.star.took}.` : `The window opens ${factor.toFixed(1)} times sooner under ${name(quick)}: ${quick.star.took}, not ${slow.star.took}.`;
    } else if (star.opens && (over(a) || over(b))) {
      told = `The window is open under ${name(over(a) ? a : b)}. Under ${name(over(a) ? b : a)} it is not.`;
    } else if (star.opens) {
      told = "Under which scheduler does its window open first?";
    } else if (now >= length() - 2) {
      told = `99 % of ${star.name}’s ${a.star.which} end within ${a.star.p99 || "no time"} under ${name(a)}, ${b.star.p99 || "no time"} under ${name(b)}.`;
    } else told = `${star.name} is in the foreground. How long does a call of it wait?`;
  }
  const text = about + " " + told;
  if (lead.last !== text) $("lead").innerHTML = text.replace(about, about.replace(/&/g, "&amp;").replace(/</g, "&lt;"));
  lead.last = text;
}

// ---- the parts of the page that change with a run

const panels = [0, 1].map((i) => {
  const box = $("run" + i);
  const p = { box, i };
  p.select = element("select", { onchange: () => choose(i, p.select.value) });
  p.about = element("p", { className: "about" });
  p.title = element("span");
  p.big = element("div", { className: "big" });
  p.small = element("div");
  p.fill = element("div", { className: "fill" });
  p.win = element("div", { className: "win", role: "img" },
    element("div", { className: "bar", ariaHidden: "true" }, element("i"), element("i"), p.title),
    element("div", { className: "body", ariaHidden: "true" }, p.big, p.small, element("div", { className: "track" }, p.fill), element("div", { className: "lines" }, element("b"), element("b"), element("b"))));
  p.canvas = element("canvas", { tabIndex: 0, role: "img" });
  p.figures = element("p");
  p.ask = element("button", { type: "button", textContent: "Why now?", onclick: () => why(i, null) });
  p.tune = element("div", { className: "tune" });
  box.append(
    element("div", { className: "top" }, element("div", {}, element("label", {}, "Scheduler ", p.select), p.about), p.win),
    p.canvas,
    element("div", { className: "foot" }, p.figures, p.ask),
    element("details", {}, element("summary", { textContent: "Tunables" }), p.tune));
  p.canvas.addEventListener("click", (e) => click(p, e.offsetX, e.offsetY));
  p.canvas.addEventListener("keydown", (e) => {
    const back = e.key === "ArrowLeft", on = e.key === "ArrowRight";
    if (back || on) step(i, back ? -1 : 1);
    else if (e.key === "Enter") why(i, picked && picked.run === i ? picked.request : null);
    else return;
    e.preventDefault();
  });
  return p;
});

function choose(i, name) {
  if (chosen.schedulers[1 - i] === name) chosen.schedulers[1 - i] = chosen.schedulers[i];
  chosen.schedulers[i] = name;
  again();
}

function again() {
  now = 0;
  writeHash();
  run(0).then(() => play(!calm.matches));
}

/** Tunables by scheduler that matter most; of others the first ones. */
const MAIN = {
  bfq: ["slice_idle", "low_latency", "strict_guarantees", "timeout_sync", "wr_coeff", "back_seek_penalty", "injection", "queue_merge"],
  cfq: ["slice_idle", "quantum", "slice_sync", "slice_async", "group_idle", "low_latency"],
  "mq-deadline": ["read_expire", "write_expire", "fifo_batch", "writes_starved", "prio_aging_expire", "front_merges"],
  as: ["antic_expire", "read_expire", "write_expire", "read_batch_expire"],
};

function show() {
  $("command").textContent = scene.command;
  if (!chosen.text) $("text").value = choices.loads.find((l) => l.name === chosen.load).text;
  else $("text").value = chosen.text;
  $("load").value = chosen.text ? "" : chosen.load;
  $("disk").value = chosen.disk;
  $("seed").value = chosen.seed;
  $("runtime").value = chosen.runtime;
  const seen = new Set(films.flatMap((f) => f.rows.map((r, who) => r.made.length ? who : -1)));
  marks = scene.names.map((name, who) => ({ name, who, sign: who === scene.names.length - 1 ? "w" : String(who + 1), look: who === scene.names.length - 1 ? 8 : Math.min(who, 8) })).filter((m) => seen.has(m.who));
  $("key").replaceChildren(...marks.map((m) => element("li", {}, element("b", { textContent: m.sign, style: `background:var(--k${m.look})` }), m.name + (scene.star && isStar(m.who) ? " ★" : ""))));
  for (const p of panels) {
    const r = scene.runs[p.i], known = choices.schedulers.find((s) => s.name === r.scheduler);
    p.select.value = r.scheduler;
    p.about.textContent = known ? known.about : "";
    p.title.textContent = scene.star ? scene.star.name : "throughput";
    tunables(p, r);
  }
}

const isStar = (who) => scene.star && scene.tasks.some((t) => t.client === scene.star.client && t.who === who);

function tunables(p, r) {
  if (p.shown === r.scheduler && p.tune.contains(document.activeElement)) return;
  p.shown = r.scheduler;
  const preset = choices.schedulers.find((s) => s.name === r.scheduler);
  const family = Object.keys(MAIN).filter((f) => r.scheduler === f || r.scheduler.startsWith(f + "-") || r.scheduler.startsWith(f + "+")).pop();
  let list = r.tunables || [];
  if (family) list = MAIN[family].map((n) => list.find((t) => t.name === n)).filter(Boolean);
  list = list.slice(0, 8);
  const fields = list.map((t) => field(r.scheduler, t, preset.tunables.find((d) => d.name === t.name)));
  p.tune.replaceChildren(...(fields.length ? fields : [element("p", { className: "dim", textContent: r.scheduler + " has no tunables." })]));
}

function field(scheduler, t, preset) {
  const path = scheduler + "." + t.name;
  const set = (text) => {
    if (text === null) delete chosen.set[path];
    else chosen.set[path] = text;
    box.classList.toggle("set", text !== null);
    clearTimeout(field.timer);
    field.timer = setTimeout(() => { writeHash(); run(null); }, 180);
  };
  const name = element("span", { textContent: t.name });
  const box = element("label", { title: t.effect }, name);
  box.classList.toggle("set", path in chosen.set);
  if (t.kind === "switch") {
    box.append(element("input", { type: "checkbox", checked: t.default === 1, onchange: (e) => set(+e.target.checked === preset.default ? null : String(+e.target.checked)) }));
  } else if (t.kind === "choice") {
    box.append(element("select", { onchange: (e) => set(e.target.value === preset.shown ? null : e.target.value) }, ...t.words.map((w, i) => element("option", { value: w, textContent: w, selected: i === t.default }))));
  } else {
    // The middle is the default, and ten steps are twice or half of it.
    const base = preset.default || (t.kind === "time" ? 1e6 : 8);
    const of = (at) => {
      if (+at === 50) return preset.default;
      let value = +at === 0 ? 0 : base * 2 ** ((at - 50) / 10);
      const grain = t.kind === "time" ? 1000 * 10 ** Math.max(0, Math.floor(Math.log10(value / 1000 || 1)) - 1) : 1;
      value = Math.round(value / grain) * grain;
      return Math.min(t.max, Math.max(t.min, value));
    };
    const at = t.default === preset.default ? 50 : t.default === 0 ? 0 : Math.min(100, Math.max(1, Math.round(50 + 10 * Math.log2(t.default / base))));
    const words = (v) => t.kind === "time" ? seconds(v / 1000) : t.kind === "KiB" ? v + " KiB" : t.kind === "sectors" ? v + " sectors" : String(v);
    const text = (v) => t.kind === "time" ? Math.round(v / 1000) + "us" : t.kind === "KiB" ? v + "k" : t.kind === "sectors" ? v + "sectors" : String(v);
    const out = element("output", { textContent: words(t.default) });
    const slider = element("input", { type: "range", min: 0, max: 100, value: at });
    slider.setAttribute("aria-valuetext", words(t.default));
    slider.oninput = () => { out.textContent = words(of(slider.value)); slider.setAttribute("aria-valuetext", out.textContent); };
    slider.onchange = () => set(of(slider.value) === preset.default ? null : text(of(slider.value)));
    box.append(out, slider);
  }
  return box;
}

// ---- drawing

let ink = {};
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue("--" + name).trim();
  ink = { bg: of("bg"), ink: of("ink"), dim: of("dim"), rule: of("rule"), on: of("on"), k: [0, 1, 2, 3, 4, 5, 6, 7, 8].map((i) => of("k" + i)) };
}
const FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif';
const colour = (who) => ink.k[who >= scene.names.length - 1 ? 8 : Math.min(who, 8)];
const sign = (who) => who >= scene.names.length - 1 ? "w" : String(who + 1);

/** Places of the parts of a canvas. */
function plan(p) {
  const w = p.canvas.clientWidth, h = p.canvas.clientHeight;
  const strips = 96, high = h - strips;
  const radius = Math.max(30, Math.min(high / 2 - 8, w * 0.24));
  return { w, h, high, radius, cx: w - radius - 16, cy: high / 2, near: h - 76, far: h - 20, names: w < 420 ? 54 : 92, row: Math.min(46, (high - 26) / Math.max(1, marks.length)) };
}

function context(canvas, w, h) {
  const ratio = Math.min(3, devicePixelRatio || 1);
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  const c = canvas.getContext("2d");
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  return c;
}

/** For each pixel of the long strip: who had the disk longest, and how long it idled on purpose. */
function overviews() {
  for (const p of panels) {
    const f = films[p.i], w = Math.max(1, Math.floor(p.canvas.clientWidth)), end = length();
    const had = Array.from({ length: w }, () => new Map()), idle = new Float32Array(w);
    const spread = (from, to, mark) => {
      for (let x = Math.floor(from / end * w); x < w && x * end / w < to; x++) mark(x, Math.min(to, (x + 1) * end / w) - Math.max(from, x * end / w));
    };
    for (const i of f.byBegun) spread(f.begun[i], f.finished[i], (x, t) => had[x].set(f.who[i], (had[x].get(f.who[i]) || 0) + t));
    for (let i = 0; i < f.idles.n; i++) spread(f.idles.from[i], f.idles.to[i], (x, t) => { idle[x] += t; });
    p.overview = had.map((m, x) => {
      const parts = [...m].sort((a, b) => b[1] - a[1]).map(([who, t]) => [who, t * w / end]);
      return { parts, idle: Math.min(1, idle[x] * w / end) };
    });
  }
}

/** A disc with a number: a request. */
function disc(c, x, y, r, who) {
  c.fillStyle = colour(who);
  c.beginPath();
  c.arc(x, y, r, 0, 7);
  c.fill();
  if (r >= 5) label(c, sign(who), x, y, r * 1.5, ink.on, 700);
}

function label(c, text, x, y, size, fill, weight, align) {
  c.font = `${weight || 400} ${size}px ${FONT}`;
  c.fillStyle = fill;
  c.textAlign = align || "center";
  c.textBaseline = "middle";
  c.fillText(text, x, y + size * 0.06);
}

function hatch(c, x, y, w, h) {
  c.save();
  c.beginPath();
  c.rect(x, y, w, h);
  c.clip();
  c.strokeStyle = ink.dim;
  c.lineWidth = 1;
  c.beginPath();
  for (let a = x - h - (x - h) % 5; a < x + w; a += 5) { c.moveTo(a, y + h); c.lineTo(a + h, y); }
  c.stroke();
  c.restore();
}

/** How far a place is from the centre of the platter: sector 0 is at the rim. */
const radiusOf = (g, place) => g.radius * (0.97 - 0.57 * (place - used.low) / used.span);
const ease = (x) => x < 0 ? 0 : x > 1 ? 1 : x * x * (3 - 2 * x);

/** The place of the head: under way in the first part of a request, then at its sectors. */
function headAt(f, t) {
  const next = above(f.byBegun, t, f.begun), i = f.byBegun[next - 1], j = f.byBegun[next - 2];
  if (i === undefined) return 0;
  if (j === undefined || t >= f.finished[i]) return f.place[i];
  const part = (t - f.begun[i]) / Math.max(1, f.finished[i] - f.begun[i]);
  return f.place[j] + (f.place[i] - f.place[j]) * ease(part / 0.6);
}

function platter(c, g, f, t, speed) {
  const inner = g.radius * 0.38 - 5;
  c.fillStyle = ink.rule;
  c.globalAlpha = 0.45;
  c.beginPath(); c.arc(g.cx, g.cy, g.radius + 3, 0, 6.2832); c.moveTo(g.cx + inner, g.cy); c.arc(g.cx, g.cy, inner, 0, 6.2832, true); c.fill();
  c.globalAlpha = 1;
  c.strokeStyle = ink.rule;
  c.beginPath(); c.arc(g.cx, g.cy, inner * 0.42, 0, 7); c.stroke();
  // What was read or written lately, where it is on the disk.
  const glow = 1.4e6 * Math.max(0.05, Math.min(speed, 3));
  const first = above(f.byBegun, t - glow, f.begun), last = above(f.byBegun, t, f.begun);
  for (let k = Math.max(first, last - 500); k < last; k++) {
    const i = f.byBegun[k], age = (t - f.begun[i]) / glow;
    const angle = ((f.place[i] - used.low) / used.span * 997 % 1) * 6.2832;
    const r = radiusOf(g, f.place[i]), wide = Math.max(0.05, Math.min(0.5, f.sectors[i] / 900));
    c.globalAlpha = (1 - age) * 0.9;
    c.strokeStyle = colour(f.who[i]);
    c.lineWidth = f.kind[i] % 4 === 1 ? 2 : 4;
    c.beginPath(); c.arc(g.cx, g.cy, r, angle, angle + wide); c.stroke();
  }
  c.globalAlpha = 1;
  // The arm turns about a pivot beside the platter.
  const px = g.cx + g.radius * 0.93, py = g.cy + g.radius * 0.93, d = Math.hypot(px - g.cx, py - g.cy), arm = d * 0.86;
  const r = radiusOf(g, headAt(f, t));
  const turn = Math.acos(Math.max(-1, Math.min(1, (d * d + arm * arm - r * r) / (2 * d * arm))));
  const a = Math.atan2(g.cy - py, g.cx - px) + turn;
  const hx = px + arm * Math.cos(a), hy = py + arm * Math.sin(a);
  c.strokeStyle = ink.ink; c.lineCap = "round";
  c.lineWidth = 5; c.beginPath(); c.moveTo(px, py); c.lineTo(px + (hx - px) * 0.55, py + (hy - py) * 0.55); c.stroke();
  c.lineWidth = 2.5; c.beginPath(); c.moveTo(px, py); c.lineTo(hx, hy); c.stroke();
  c.fillStyle = ink.ink; c.beginPath(); c.arc(px, py, 7, 0, 7); c.fill();
  c.fillStyle = ink.bg; c.beginPath(); c.arc(px, py, 2.5, 0, 7); c.fill();
  const at = f.byBegun[above(f.byBegun, t, f.begun) - 1];
  if (at !== undefined && t <= f.finished[at]) disc(c, hx, hy, 7, f.who[at]);
  else { c.fillStyle = ink.ink; c.beginPath(); c.arc(hx, hy, 3.5, 0, 7); c.fill(); }
  return [hx, hy];
}

/** Slots of a flash drive: a request has one from its issue to its end. */
function slots(c, g, f, t, speed) {
  const many = Math.min(64, Math.max(4, f.depth)), across = Math.ceil(Math.sqrt(many)), side = Math.min(52, 2 * g.radius / across);
  const x0 = g.cx - across * side / 2, y0 = g.cy - Math.ceil(many / across) * side / 2;
  const place = (s) => [x0 + (s % across) * side, y0 + Math.floor(s / across) * side];
  for (let s = 0; s < many; s++) {
    const [x, y] = place(s);
    c.strokeStyle = ink.rule; c.lineWidth = 1;
    c.beginPath(); c.roundRect(x + 1.5, y + 1.5, side - 3, side - 3, 4); c.stroke();
  }
  const glow = 2e5 * Math.min(speed, 1), last = above(f.byIssued, t, f.issued);
  let more = 0;
  for (let k = Math.max(0, last - 400); k < last; k++) {
    const i = f.byIssued[k], s = f.slots[i], done = t - f.finished[i];
    if (done > glow) continue;
    if (s >= many) { if (done < 0) more++; continue; }
    const [x, y] = place(s);
    c.globalAlpha = done < 0 ? 1 : 0.55 * (1 - done / glow);
    c.fillStyle = colour(f.who[i]);
    c.beginPath(); c.roundRect(x + 1.5, y + 1.5, side - 3, side - 3, 4); c.fill();
    if (done < 0 && side > 14) label(c, sign(f.who[i]), x + side / 2, y + side / 2, 11, ink.on, 700);
  }
  c.globalAlpha = 1;
  if (more) label(c, "+" + more, g.cx, y0 + Math.ceil(many / across) * side + 9, 12, ink.dim);
  return [x0, g.cy];
}

/** The rows of who waits, in the scheduler and in the device, and requests on their way to the disk. */
function queues(c, g, f, t, speed, target) {
  const rows = marks, x0 = 14 + g.names, side = g.row > 34 ? 9 : 7, high = g.row > 34 ? 14 : 10;
  const room = g.cx - g.radius - x0 - 36, most = Math.max(3, Math.floor((room - 22) / (side + 2)));
  label(c, "waiting: ■ in the scheduler, □ in the disk", 2, 7, 11, ink.dim, 400, "left");
  const top = Math.max(20, 12 + g.high / 2 - rows.length * g.row / 2), y = (k) => top + g.row * (k + 0.5);
  rows.forEach((m, k) => {
    const list = f.rows[m.who], issued = above(list.issued, t);
    const queued = above(list.made, t) - issued, inside = issued - above(list.finished, t), waits = queued + inside;
    disc(c, 10, y(k), 8, m.who);
    // On a phone there is room for half as much.
    const letters = g.names < 92 ? 8 : 13;
    let name = m.name.replace(/ \((\d+) clients\)/, " ×$1");
    if (name.length > letters) name = name.slice(0, letters - 1) + "…";
    label(c, name, 24, y(k), letters < 13 ? 11 : 12, ink.ink, isStar(m.who) ? 700 : 400, "left");
    c.fillStyle = c.strokeStyle = colour(m.who);
    c.lineWidth = 1.4;
    const shown = Math.min(waits, most);
    for (let q = 0; q < shown; q++) {
      const x = x0 + 14 + room - (side + 2) * (q + 1);
      c.globalAlpha = q === most - 1 && waits > most ? 0.35 : 1;
      if (q < inside) c.strokeRect(x + 0.7, y(k) - high / 2 + 0.7, side - 1.4, high - 1.4);
      else c.fillRect(x, y(k) - high / 2, side, high);
    }
    c.globalAlpha = 1;
    if (waits > most) label(c, String(waits), x0 + 8 + room - (side + 2) * most, y(k), 11, ink.dim, 400, "right");
    c.strokeStyle = ink.rule; c.lineWidth = 1;
    c.beginPath(); c.moveTo(x0 + 14, y(k) + high / 2 + 4); c.lineTo(x0 + 14 + room, y(k) + high / 2 + 4); c.stroke();
  });
  const trip = 2.2e5 * speed, first = above(f.byIssued, t - trip, f.issued), last = above(f.byIssued, t, f.issued);
  for (let k = Math.max(first, last - 120); k < last; k++) {
    const i = f.byIssued[k], part = (t - f.issued[i]) / trip, row = rows.findIndex((m) => m.who === f.who[i]);
    if (row < 0) continue;
    const x = x0 + 16 + room, u = ease(part);
    c.globalAlpha = 1 - part * part;
    disc(c, x + (target[0] - x) * u, y(row) + (target[1] - y(row)) * u, last - first > 45 ? 3.5 : 6, f.who[i]);
  }
  c.globalAlpha = 1;
}

/** How much time the near strip shows on each side of now. */
const around = (speed) => {
  const gap = Math.max(...scene.runs.map((r) => r.elapsed_us / Math.max(1, r.requests)));
  return Math.max(20 * gap, Math.min(1.2e6, 3.5e5 * speed * Math.max(0.05, Math.min(1, gap / 2000))));
};

/** The label of a run that has ended; false before that. */
const hasEnded = (r) => now > r.elapsed_us && "the run ended after " + seconds(r.elapsed_us);

/** The near strip: what the disk did just before and does next, request by request. */
function near(c, g, f, t, speed, p) {
  const half = around(speed), x = (at) => g.w / 2 + (at - t) / half * g.w / 2, top = g.near, high = 22;
  const ended = hasEnded(scene.runs[p.i]);
  if (ended) label(c, ended, g.w / 2, top - 10, 12, ink.ink, 700);
  else label(c, "what the disk does, ± " + seconds(half), g.w / 2, top - 10, 11, ink.dim);
  c.strokeStyle = ink.rule; c.strokeRect(0.5, top + 0.5, g.w - 1, high - 1);
  const first = above(f.byBegun, t - half, f.finished);
  for (let k = Math.max(0, first - 2); k < f.byBegun.length; k++) {
    const i = f.byBegun[k];
    if (f.begun[i] > t + half) break;
    const a = Math.max(0, x(f.begun[i])), b = Math.min(g.w, x(f.finished[i]));
    if (b < a) continue;
    c.fillStyle = colour(f.who[i]);
    c.globalAlpha = f.begun[i] > t ? 0.5 : 1;
    c.fillRect(a, top + 1, Math.max(0.6, b - a - (b - a > 3 ? 0.8 : 0)), high - 2);
    if (b - a > 10) label(c, sign(f.who[i]), (a + b) / 2, top + high / 2, 11, ink.on, 700);
    if (picked && picked.run === p.i && picked.request === i) {
      c.globalAlpha = 1; c.strokeStyle = ink.ink; c.lineWidth = 2.5; c.strokeRect(a - 1, top - 1, Math.max(4, b - a + 1), high + 2);
    }
  }
  c.globalAlpha = 1; c.lineWidth = 1;
  for (let k = above(f.idles.to, t - half); k < f.idles.n && f.idles.from[k] < t + half; k++) {
    const a = Math.max(0, x(f.idles.from[k])), b = Math.min(g.w, x(f.idles.to[k]));
    if (b - a > 1.5) hatch(c, a, top + 1, b - a, high - 2);
  }
  c.strokeStyle = ink.ink; c.lineWidth = 1.5;
  c.beginPath(); c.moveTo(g.w / 2, top - 4); c.lineTo(g.w / 2, top + high + 4); c.stroke();
}

/** The far strip: the whole run. */
function far(c, g, t, p, r) {
  const top = g.far, high = 18, end = length(), list = p.overview;
  label(c, "the whole run, " + seconds(end), g.w / 2, top - 10, 11, ink.dim);
  let from = 0;
  list.forEach((one, x) => {
    let y = top + high;
    for (const [who, part] of one.parts) {
      c.fillStyle = colour(who);
      c.fillRect(x, y - part * high, 1.02, part * high);
      y -= part * high;
    }
    const main = one.parts.length ? one.parts[0][0] : -1, next = list[x + 1];
    if (!next || (next.parts.length ? next.parts[0][0] : -1) !== main) {
      if (main >= 0 && x - from > 26) label(c, sign(main), (from + x) / 2, top + high / 2 + 1, 11, ink.on, 700);
      from = x + 1;
    }
  });
  c.strokeStyle = ink.rule; c.lineWidth = 1; c.strokeRect(0.5, top + 0.5, g.w - 1, high - 1);
  if (r.star && scene.star.opens) {
    const x = Math.min(g.w - 2, r.star.ended_us / end * g.w);
    c.fillStyle = ink.ink; c.beginPath(); c.moveTo(x - 5, top - 6); c.lineTo(x + 5, top - 6); c.lineTo(x, top + 1); c.fill();
  }
  const x = t / end * g.w;
  c.fillStyle = ink.bg; c.fillRect(x - 2, top - 3, 4, high + 6);
  c.fillStyle = ink.ink; c.fillRect(x - 1, top - 3, 2, high + 6);
}

function panel(p, speed) {
  const r = scene.runs[p.i], f = films[p.i], t = now, g = plan(p);
  const c = context(p.canvas, g.w, g.h);
  c.clearRect(0, 0, g.w, g.h);
  const reached = used.span / 4294967296 * scene.capacity_bytes;
  const narrow = g.w < 420;
  const kind = scene.rotational ? (narrow ? "" : "the head, over ") + size(reached) + " in use" : narrow ? `at most ${scene.queue_depth}` : `at work in the drive, of ${scene.queue_depth} at most`;
  label(c, kind, narrow ? g.w - 2 : g.cx, narrow ? g.high - 1 : 7, 11, ink.dim, 400, narrow ? "right" : "center");
  const down = { ...g, cy: g.cy + 6, radius: g.radius - 8 };
  const target = scene.rotational ? platter(c, down, f, t, speed) : slots(c, down, f, t, speed);
  queues(c, g, f, t, speed, target);
  near(c, g, f, t, speed, p);
  far(c, g, t, p, r);
  windowOf(p, r, f, t);
}

/** The program's window, or how long its call has been waiting. */
function windowOf(p, r, f, t) {
  const star = scene.star;
  if (!star || !r.star) return tell(p, "none", mib(r.bytes_per_s), "all clients together, over the whole run", 0);
  if (t < r.star.started_us) return tell(p, "idle", "–", "not started yet", 0);
  const task = scene.tasks.findIndex((x) => x.client === star.client);
  if (!f.star) {
    const mine = [];
    for (let i = 0; i < f.calls.n; i++) if (f.calls.task[i] === task) mine.push(i);
    f.star = { began: Uint32Array.from(mine, (i) => f.calls.began[i]).sort(), ended: Uint32Array.from(mine, (i) => f.calls.ended[i]).sort(), calls: mine };
  }
  const done = above(f.star.ended, t), all = f.star.ended.length;
  if (star.opens) {
    if (t >= r.star.ended_us) return tell(p, r.star.finished ? "open" : "lost", r.star.took, r.star.finished ? "its window is open" : "given up", 1);
    return tell(p, "waits", seconds(t - r.star.started_us), `since its start; ${done} of ${all} calls`, all ? done / all : 0);
  }
  let waits = 0;
  for (const i of f.star.calls) {
    if (f.calls.began[i] > t) break;
    if (f.calls.ended[i] > t) waits = Math.max(waits, t - f.calls.began[i]);
  }
  if (now >= length() - 2) return tell(p, "open", r.star.p99 || "–", `99 % of ${r.star.calls} ${r.star.which} within`, 1);
  return tell(p, "waits", seconds(waits), `${waits ? "waiting now" : "no call waits"}; ${done} done`, Math.min(1, Math.log10(1 + waits / 1000) / 3));
}

function tell(p, win, big, small, part) {
  if (p.win.dataset.state !== win) p.win.dataset.state = win;
  if (p.big.textContent !== big) p.big.textContent = big;
  if (p.small.textContent !== small) p.small.textContent = small;
  p.fill.style.transform = `scaleX(${part.toFixed(3)})`;
  if (!playing) p.win.setAttribute("aria-label", `${p.title.textContent}: ${small} ${big}`);
}

function draw() {
  if (!scene) return;
  const speed = Number($("speed").value);
  for (const p of panels) {
    panel(p, speed);
    const r = scene.runs[p.i];
    const rows = films[p.i].rows, t = now;
    const waits = rows.reduce((n, l) => n + above(l.made, t) - above(l.issued, t), 0);
    const at = hasEnded(r) || `${waits} requests wait`;
    if (!playing) p.canvas.setAttribute("aria-label", `${r.scheduler} at ${seconds(now)}: ${at}. Arrow keys step from request to request, Enter asks why.`);
    const words = `${mib(r.bytes_per_s)} · idle on purpose ${Math.round(100 * r.idled_us / Math.max(1, r.elapsed_us))} %` + (r.star && r.star.p99 ? ` · ${scene.star.name}’s ${r.star.which}: p99 ${r.star.p99}` : "");
    if (p.figures.textContent !== words) p.figures.textContent = words;
  }
  lead();
  $("clock").textContent = (now / 1e6).toFixed(3) + " s";
  if (document.activeElement !== $("time") || playing) $("time").value = Math.round(now / 1000);
  $("time").setAttribute("aria-valuetext", (now / 1e6).toFixed(2) + " seconds");
}

// ---- playing

function play(on) {
  playing = on;
  if (on && now >= length() - 2) now = 0;
  $("playsign").setAttribute("d", on ? "M2 1h4v12H2zM8 1h4v12H8z" : "M2 1l11 6-11 6z");
  $("playword").textContent = on ? "Pause" : "Play";
  before = 0;
  if (on) requestAnimationFrame(frame);
  else { writeHash(); draw(); }
}

function frame(at) {
  if (!playing) return;
  if (before) now += Math.min(100, at - before) * 1000 * Number($("speed").value);
  before = at;
  if (!state.firstFrameMs) state.firstFrameMs = Math.round(performance.now());
  if (now >= length()) {
    now = length();
    return play(false);
  }
  draw();
  requestAnimationFrame(frame);
}

/** To the next or previous beginning of a request. */
function step(run, by) {
  play(false);
  const f = films[run];
  const k = by > 0 ? above(f.byBegun, now, f.begun) : above(f.byBegun, now - 1, f.begun) - 1;
  const i = f.byBegun[k];
  if (i === undefined) return;
  now = f.begun[i];
  picked = { run, request: i };
  draw();
}

// ---- why

function click(p, x, y) {
  if (!scene) return;
  const g = plan(p), f = films[p.i], half = around(Number($("speed").value));
  if (y >= g.far - 8) {
    now = Math.max(0, Math.min(length(), x / g.w * length()));
    return playing ? draw() : play(false);
  }
  play(false);
  if (y >= g.near - 10) {
    const at = now + (x - g.w / 2) / (g.w / 2) * half, k = above(f.byBegun, at, f.begun) - 1;
    const i = f.byBegun[k];
    return why(p.i, i !== undefined && at <= f.finished[i] + half / 60 ? i : null, at);
  }
  // A row, or the disk: the request that has waited longest there.
  const top = Math.max(20, 12 + g.high / 2 - marks.length * g.row / 2), row = Math.floor((y - top) / g.row);
  const who = x < g.cx - g.radius - 10 && marks[row] ? marks[row].who : -1;
  let found = null;
  for (let i = 0; i < f.n && f.made[i] <= now; i++) {
    if (who < 0 ? f.begun[i] <= now && now < f.finished[i] && f.carrier[i] === NEVER : f.who[i] === who && f.finished[i] > now && (found === null || f.made[i] < f.made[found])) found = i;
  }
  why(p.i, found);
}

/** Tells of a request, if there is one, and of its client's time then; else of the client that is waited for. */
async function why(run, request, moment) {
  if (!scene) return;
  play(false);
  const f = films[run], r = scene.runs[run], told = $("told");
  const at = Math.min(moment === undefined ? now : moment, r.elapsed_us);
  picked = request === null ? null : { run, request };
  draw();
  $("why").scrollIntoView({ block: "nearest", behavior: calm.matches ? "auto" : "smooth" });
  const task = request === null ? scene.star && scene.tasks.find((t) => t.client === scene.star.client) : scene.tasks[f.task[request]];
  const parts = [];
  if (request !== null) parts.push(...path(f, r, request));
  if (!task || task.client === null || task.client === undefined) {
    if (!parts.length) parts.push(element("p", { textContent: "No program of this load is in the foreground: click a request in a strip or a row." }));
    return told.replaceChildren(...parts);
  }
  const from = request === null ? Math.max(0, at - 60000) : f.made[request];
  const to = request === null ? Math.min(r.elapsed_us, at + 60000) : Math.min(r.elapsed_us, Math.max(from + 1000, f.completed[request] === NEVER ? r.elapsed_us : f.completed[request]));
  const head = element("h3", { textContent: `${r.scheduler}: ${task.name} at ${(at / 1e6).toFixed(3)} s` });
  told.replaceChildren(head, ...parts, element("p", { className: "dim", textContent: "The lab is looking." }));
  try {
    const got = await lab.json(WHY, { run, name: task.name, from_us: Math.round(from), to_us: Math.round(Math.max(to, from + 1)) });
    const says = (got.window ? got.window.sentences : []).map((s) => element("p", { textContent: s }));
    const slow = got.window && got.window.slowest[0];
    if (slow) says.push(element("p", { className: "dim", textContent: "Its slowest call then:" }), element("ol", {}, ...slow.lines.map((l) => element("li", { textContent: l }))));
    if (!says.length) says.push(element("p", { textContent: "The client had no call under way at this moment." }));
    told.replaceChildren(head, ...parts, ...says);
  } catch (error) {
    told.replaceChildren(head, ...parts, element("p", { textContent: error.message }));
  }
  state.told = "yes";
}

function path(f, r, i) {
  const task = scene.tasks[f.task[i]];
  const ago = (a, b) => a === NEVER || b === NEVER ? null : b - a;
  const queued = ago(f.made[i], f.issued[i]), behind = ago(f.issued[i], f.begun[i]), served = ago(f.begun[i], f.finished[i]);
  let others = 0;
  if (queued) for (let k = above(f.byBegun, f.made[i], f.begun); k < f.byBegun.length && f.begun[f.byBegun[k]] < f.issued[i]; k++) if (f.task[f.byBegun[k]] !== f.task[i]) others++;
  const size = f.kind[i] % 4 === 2 ? "" : " of " + kib(f.sectors[i]);
  const words = [`A ${OPS[f.kind[i] % 4]}${size} by ${task ? task.name : "no client"}, made at ${(f.made[i] / 1e6).toFixed(6)} s:`];
  words.push(queued === null ? "it was never sent to the disk in this run." : `it waited ${seconds(queued)} in the scheduler` + (others ? `, while ${others} requests of others went first` : "") + (behind > 0 ? `, then ${seconds(behind)} in the device behind others` : "") + (served === null ? "." : `, and was served in ${seconds(served)}.`));
  if (f.carrier[i] !== NEVER) words.push("It was merged into another request.");
  if (r.reasons[f.reason[i]]) words.push(`Chosen: ${r.reasons[f.reason[i]]}.`);
  return [element("p", { textContent: words.join(" ") })];
}

// ---- controls

function save(name, bytes, type, open) {
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  if (open) {
    const tab = window.open(url, "_blank");
    if (tab) return;
  }
  element("a", { href: url, download: name }).click();
}

function controls() {
  const fill = (select, list, text) => select.replaceChildren(...list.map((x) => element("option", { value: x.name, textContent: text(x) })));
  fill($("load"), choices.loads, (l) => `${l.name}: ${l.about}`);
  $("load").prepend(element("option", { value: "", textContent: "your own job file, below", hidden: true }));
  fill($("disk"), choices.disks, (d) => `${d.name}: ${d.about}`);
  panels.forEach((p) => fill(p.select, choices.schedulers, (s) => s.name));
  $("version").textContent = "Fairhead " + choices.version + ".";
  $("load").onchange = () => { chosen.load = $("load").value || chosen.load; chosen.text = ""; again(); };
  $("disk").onchange = () => { chosen.disk = $("disk").value; again(); };
  $("runtime").onchange = () => { chosen.runtime = $("runtime").value; again(); };
  $("seed").onchange = () => { const n = Math.floor(Number($("seed").value)); if (n >= 0) { chosen.seed = n; again(); } };
  $("runtext").onclick = () => { const own = $("text").value; chosen.text = choices.loads.some((l) => l.name === chosen.load && l.text === own) ? "" : own; again(); };
  $("play").onclick = () => play(!playing);
  $("again").onclick = () => { now = 0; draw(); };
  $("speed").onchange = () => { writeHash(); draw(); };
  $("time").oninput = () => { now = Number($("time").value) * 1000; if (!playing) draw(); };
  $("time").onchange = () => { if (!playing) writeHash(); };
  const say = (text) => { $("done").textContent = text; };
  $("link").onclick = async () => {
    writeHash();
    const url = location.href.split("#")[0] + written;
    try { await navigator.clipboard.writeText(url); say("The link is in the clipboard."); } catch { say("The link is in the address bar: copy it from there."); }
  };
  $("report").onclick = async () => { say("The lab draws the report."); save("fairhead-report.html", await lab.bytes(REPORT), "text/html", true); say("The report is of the same run."); };
  $("json").onclick = async () => { save("fairhead.json", await lab.bytes(RESULT), "application/json"); say("These are the bytes of fairhead run --output-format json."); };
  document.addEventListener("keydown", (e) => {
    if (e.key !== " " || /^(INPUT|SELECT|TEXTAREA|BUTTON|SUMMARY)$/.test(e.target.tagName)) return;
    e.preventDefault();
    play(!playing);
  });
  addEventListener("hashchange", () => { if (location.hash && location.hash !== written) { const t = readHash(); run(t === null ? 0 : t); } });
  let wide = 0;
  new ResizeObserver(() => { if (scene && wide !== $("stage").clientWidth) { wide = $("stage").clientWidth; overviews(); draw(); } }).observe($("stage"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours(); draw(); });
  document.addEventListener("visibilitychange", () => { before = 0; });
}

// The module comes after this script, so that the page is there while the module is read.
document.addEventListener("DOMContentLoaded", async () => {
  performance.mark('begin');
  colours();
  try {
    await lab.begin();
    performance.mark('unpacked');
    choices = await lab.json(CHOICES);
    performance.mark('choices');
  } catch (error) {
    $("lead").textContent = "The lab cannot start here: " + error.message;
    state.state = "wrong";
    return;
  }
  controls();
  const moment = readHash();
  await run(moment === null ? 0 : moment);
  if (scene && moment === null) {
    // With less motion: a still picture of an interesting moment.
    if (calm.matches) { now = Math.min(length(), scene.runs[0].star ? scene.runs[0].star.started_us + 4e5 : 4e5); draw(); } else play(true);
  }
});
