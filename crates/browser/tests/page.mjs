// Tries the page: `node page.mjs WASM PAGE CHROMIUM FOLDER`.
//
// - FOLDER/cases.json is a list of questions, each with the file of the bytes that
//   `fairhead run --output-format json` gave. The module has to give the same bytes.
// - The page is opened from its file in a headless Chromium (`-`: not), in 400 and 1280 pixels, light and dark.
//   It has to draw within 2 s, shift nothing, fit the width, load nothing, and be usable with the keyboard.
//   Pictures of it are written to FOLDER.
//
// Prints one line for what holds, or what does not, and ends with 1.
import { createHash } from "node:crypto";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [wasm, page, chromium, folder] = process.argv.slice(2);
const faults = [];
let tooBusy = false;
const expect = (holds, what) => { if (!holds) faults.push(what); };
const FIRST_FRAME_MS = 2000;

/** Whether others use the processors: a loop gets less than four fifths of one. */
function isBusy() {
  const start = Date.now(), before = process.cpuUsage();
  while (Date.now() < start + 300);
  const used = process.cpuUsage(before);
  return (used.user + used.system) / 1000 < 0.8 * (Date.now() - start);
}

async function sameBytes() {
  const { instance } = await WebAssembly.instantiate(readFileSync(wasm), {});
  const lab = instance.exports;
  const call = (what, input) => {
    const bytes = Buffer.from(input);
    const at = lab.room(bytes.length);
    new Uint8Array(lab.memory.buffer, at, bytes.length).set(bytes);
    const ok = lab.call(what);
    return [ok, Buffer.from(lab.memory.buffer, lab.output(), lab.output_length()).toString()];
  };
  const hash = (text) => createHash("sha256").update(text).digest("hex");
  const hashes = [];
  for (const { question, native } of JSON.parse(readFileSync(join(folder, "cases.json")))) {
    const [ok, said] = call(1, JSON.stringify(question));
    expect(ok, `${JSON.stringify(question)}: ${said}`);
    const [, result] = call(3, "");
    expect(hash(result) === hash(readFileSync(join(folder, native))), `${JSON.stringify(question)}: the module's JSON is ${hash(result)}, the program's ${hash(readFileSync(join(folder, native)))}`);
    hashes.push(hash(result).slice(0, 12));
  }
  const [ok, said] = call(1, JSON.stringify({ job: "appstart" }));
  expect(!ok && said.includes("did you mean 'app-start'?"), `a wrong name gives: ${said}`);
  return hashes.join(" ");
}

/** A browser, spoken to through a pipe. */
class Browser {
  constructor() {
    this.profile = mkdtempSync(join(tmpdir(), "fairhead-page-"));
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--no-first-run", `--user-data-dir=${this.profile}`];
    this.process = spawn(chromium, [...flags, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    [this.count, this.waiting, this.heard, this.rest] = [0, new Map(), [], ""];
    this.process.stdio[4].on("data", (data) => {
      const parts = (this.rest + data).split("\0");
      this.rest = parts.pop();
      for (const part of parts) this.hear(JSON.parse(part));
    });
  }
  hear(m) {
    if (m.id) {
      const { yes, no } = this.waiting.get(m.id);
      this.waiting.delete(m.id);
      if (m.error) no(new Error(m.error.message));
      else yes(m.result);
    } else this.heard.push(m);
  }
  send(method, params = {}, sessionId = this.session) {
    const id = ++this.count;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) }) + "\0");
    return new Promise((yes, no) => this.waiting.set(id, { yes, no }));
  }
  async open(width, height, features, url) {
    this.session = undefined;
    this.heard = [];
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    this.target = targetId;
    this.session = (await this.send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    for (const domain of ["Page", "Runtime", "Network"]) await this.send(domain + ".enable");
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, screenWidth: width, screenHeight: height, deviceScaleFactor: 1, mobile: width < 500 });
    await this.send("Emulation.setEmulatedMedia", { features });
    await this.send("Page.navigate", { url });
  }
  async run(script) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression: script, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  }
  async until(script, what, ms = 20000) {
    const end = Date.now() + ms;
    while (Date.now() < end) {
      // Before the page is there, there is no document.
      if (await this.run(script).catch(() => false)) return true;
      await new Promise((r) => setTimeout(r, 40));
    }
    const says = await this.run("document.getElementById('lead')?.textContent");
    throw new Error([`${what}: not within ${ms} ms; the page says: ${says}`, ...this.thrown()].join("\n"));
  }
  thrown() {
    const all = this.heard.filter((m) => m.method === "Runtime.exceptionThrown").map((m) => m.params.exceptionDetails);
    return all.map((e) => e.exception?.description || e.text);
  }
  async key(key) {
    const code = { Tab: 9, " ": 32, ArrowRight: 39, Enter: 13 }[key];
    const text = key === " " ? " " : key === "Enter" ? "\r" : undefined;
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: code, text });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: code });
  }
  async picture(name, whole) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole });
    writeFileSync(join(folder, name + ".png"), Buffer.from(data, "base64"));
  }
  async close() {
    await this.send("Target.closeTarget", { targetId: this.target }, null);
  }
  end() {
    this.process.kill();
    return new Promise((yes) => this.process.once("exit", () => { rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 }); yes(); }));
  }
}

