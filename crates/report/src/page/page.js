'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const all = [...document.querySelectorAll('svg.p')];
  const NS = 'http://www.w3.org/2000/svg';
  const make = (name, props, ...inner) => {
    const e = Object.assign(document.createElement(name), props);
    e.append(...inner);
    return e;
  };
  const draw1 = (name, attrs, text = '') => {
    const e = document.createElementNS(NS, name);
    for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
    e.textContent = text;
    return e;
  };
  const file = (link, name, text, type) => {
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
  };

  // A picture as a file: the same elements, with margins, a title, a key and the style.
  const asFile = svg => {
    const [left, right, above, below] = svg.dataset.box.split(' ').map(Number);
    const width = 720, height = +svg.getAttribute('height'), head = 34;
    const inner = svg.cloneNode(true);
    for (const a of ['style', 'role', 'aria-labelledby', 'tabindex', 'data-box']) inner.removeAttribute(a);
    const place = { x: left + 12, y: head + above, width: width - left - right - 24, height, overflow: 'visible' };
    for (const [k, v] of Object.entries(place)) inner.setAttribute(k, v);
    const title = svg.querySelector('title').textContent;
    const keys = [...svg.closest('section').querySelectorAll('.key li')].map(l => l.textContent.trim());
    const end = head + above + height + below + 12, full = end + 18 * keys.length;
    const out = draw1('svg', { width, height: full, viewBox: `0 0 ${width} ${full}` });
    out.append(draw1('title', {}, title), draw1('style', {}, document.getElementById('file-style').textContent),
      document.querySelector('.defs defs').cloneNode(true), draw1('rect', { class: 'bg', width: '100%', height: '100%' }),
      draw1('text', { class: 'h', x: 12, y: 22 }, title), inner);
    keys.forEach((k, i) => out.append(draw1('text', { x: 12, y: end + 4 + 18 * i }, k)));
    return new XMLSerializer().serializeToString(out);
  };
  for (const svg of all) {
    const link = make('a', { href: '#', textContent: 'save as SVG' });
    link.addEventListener('click', () => file(link, svg.dataset.name + '.svg', asFile(svg), 'image/svg+xml'));
    svg.closest('figure').querySelector('.foot').append(link);
  }
  const json = make('a', { href: '#', textContent: 'save the figures as JSON' });
  json.addEventListener('click', () =>
    file(json, 'figures.json', JSON.stringify(data.figures, null, 2) + '\n', 'application/json'));
  document.getElementById('save').append(json);

  // Zoom: one window of time for all pictures over time.
  const timed = all.filter(s => s.dataset.span).map(s => {
    const inner = s.querySelector('svg.d');
    return { s, inner, box: inner && inner.getAttribute('viewBox').split(' ').map(Number), axis: s.querySelector('.bx') };
  });
  if (!timed.length) return;
  const whole = Math.max(...timed.map(t => +t.s.dataset.span));
  let from = 0, to = whole;
  const shown = ns => {
    const [unit, name] = ns >= 1e9 ? [1e9, 's'] : ns >= 1e6 ? [1e6, 'ms'] : [1e3, 'us'];
    return +(ns / unit).toPrecision(6) + name;
  };
  const ticks = () => {
    const rough = (to - from) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(d => d * power).find(s => s >= rough);
    const out = [];
    for (let t = Math.ceil(from / step) * step; t <= to + step * 1e-6; t += step) out.push(Math.round(t));
    return out;
  };
  const where = make('output', {});
  where.setAttribute('aria-live', 'polite');
  const draw = () => {
    const isWhole = from === 0 && to === whole;
    where.textContent = isWhole ? `the whole run, ${shown(whole)}` : `${shown(from)} to ${shown(to)}`;
    for (const { s, inner, box, axis } of timed) {
      if (inner) inner.setAttribute('viewBox', `${box[2] * from / whole} 0 ${box[2] * (to - from) / whole} ${box[3]}`);
      const height = +s.getAttribute('height'), g = draw1('g', { class: 'bx' });
      for (const t of ticks()) {
        const x = (t - from) / (to - from) * 100 + '%';
        g.append(draw1('line', { class: 'g', x1: x, x2: x, y2: height }),
          draw1('text', { class: t > from + (to - from) * 0.97 ? 'x e' : 'x', x, y: height + 17 }, t === 0 ? '0' : shown(t)));
      }
      s.querySelector('.bx').replaceWith(isWhole ? axis : g);
      for (const b of s.querySelectorAll('.b[data-x]')) {
        const x = (b.dataset.x * whole - from) / (to - from);
        b.setAttribute('x', x * 100 + '%');
        b.style.display = x < 0 || x > 1 ? 'none' : '';
      }
    }
  };
  const show = (a, b) => {
    const wide = Math.min(whole, Math.max(b - a, 1e4));
    from = Math.min(Math.max(0, a), whole - wide);
    to = from + wide;
    draw();
  };
  const scale = (f, at = (from + to) / 2) => show(at - (at - from) * f, at + (to - at) * f);
  const pan = f => show(from + (to - from) * f, to + (to - from) * f);
  const button = (text, title, act) => {
    const b = make('button', { type: 'button', textContent: text, title });
    b.setAttribute('aria-label', title);
    b.addEventListener('click', act);
    return b;
  };
  const bar = make('div', { className: 'zoom' }, 'Zoom',
    button('+', 'zoom in', () => scale(0.5)), button('\u2212', 'zoom out', () => scale(2)),
    button('\u25c0', 'earlier', () => pan(-0.25)), button('\u25b6', 'later', () => pan(0.25)),
    button('all', 'the whole run', () => show(0, whole)), where);
  bar.setAttribute('role', 'toolbar');
  bar.setAttribute('aria-label', 'Zoom of all pictures over time');
  const bring = s => {
    const host = s.closest('section');
    if (bar.parentNode !== host) host.querySelector('.grid,.column').before(bar);
  };
  bring(timed[timed.length - 1].s);

  // What is under the pointer.
  const turns = data.decisions;
  const told = (name, lane, ns) => {
    const best = { gap: Infinity };
    for (const t of turns.turns[name] || []) {
      if (t[0] !== lane) continue;
      const a = t[1] * 1e3, b = a + t[2] * 1e3, gap = ns < a ? a - ns : ns > b ? ns - b : 0;
      if (gap < best.gap) Object.assign(best, { gap, t, a, b });
    }
    if (best.gap > (to - from) / 250) return '';
    const t = best.t, why = [];
    for (let i = 5; i < t.length; i += 2) why.push(turns.reasons[t[i]] + (t[i + 1] > 1 ? ` (${t[i + 1]} times)` : ''));
    const what = t[3] ? 'the disk idled for it' : t[4] === 1 ? '1 request' : `${t[4]} requests`;
    return `${turns.lanes[lane]}, ${shown(best.a)} to ${shown(best.b)}: ${what}; ${why.join(', ')}`;
  };
  for (const { s } of timed) {
    const lanes = s.dataset.name.startsWith('decisions-') ? turns.lanes.length : 0;
    const seen = s.closest('figure').querySelector('.seen'), said = seen.textContent;
    const tell = text => {
      seen.textContent = text || said;
      seen.classList.toggle('hint', !!text);
    };
    s.classList.add('z');
    s.setAttribute('tabindex', '0');
    const time = e => {
      const box = s.getBoundingClientRect();
      return from + (e.clientX - box.left) / box.width * (to - from);
    };
    let drag = null;
    s.addEventListener('focus', () => bring(s));
    s.addEventListener('pointerdown', e => { drag = { x: e.clientX, from, to }; });
    s.addEventListener('pointermove', e => {
      const box = s.getBoundingClientRect();
      if (drag && e.buttons && Math.abs(e.clientX - drag.x) > 3) {
        s.setPointerCapture(e.pointerId);
        const ns = (e.clientX - drag.x) / box.width * (drag.to - drag.from);
        show(drag.from - ns, drag.to - ns);
      } else if (lanes) {
        const lane = Math.floor((e.clientY - box.top) / box.height * lanes);
        tell(lane >= 0 && lane < lanes ? told(s.dataset.name, lane, time(e)) : '');
      }
    });
    s.addEventListener('pointerleave', () => tell(''));
    for (const end of ['pointerup', 'pointercancel']) s.addEventListener(end, () => { drag = null; });
    s.addEventListener('dblclick', e => scale(0.25, time(e)));
    s.addEventListener('wheel', e => {
      if (!e.ctrlKey && !e.shiftKey) return;
      e.preventDefault();
      scale(e.deltaY + e.deltaX > 0 ? 1.25 : 0.8, time(e));
    }, { passive: false });
    const keys = {
      '+': () => scale(0.5), '=': () => scale(0.5), '-': () => scale(2), ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25),
      0: () => show(0, whole), Escape: () => show(0, whole),
    };
    s.addEventListener('keydown', e => {
      if (!keys[e.key] || e.ctrlKey || e.altKey || e.metaKey) return;
      e.preventDefault();
      keys[e.key]();
    });
  }
  draw();
})();
