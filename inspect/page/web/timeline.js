// Draws the work of loops and chips on a canvas. Each row has two lists of slices, sorted by time and without
// overlap: runs of plans, and the events in and between them. A frame searches for the beginning of its range
// and draws at most one column per pixel. For slices narrower than a pixel it draws their shares of the
// pixel's time.

// The index is the number of SliceKind (inspect/page/timeline.hpp).
const KINDS = [
  {name: 'runs a program', colour: '--run-slice'},
  {name: 'waits for other chips', colour: '--wait-slice', legend: true},
  {name: 'exchanges data', colour: '--exchange-slice', legend: true},
  {name: 'commits its state', colour: '--commit-slice', legend: true},
  {name: 'computes', colour: '--op-slice', legend: true},
  {name: 'compiles', colour: '--compile-slice'},
  {name: 'waits until all have the same program', colour: '--commit-slice'},
  {name: 'waits for the trainer', colour: '--commit-slice'},
  {name: 'loads data', colour: '--load-slice', legend: true},
  {name: 'saves', colour: '--save-slice', legend: true},
  {name: 'mark', colour: '--bad'},
];
const RUN = 0, WAIT = 1, MARK = 10;
const LABELS_PX = 76, HEAD_PX = 18, ROW_PX = 16, ROW_PX_MAX = 26, SLICES_MAX = 120000, LEAST_NS = 2000;

const timeline = {
  rows: [], byName: new Map(), base: null, now: 0, isRead: false,
  steps: {t: [], n: []}, labels: [], numbers: new Map(),
  from: 0, to: 0, follows: true, window: 0, selected: null, bad: new Set(), dirty: false, colours: {},
};

const newLane = () => ({t: [], end: [], k: [], l: [], p: [], n: [], waits: [0], others: [0], open: null});

