// The lab's side of the page: runs in a worker, so that the page stays quick, or in the page where workers are
// not allowed. `post` sends an answer back.
"use strict";
function engine(post) {
  let module, lab;
  const text = (bytes) => new TextDecoder().decode(bytes);
  async function unpack(packed) {
    const letters = atob(packed);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
  }
  async function begin() {
    lab = (await WebAssembly.instantiate(module, {})).exports;
  }
  function call(what, input) {
    const bytes = new TextEncoder().encode(input);
    const at = lab.room(bytes.length);
    new Uint8Array(lab.memory.buffer, at, bytes.length).set(bytes);
    const wentWell = lab.call(what);
    const out = new Uint8Array(lab.memory.buffer, lab.output(), lab.output_length()).slice();
    if (!wentWell) throw new Error(text(out));
    return out;
  }
  let last = Promise.resolve();
  return (message) => {
    last = last.then(async () => {
      const { id, packed, what, input } = message;
      try {
        if (packed) {
          await unpack(packed);
          await begin();
          post({ id });
        } else {
          const out = call(what, input);
          post({ id, out }, [out.buffer]);
        }
      } catch (error) {
        // After a trap the memory may be in any state.
        const trapped = error instanceof WebAssembly.RuntimeError;
        if (trapped) await begin();
        post({ id, error: trapped ? "the lab stopped at a fault of its own: " + error.message : error.message });
      }
    });
  };
}