const url = pathToFileURL(page).href;
const SHIFT = `new Promise((done) => {
  let sum = 0;
  const moved = new Set();
  const name = (s) => (s.node && (s.node.id || s.node.className || s.node.nodeName)) + " " + [s.previousRect, s.currentRect].map((r) => [r.x, r.y, r.width, r.height].map(Math.round)).join(" to ");
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) {
      // A headless window may be without a width at first; then all of the page moves once.
      if (e.sources.some((s) => s.node?.nodeName === "MAIN" && s.previousRect.width < 200)) continue;
      sum += e.value;
      e.sources.forEach((s) => moved.add(name(s)));
    }
  }).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done({ sum, moved: [...moved].join("; ") }), 80);
})`;
const media = (scheme, motion = "no-preference") => [{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: motion }];

async function looks(browser, width, height, scheme) {
  const name = `${width}-${scheme}`;
  let first;
  // A machine that is busy with something else gets two more chances.
  for (let i = 0; i < 3; i++) {
    await browser.open(width, height, media(scheme), url + "#speed=3");
    await browser.until("document.documentElement.dataset.firstFrameMs", name + ": the first frame");
    first = Number(await browser.run("document.documentElement.dataset.firstFrameMs"));
    if (first <= FIRST_FRAME_MS || i === 2) break;
    await browser.close();
  }
  const late = first > FIRST_FRAME_MS;
  if (late && isBusy()) tooBusy = true;
  else expect(!late, `${name}: the first frame came after ${first} ms; at most ${FIRST_FRAME_MS}`);
  await new Promise((r) => setTimeout(r, 1200));
  await browser.picture(name, true);
  const shift = await browser.run(SHIFT);
  expect(shift.sum < 0.001, `${name}: the layout shifted by ${shift.sum}: ${shift.moved}`);
  const wide = await browser.run("document.documentElement.scrollWidth - innerWidth");
  expect(wide <= 0, `${name}: ${wide} pixels wider than the window`);
  const drawn = await browser.run("[...document.querySelectorAll('canvas')].every(c=>{const d=c.getContext('2d').getImageData(0,0,c.width,c.height).data;let n=0;for(let i=3;i<d.length;i+=4)n+=d[i]>0;return n>3000})");
  expect(drawn, `${name}: a canvas is empty`);
  const loaded = browser.heard.filter((m) => m.method === "Network.requestWillBeSent").map((m) => m.params.request.url);
  const foreign = loaded.filter((u) => !/^(file|blob|data):/.test(u));
  expect(!foreign.length, `${name}: the page loads ${foreign}`);
  const thrown = browser.thrown();
  expect(!thrown.length, `${name}: ${thrown}`);
  await browser.close();
  return first;
}