function lowerBound(values, value, from = 0) {
  let low = from, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function labelOf(text) {
  let number = timeline.numbers.get(text);
  if (number === undefined) {
    number = timeline.labels.push(text) - 1;
    timeline.numbers.set(text, number);
  }
  return number;
}

// An answer may begin with the slices that ended the previous one.
function addToLane(lane, columns, labels) {
  lane.open = null;
  let at = -timeline.base;
  for (let i = 0; i < columns.t.length; ++i) {
    at += columns.t[i];
    const took = columns.d[i], kind = columns.k[i], label = labels[columns.l[i]];
    if (took < 0) {
      lane.open = {t: at, k: kind, l: label, p: columns.p[i], n: columns.n[i]};
      continue;
    }
    const count = lane.t.length;
    if (count && at + took / 2 <= lane.end[count - 1] && at <= lane.t[count - 1] + 1) continue;
    if (count && at + took / 2 < lane.end[count - 1]) continue;
    lane.t.push(at);
    lane.end.push(at + took);
    lane.k.push(kind);
    lane.l.push(label);
    lane.p.push(columns.p[i]);
    lane.n.push(columns.n[i]);
    lane.waits.push(lane.waits[count] + (kind === WAIT ? took : 0));
    lane.others.push(lane.others[count] + (kind === WAIT || kind === 4 ? 0 : took));
  }
  if (lane.t.length > SLICES_MAX) {
    for (const column of ['t', 'end', 'k', 'l', 'p', 'n', 'waits', 'others']) lane[column].splice(0, SLICES_MAX / 2);
  }
}

function addTimeline(data) {
  const begins = data.rows.flatMap((row) => [row.runs.t[0], row.slices.t[0]]).filter((t) => t !== undefined);
  if (timeline.base === null && begins.length) timeline.base = Math.min(...begins);
  const before = timeline.now;
  timeline.isRead = true;
  if (timeline.base === null) return;
  timeline.now = data.now - timeline.base;
  const labels = data.labels.map(labelOf);
  for (const each of data.rows) {
    let row = timeline.byName.get(each.name);
    if (!row) {
      row = {name: each.name, worker: each.worker, chip: each.chip, runs: newLane(), slices: newLane(), gaps: []};
      timeline.byName.set(each.name, row);
      timeline.rows.push(row);
      timeline.rows.sort((a, b) => a.worker - b.worker || a.chip - b.chip);
    }
    const first = each.from - timeline.base;
    if (before && first > before) row.gaps.push([before, first]);
    if (row.gaps.length > 500) row.gaps.splice(0, 250);
    addToLane(row.runs, each.runs, labels);
    addToLane(row.slices, each.slices, labels);
  }
  let at = -timeline.base;
  for (let i = 0; i < data.steps.t.length; ++i) {
    at += data.steps.t[i];
    const count = timeline.steps.n.length;
    if (count && data.steps.n[i] <= timeline.steps.n[count - 1]) continue;
    timeline.steps.t.push(at);
    timeline.steps.n.push(data.steps.n[i]);
  }
  if (!timeline.window) timeline.window = firstWindow();
  if (timeline.follows) followNow();
  redraw();
}

// Returns a window that covers the last 12 steps.
function firstWindow() {
  const {t} = timeline.steps;
  const [first, last] = known();
  if (t.length < 2) return Math.max(last - first, LEAST_NS);
  return Math.max((last - t[Math.max(0, t.length - 13)]) * 1.02, LEAST_NS);
}

const firstOf = (row) => Math.min(...[row.runs, row.slices].flatMap((lane) => [lane.t.length ? lane.t[0] : Infinity, lane.open ? lane.open.t : Infinity]));
const lastOf = (row) => Math.max(0, ...[row.runs, row.slices].flatMap((lane) => [lane.t.length ? lane.end[lane.end.length - 1] : 0, lane.open ? lane.open.t : 0]));

// Returns the range from the first slice to the last.
function known() {
  const first = Math.min(...timeline.rows.map(firstOf)), last = Math.max(0, ...timeline.rows.map(lastOf));
  return [Math.min(first, last), last];
}

// Returns the time at which events were read. A slice that was unfinished then may have ended since.
const presentNs = () => timeline.now;

// Moves to the newest events. If nothing happens any more, the window shows that time and the events before it.
function followNow() {
  const [, last] = known(), now = presentNs();
  const idle = now - last;
  if (idle > Math.max(timeline.window, 1.5e9)) {
    timeline.from = last - idle * 0.3;
    timeline.to = now;
  } else {
    timeline.to = last;
    timeline.from = last - timeline.window;
  }
}

function setFollow(on) {
  timeline.follows = on;
  byId('follow').setAttribute('aria-pressed', String(on));
  if (on && timeline.base !== null) followNow();
  redraw();
}

function zoom(factor, share = timeline.follows ? 1 : 0.5) {
  const span = timeline.to - timeline.from;
  const [first] = known();
  const wanted = Math.min(Math.max(span * factor, LEAST_NS), Math.max(presentNs() - first, LEAST_NS) * 1.1);
  const at = timeline.from + span * share;
  timeline.from = at - wanted * share;
  timeline.to = timeline.from + wanted;
  timeline.window = wanted;
  redraw();
}

function pan(share) {
  const by = (timeline.to - timeline.from) * share;
  if (timeline.follows) setFollow(false);
  timeline.from += by;
  timeline.to += by;
  redraw();
}

function showAll() {
  setFollow(false);
  [timeline.from, timeline.to] = known();
  timeline.to = Math.max(timeline.to, timeline.from + LEAST_NS);
  redraw();
}

function redraw() {
  if (timeline.dirty) return;
  timeline.dirty = true;
  requestAnimationFrame(() => {
    timeline.dirty = false;
    const begin = performance.now();
    drawTimeline();
    byId('timeline').dataset.frameMs = (performance.now() - begin).toFixed(2);
  });
}

function readColours() {
  for (const kind of KINDS) timeline.colours[kind.colour] = colour(kind.colour);
  for (const name of ['--ink', '--muted', '--line', '--panel', '--select', '--gap', '--on-slice', '--bad-soft', '--bad']) timeline.colours[name] = colour(name);
  timeline.hatch = null;
  redraw();
}

// A row is always high enough for its name. Rows that do not fit the screen scroll.
function rowHeight(height) {
  const fits = Math.floor((height - HEAD_PX) / Math.max(1, timeline.rows.length));
  return Math.min(Math.max(fits, ROW_PX), ROW_PX_MAX);
}

function drawTimeline() {
  const canvas = byId('timeline'), host = byId('lanes');
  host.style.height = `${HEAD_PX + ROW_PX * Math.max(3, timeline.rows.length) + 4}px`;
  const width = host.clientWidth, height = host.clientHeight, ratio = window.devicePixelRatio || 1;
  if (!width || !height) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const rowPx = rowHeight(height);
  byId('lanes-height').style.height = `${Math.max(0, HEAD_PX + rowPx * timeline.rows.length - height)}px`;
  const paint = canvas.getContext('2d');
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  paint.clearRect(0, 0, width, height);
  const view = {paint, width, height, rowPx, scroll: host.scrollTop, left: LABELS_PX,
                from: timeline.from, scale: (width - LABELS_PX) / Math.max(1, timeline.to - timeline.from)};
  timeline.view = view;
  if (!timeline.rows.length) {
    paint.fillStyle = timeline.colours['--muted'];
    paint.font = '13px system-ui, sans-serif';
    paint.fillText(timeline.isRead ? 'no events: the job keeps none (WEFT_TRACE=off), or they are gone' : 'reading events …', 12, 34);
    return;
  }
  timeline.rows.forEach((row, index) => {
    const y = HEAD_PX + index * rowPx - view.scroll;
    if (y + rowPx > HEAD_PX - rowPx && y < height) drawRow(view, row, y);
  });
  drawHead(view);
  setText(byId('range'), `${secondsText((timeline.to - timeline.from) / 1e9)} are shown`);
}

function drawRow(view, row, y) {
  const {paint, rowPx} = view;
  const isLoop = row.chip < 0;
  if (row.name === timeline.selected) {
    paint.fillStyle = timeline.colours['--select'];
    paint.fillRect(0, y, view.width, rowPx);
  }
  paint.save();
  paint.beginPath();
  paint.rect(view.left, HEAD_PX, view.width - view.left, view.height);
  paint.clip();
  const pad = rowPx > 15 ? 2 : 1;
  drawGaps(view, row.gaps, y + pad, rowPx - 2 * pad);
  drawLane(view, row.runs, y + pad, rowPx - 2 * pad);
  drawLane(view, row.slices, y + pad, rowPx - 2 * pad);
  if (timeline.bad.has(row.name)) drawBad(view, row, y + pad, rowPx - 2 * pad);
  paint.restore();
  paint.fillStyle = timeline.colours[timeline.bad.has(row.name) ? '--bad' : isLoop ? '--ink' : '--muted'];
  paint.font = `${isLoop ? '600 ' : ''}11px system-ui, sans-serif`;
  paint.textAlign = 'right';
  paint.textBaseline = 'middle';
  paint.fillText(row.name, view.left - 8, y + rowPx / 2 + 0.5);
}

// Marks the time after the last event of an actor that is in trouble.
function drawBad(view, row, y, height) {
  const x = Math.max(view.left, view.left + (lastOf(row) - view.from) * view.scale);
  const end = view.left + (presentNs() - view.from) * view.scale;
  if (end <= x) return;
  view.paint.fillStyle = timeline.colours['--bad-soft'];
  view.paint.fillRect(x, y, end - x, height);
  view.paint.fillStyle = timeline.colours['--bad'];
  view.paint.fillRect(x, y, 2, height);
}

// Marks times whose events are missing, because the ring overwrote them before they were read.
function drawGaps(view, gaps, y, height) {
  view.paint.fillStyle = timeline.colours['--gap'];
  for (const [from, to] of gaps) {
    const x = view.left + (from - view.from) * view.scale, end = view.left + (to - view.from) * view.scale;
    if (end < view.left || x > view.width) continue;
    view.paint.fillRect(x, y + height / 2 - 0.5, Math.max(1, end - x), 1);
  }
}

function drawLane(view, lane, y, height) {
  const {paint, left, from, scale} = view;
  const to = from + (view.width - left) / scale;
  const minPx = 1.5;
  let i = lowerBound(lane.end, from);
  while (i < lane.t.length && lane.t[i] < to) {
    const x = left + (lane.t[i] - from) * scale, end = left + (lane.end[i] - from) * scale;
    if (end - x >= minPx || lane.k[i] === MARK) {
      drawSlice(view, lane, i, Math.max(x, left), Math.min(end, view.width), y, height);
      ++i;
      continue;
    }
    const px = Math.floor(x);
    const next = Math.max(i + 1, lowerBound(lane.t, from + (px + 1 - left) / scale, i));
    drawShares(view, lane, i, next, px, y, height);
    i = next;
  }
  if (lane.open && lane.open.t < to) {
    const x = Math.max(left, left + (lane.open.t - from) * scale);
    const end = Math.min(view.width, left + (presentNs() - from) * scale);
    paint.fillStyle = timeline.colours[KINDS[lane.open.k].colour];
    if (end > x) paint.fillRect(x, y, end - x, height);
    drawText(view, labelText(lane.open.k, lane.open.l), x, end, y, height);
  }
}

function drawSlice(view, lane, i, x, end, y, height) {
  const {paint} = view, kind = lane.k[i];
  paint.fillStyle = timeline.colours[KINDS[kind].colour];
  if (kind === MARK) {
    paint.fillRect(x - 1, y - 1, 2, height + 2);
    return;
  }
  // A narrow gap between neighbours makes them distinguishable.
  const width = end - x;
  paint.fillRect(x, y, width > 4 ? width - 0.6 : width, height);
  if (kind !== RUN) drawText(view, labelText(kind, lane.l[i]), x, end, y, height);
}

// Draws the shares of a pixel's time: waits at the bottom, and everything but computing above them.
function drawShares(view, lane, first, next, px, y, height) {
  const {paint} = view;
  const time = 1 / view.scale;
  if (lane.k[first] === RUN) {
    let busy = 0;
    for (let i = first; i < next; ++i) busy += lane.end[i] - lane.t[i];
    const part = Math.min(1, busy / time) * height;
    paint.fillStyle = timeline.colours['--run-slice'];
    paint.fillRect(px, y + height - part, 1, part);
    return;
  }
  const waits = Math.min(1, (lane.waits[next] - lane.waits[first]) / time) * height;
  const others = Math.min(height - waits, (lane.others[next] - lane.others[first]) / time * height);
  if (waits > 0.3) {
    paint.fillStyle = timeline.colours['--wait-slice'];
    paint.fillRect(px, y + height - waits, 1, waits);
  }
  if (others > 0.3) {
    paint.fillStyle = timeline.colours[KINDS[lane.k[first] === WAIT ? 2 : lane.k[first]].colour];
    paint.fillRect(px, y + height - waits - others, 1, others);
  }
}

const labelText = (kind, label) => timeline.labels[label] || KINDS[kind].name;

function drawText(view, text, x, end, y, height) {
  if (end - x < 34) return;
  const {paint} = view;
  paint.save();
  paint.beginPath();
  paint.rect(x, y, end - x - 2, height);
  paint.clip();
  paint.fillStyle = timeline.colours['--on-slice'];
  paint.font = '11px system-ui, sans-serif';
  paint.textAlign = 'left';
  paint.textBaseline = 'middle';
  paint.fillText(text, x + 4, y + height / 2 + 0.5);
  paint.restore();
}

// Draws a line at the beginning of each step, and its number if there is room.
function drawHead(view) {
  const {paint, left, from, scale} = view;
  paint.fillStyle = timeline.colours['--panel'];
  paint.fillRect(0, 0, view.width, HEAD_PX);
  const {t, n} = timeline.steps;
  const first = lowerBound(t, from), last = lowerBound(t, from + (view.width - left) / scale);
  paint.font = '11px system-ui, sans-serif';
  paint.textAlign = 'left';
  paint.textBaseline = 'middle';
  const spacing = last - first > 1 ? (t[last - 1] - t[first]) * scale / (last - 1 - first) : Infinity;
  let labelled = -Infinity;
  for (let i = first; i < last; ++i) {
    const x = Math.round(left + (t[i] - from) * scale) + 0.5;
    if (spacing >= 5) {
      paint.strokeStyle = timeline.colours['--line'];
      paint.beginPath();
      paint.moveTo(x, HEAD_PX - 5);
      paint.lineTo(x, view.height);
      paint.stroke();
    }
    if (x - labelled < 72) continue;
    labelled = x;
    paint.fillStyle = timeline.colours['--muted'];
    paint.fillText(`step ${grouped(n[i])}`, x + 3, HEAD_PX / 2);
  }
}

// Returns the slice at a position of the canvas.
function sliceAt(x, y) {
  const view = timeline.view;
  if (!view || x < view.left || y < HEAD_PX) return null;
  const row = timeline.rows[Math.floor((y - HEAD_PX + view.scroll) / view.rowPx)];
  if (!row) return null;
  const at = view.from + (x - view.left) / view.scale, near = 1.5 / view.scale;
  for (const lane of [row.slices, row.runs]) {
    if (lane.open && at >= lane.open.t && at <= presentNs()) return {row, ...lane.open, took: presentNs() - lane.open.t, open: true};
    const i = lowerBound(lane.end, at - near);
    if (i < lane.t.length && lane.t[i] <= at + near) {
      return {row, t: lane.t[i], took: lane.end[i] - lane.t[i], k: lane.k[i], l: lane.l[i], p: lane.p[i], n: lane.n[i]};
    }
  }
  return {row};
}

function describeSlice(slice) {
  if (slice.k === undefined) return slice.row.name;
  const step = timeline.steps.n[lowerBound(timeline.steps.t, slice.t + 1) - 1];
  const lines = [`${slice.row.name}  ${KINDS[slice.k].name}${slice.open ? ', still' : ''}  ${slice.k === MARK ? '' : secondsText(slice.took / 1e9)}`];
  if (timeline.labels[slice.l]) lines.push(timeline.labels[slice.l]);
  if (slice.k === WAIT && !slice.open) lines.push(slice.p >= 0 ? `chip ${slice.p} came last` : 'came last itself');
  if (step !== undefined) lines.push(`step ${grouped(step)}`);
  return lines.join('\n');
}

function showTip(event) {
  const tip = byId('tip');
  const box = byId('timeline').getBoundingClientRect();
  const slice = sliceAt(event.clientX - box.left, event.clientY - box.top);
  tip.hidden = !slice || slice.k === undefined;
  if (tip.hidden) return;
  setText(tip, describeSlice(slice));
  const panel = byId('timeline-panel').getBoundingClientRect();
  const x = event.clientX - panel.left, y = event.clientY - panel.top;
  tip.style.left = `${Math.min(x + 14, panel.width - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.max(4, y - tip.offsetHeight - 10)}px`;
}

function setUpTimeline(onSelect) {
  const canvas = byId('timeline');
  for (const kind of KINDS.filter((each) => each.legend || each === KINDS[RUN])) {
    const swatch = element('i', {class: 'swatch'});
    swatch.style.background = `var(${kind.colour})`;
    byId('legend').append(element('span', {}, swatch, kind.name));
  }
  let drag = null;
  canvas.addEventListener('wheel', (event) => {
    if (event.shiftKey) return;
    event.preventDefault();
    const share = (event.offsetX - LABELS_PX) / Math.max(1, canvas.clientWidth - LABELS_PX);
    if (timeline.follows && share < 0.98) setFollow(false);
    zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.min(Math.max(share, 0), 1));
  }, {passive: false});
  canvas.addEventListener('pointerdown', (event) => {
    drag = {x: event.clientX, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) return showTip(event);
    const by = event.clientX - drag.x;
    if (Math.abs(by) < 2) return;
    drag = {x: event.clientX, moved: true};
    byId('tip').hidden = true;
    pan(-by / Math.max(1, canvas.clientWidth - LABELS_PX));
  });
  canvas.addEventListener('pointerup', (event) => {
    if (drag && !drag.moved) {
      const slice = sliceAt(Math.max(event.offsetX, LABELS_PX), event.offsetY);
      if (slice) onSelect(slice.row.name);
    }
    drag = null;
  });
  canvas.addEventListener('pointerleave', () => { byId('tip').hidden = true; });
  canvas.addEventListener('dblclick', (event) => {
    setFollow(false);
    zoom(0.4, (event.offsetX - LABELS_PX) / Math.max(1, canvas.clientWidth - LABELS_PX));
  });
  byId('lanes').addEventListener('scroll', redraw);
  byId('zoom-in').addEventListener('click', () => zoom(0.5));
  byId('zoom-out').addEventListener('click', () => zoom(2));
  byId('zoom-all').addEventListener('click', showAll);
  byId('follow').addEventListener('click', () => setFollow(!timeline.follows));
  new ResizeObserver(redraw).observe(byId('lanes'));
  readColours();
}

function markBad(state) {
  const bad = state.actors.filter((actor) => classOf(actor.state) === 'bad').map((actor) => actor.name);
  if (bad.length === timeline.bad.size && bad.every((name) => timeline.bad.has(name))) return;
  timeline.bad = new Set(bad);
  redraw();
}

function selectLane(name) {
  timeline.selected = name;
  redraw();
}
