// Runs the trace processor of Perfetto's viewer outside a browser: `node processor.js FOLDER`, the viewer's files being in that folder.
//
// What the viewer's worker gets as messages (protobuf, TraceProcessorRpcStream) is read from standard input, and what it answers goes to
// standard output. The worker's script runs in a context that has of a browser only what it uses.

const fs = require('fs');
const path = require('path');
const vm = require('vm');

const file = (name) => fs.readFileSync(path.join(process.argv[2], path.basename(String(name))));

class LocalRequest {
  open(method, name) { this.name = name; }
  send() { this.status = 200; this.response = file(this.name).buffer; }
}

const worker = {
  TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask, URL, Response,
  console: { log() {}, info() {}, warn() {}, debug() {}, error: console.error },
  crypto: globalThis.crypto,
  navigator: { userAgent: 'node' },
  location: { href: 'http://localhost/engine_bundle.js' },
  XMLHttpRequest: LocalRequest,
  fetch: async (name) => new Response(file(name), { headers: { 'Content-Type': 'application/wasm' } }),
  WorkerGlobalScope: class {},
  importScripts() {},
  postMessage(message) { console.error('from the worker:', message); },
  addEventListener() {},
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(file('engine_bundle.js').toString(), worker);

const port = { postMessage: (answer) => fs.writeSync(1, Buffer.from(answer)) };
worker.onmessage({ data: port });
const request = vm.runInContext('Uint8Array', worker).from(fs.readFileSync(0));

// Nothing tells when the processor has been compiled; until then it has no memory, and says so.
const deadline = Date.now() + 60_000;
const ask = () => {
  try {
    port.onmessage({ data: request });
    process.exit(0);
  } catch (error) {
    if (Date.now() > deadline || !String(error).includes('undefined')) {
      console.error(String(error));
      process.exit(1);
    }
    setTimeout(ask, 50);
  }
};
setTimeout(ask);