async function keyboard(browser) {
  await browser.open(1280, 900, media("light", "reduce"), url + "#a=mq-deadline&b=bfq&t=2.5&set=bfq.slice_idle=2000us");
  await browser.until("document.documentElement.dataset.state === 'ready'", "with less motion");
  expect(await browser.run("document.getElementById('playword').textContent") === "Play", "with less motion it plays by itself");
  expect((await browser.run("document.getElementById('clock').textContent")).startsWith("2.500"), "the link's moment is not shown");
  expect((await browser.run("document.getElementById('command').textContent")).includes("--set bfq.slice_idle=2000us"), "the link's tunable is not set");
  const order = [];
  for (let i = 0; i < 24; i++) {
    await browser.key("Tab");
    order.push(await browser.run("(()=>{const a=document.activeElement;const s=getComputedStyle(a);return (a.id||a.tagName)+':'+(s.outlineStyle!=='none'&&parseFloat(s.outlineWidth)>=2)})()"));
  }
  for (const wanted of ["load", "disk", "play", "again", "speed", "time", "SELECT", "CANVAS", "SUMMARY", "told", "link", "report", "json"]) {
    expect(order.includes(wanted + ":true"), `Tab does not lead to ${wanted} with a visible focus: ${order.join(" ")}`);
  }
  await browser.run("document.querySelector('#run0 canvas').focus()");
  await browser.key("ArrowRight");
  await browser.key("Enter");
  await browser.until("document.documentElement.dataset.told === 'yes'", "Enter on a request");
  expect((await browser.run("document.getElementById('told').textContent")).length > 120, "the lab does not say why");
  expect(await browser.run("(()=>{const r=document.getElementById('told').getBoundingClientRect();return r.top<innerHeight-60})()"), "the explanation is out of sight");
  await browser.picture("why", false);
  await browser.run("document.activeElement.blur()");
  const before = await browser.run("document.getElementById('clock').textContent");
  await browser.key(" ");
  await browser.until(`document.getElementById('clock').textContent !== ${JSON.stringify(before)}`, "Space plays");
  await browser.close();
}

async function links(browser) {
  await browser.open(390, 800, media("light", "reduce"), url + "#a=mq-deadline&b=bfq&t=9");
  await browser.until("document.documentElement.dataset.state === 'ready'", "a link to a moment after one run");
  const said = await browser.run("[...document.querySelectorAll('canvas')].map(c => c.getAttribute('aria-label').includes('the run ended after'))");
  expect(said[0] === false && said[1] === true, "a run that is over does not say so: " + said);
  await browser.picture("ended", true);
  await browser.close();
  await browser.open(1280, 900, media("dark"), url + "#load=random-readers&disk=nvme&a=none&b=kyber&runtime=1s&speed=0.01&t=0.05");
  await browser.until("document.documentElement.dataset.state === 'ready'", "a link to a flash drive");
  await browser.picture("flash", true);
  expect((await browser.run("document.getElementById('command').textContent")) === "fairhead run random-readers --disk nvme --sched none,kyber --runtime 1s", "the link's scenario is not shown");
  await browser.close();
}

const hashes = await sameBytes();
let firsts = "";
if (chromium !== "-") {
  const browser = new Browser();
  try {
    const all = [];
    for (const scheme of ["light", "dark"]) for (const [w, h] of [[400, 800], [1280, 900]]) all.push(await looks(browser, w, h, scheme));
    firsts = `, first frame after ${Math.max(...all)} ms at most` + (tooBusy ? " (too late, but the machine is busy)" : "");
    await keyboard(browser);
    await links(browser);
  } catch (error) {
    faults.push(error.message);
  }
  await browser.end();
}
if (faults.length) {
  console.log(faults.join("\n"));
  process.exitCode = 1;
} else console.log(`the program's bytes (${hashes})${firsts}`);
