// The page: its data, its head, the answer of why, and keys. The data comes from a server; an exported page
// contains it.

const EVERY_MS = 1000, CURVES_EVERY = 3, RETRY_MS = 2000;

const page = {
  state: null, at: 0, received: 0, selected: null, source: null, exported: false, connected: false,
  polls: 0, polling: false, settled: 0, retry: 0, rateAt: null, madeAt: null, stacks: {}, stackOf: null,
};

// Returns CLOCK_BOOTTIME of the job's host, in seconds. It stops when no more data arrives.
function present() {
  if (page.exported || !page.connected) return page.at;
  return page.at + (performance.now() - page.received) / 1000;
}

function take(message) {
  page.at = message.at;
  page.received = performance.now();
  if (message.state) {
    if (page.state && page.state.job !== message.state.job) location.reload();
    page.state = message.state;
  }
  noteRate();
  show();
}

// Adds a point to the curve once a second, or at once if nothing moves any more.
function noteRate() {
  const {state, at, rateAt} = page;
  if (!state) return;
  curves.state = state;
  showLast();
  const isNews = state.steps_per_s === 0 || state.over || rateAt === null;
  if (!isNews && at - rateAt < 1) return;
  page.rateAt = at;
  addRate(state);
}

function show() {
  if (!page.state) return;
  showHead(page.state);
  showWhy(page.state.why);
  showMesh(page.state, page.selected, present());
  markBad(page.state);
  showActors(page.state, present());
  showDetail();
}

// --- Head

function headState(state) {
  const {verdict} = state.why;
  if (state.state === 'running' && ['hung', 'failed', 'held', 'slow', 'unknown'].includes(verdict)) return verdict;
  return state.state;
}

const SYMBOLS = {bad: '▲', held: '◆', wait: '⧗', run: '●', rest: '■'};

function showHead(state) {
  const shown = headState(state);
  const badge = byId('badge');
  if (badge.dataset.state !== shown) {
    badge.dataset.state = shown;
    badge.dataset.changedMs = Date.now();
    badge.className = `badge ${classOf(shown)}`;
    byId('badge-mark').replaceChildren(mark(shown));
    setText(byId('badge-text'), shown);
  }
  setText(byId('name'), state.name || 'job');
  setText(byId('id'), state.job.slice(0, 6));
  byId('id').title = `${state.job}\n${state.run_dir}`;
  const facts = state.workers || state.num_chips || state.step ? [['step', grouped(state.step)]] : [];
  if (rateText(state)) facts.push(['steps/s', rateText(state), 'Over the last 10 s, or over the steps whose events are still kept']);
  if (state.loss !== null) facts.push(['loss', numberText(state.loss), 'Reported last']);
  if (state.committed !== null && state.committed > 0) facts.push(['kept step', grouped(state.committed), 'All chips have this step: the job continues from it after a loss']);
  if (state.workers) facts.push(['workers', state.workers]);
  if (state.num_chips) facts.push(['chips', state.num_chips]);
  if (state.generation > 1) facts.push(['recoveries', state.generation - 1, 'How often its workers were started again after a loss']);
  if (state.started_unix_s) facts.push(['started', timeText(state.started_unix_s)]);
  if (!state.over && !page.exported && state.started_unix_s) facts.push(['running for', wholeText(Date.now() / 1000 - state.started_unix_s)]);
  if (state.ended_by) facts.push(['ended by', state.ended_by]);
  if (page.madeAt) facts.push(['exported', timeText(page.madeAt)]);
  showFacts(byId('facts'), facts);
  document.title = `${SYMBOLS[classOf(shown)]} ${state.name} ${shown} · weft`;
}

function showFacts(list, facts) {
  if (list.children.length !== facts.length) {
    list.replaceChildren(...facts.map(() => element('div', {}, element('dt'), element('dd'))));
  }
  facts.forEach(([name, value, title], i) => {
    list.children[i].title = title || '';
    setText(list.children[i].firstChild, name);
    setText(list.children[i].lastChild, String(value));
  });
}

function showLive(text, kind) {
  byId('live').className = `live ${kind}`;
  setText(byId('live'), text);
}

// --- Why

function showWhy(why) {
  const host = byId('why');
  const isOver = page.state.over;
  const key = JSON.stringify([isOver, why.verdict, why.summary, why.fix, why.roots.map((root) => [root.class, root.text, root.notes, root.fix])]);
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  host.dataset.verdict = why.verdict;
  const root = why.roots[0];
  host.className = `why ${root ? whyClass(why.verdict) : classOf(why.verdict)}`;
  if (!root) {
    const [word, text] = why.verdict !== 'well' ? [why.verdict, why.summary]
      : isOver ? ['ended', why.summary]
      : ['all is well', page.state.num_chips ? 'the job makes progress, and no actor holds it up' : why.summary];
    host.replaceChildren(element('strong', {text: word}), element('span', {class: 'text', text}));
    if (why.fix) host.append(element('dl', {class: 'notes'}, ...fixOf(why)));
    return;
  }
  const line = element('div', {class: 'line'}, element('strong', {text: root.class}), element('span', {class: 'text', text: root.text}));
  if (why.roots.length > 1) line.append(element('span', {class: 'more', text: `and ${why.roots.length - 1} more`}));
  line.append(element('button', {type: 'button', text: 'details', title: 'All details (w)', onclick: openWhy}));
  const notes = element('dl', {class: 'notes'});
  for (const note of root.notes.slice(0, 5)) {
    notes.append(element('dt', {text: NOTE_WORDS[note.label] || note.label}), element('dd', {text: note.text}));
  }
  if (root.fix) notes.append(...fixOf(root));
  host.replaceChildren(line, notes);
}

const fixOf = ({fix}) => [element('dt', {text: 'fix'}), element('dd', {class: 'fix', text: fix})];

// Longer words for labels of `weft inspect why` that are too short for a page.
const NOTE_WORDS = {at: 'it is at', line: 'line', after: 'it did last', waits: 'waiting for it', says: 'it says', threw: 'it threw'};

const whyClass = (verdict) => ({held: 'held', slow: 'wait', waits: 'wait', unknown: 'wait'}[verdict] || 'bad');

function whyText(why) {
  const lines = [];
  for (const root of why.roots) {
    if (lines.length) lines.push('');
    lines.push(`${root.class.padEnd(8)} ${root.text}`);
    for (const note of root.notes) lines.push(`  ${note.label.padEnd(6)} ${note.text}`);
    if (root.fix) lines.push(`  fix:   ${root.fix}`);
  }
  if (why.summary) lines.push(`${why.verdict.padEnd(8)} ${why.summary}`);
  if (why.fix) lines.push(`  fix:   ${why.fix}`);
  for (const remark of why.remarks) lines.push(`note     ${remark}`);
  return lines.join('\n');
}

function openWhy() {
  if (!page.state) return;
  setText(byId('why-text'), whyText(page.state.why));
  open(byId('why-dialog'));
}

// --- One actor

function select(name) {
  page.selected = name;
  selectRow(name);
  selectLane(name);
  if (page.state) showMesh(page.state, name, present());
}

function openDetail(name) {
  if (name) select(name);
  if (!page.selected) return;
  showDetail(true);
  showStack(page.selected);
  open(byId('detail'));
}

function showDetail(always = false) {
  if (!always && !byId('detail').open) return;
  const actor = page.state && page.state.actors.find((each) => each.name === page.selected);
  if (!actor) return;
  setText(byId('detail-title'), actor.name);
  const facts = [['state', actor.state], ['for', actor.since === null ? '' : wholeText(present() - actor.since)],
                 ['pid', actor.pid], ['thread', actor.tid || '']];
  if (actor.kind === 'actor') facts.push(['restarts', actor.restarts], ['mailbox', `${actor.box} of 64 messages of one process`]);
  else facts.splice(2, 0, ['step', grouped(actor.step)]);
  if (actor.cores !== null) facts.push(['CPU', percent(actor.cores)]);
  if (actor.chip >= 0) facts.splice(0, 0, ['worker', actor.worker]);
  if (actor.doing) facts.push(['doing', actor.doing]);
  if (actor.source) facts.push(['last called weft at', actor.source]);
  facts.push(['unread', `${countText(actor.mailbox, 'message')}${actor.message ? `; the last that it began is “${actor.message}”` : ''}`]);
  if (actor.came_last !== null) facts.push(['came last', `${percent(actor.came_last)} of its collectives`], ['waits', secondsText(actor.waited_s)]);
  const waits = page.state.why.waits.filter((wait) => wait.from === actor.name);
  if (waits.length) facts.push(['waits for', waits.slice(0, 8).map((wait) => `${wait.to} (${wait.on})`).join('\n')]);
  showFacts(byId('detail-list'), facts);
}

// Shows the stack of the actor's thread. The server reads it only on request.
async function showStack(name) {
  page.stackOf = name;
  setText(byId('stack'), page.exported ? '' : 'looking …');
  let stack = page.stacks[name] || null;
  if (!page.exported) {
    try { stack = await getJson(`/stack?actor=${encodeURIComponent(name)}`); } catch { stack = null; }
  }
  if (page.stackOf === name) setText(byId('stack'), stackText(stack));
}

function stackText(stack) {
  if (!stack) return page.exported ? 'this file has only the stacks of actors that held the job up' : 'the stack can\'t be read now';
  if (!stack.frames.length) return stack.why_not || 'the stack can\'t be read';
  return stack.frames.map((frame) => `${frame.function}${frame.file ? `  ${frame.file}:${frame.line}` : ''}`).join('\n');
}

// --- Dialogs and keys

function open(dialog) {
  if (dialog.open) return;
  dialog.showModal();
  dialog.focus();
}

const KEYS = [
  ['↑ ↓', 'previous or next actor'],
  ['Enter', 'details of the actor, and its stack'],
  ['/', 'filter the actors'],
  ['s', 'sort by the next column'],
  ['← →', 'move in the timeline'],
  ['+ −', 'zoom in the timeline; also the wheel'],
  ['0', 'the whole timeline'],
  ['f', 'follow the job'],
  ['m', 'mesh: who came last, who waits'],
  ['w', 'why the job is in this state'],
  ['d', 'dark or light'],
  ['Esc', 'back'],
  ['?', 'these keys'],
];

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target === byId('filter');
  if (typing) {
    if (event.key === 'Escape') {
      byId('filter').value = '';
      byId('filter').dispatchEvent(new Event('input'));
    }
    if (event.key === 'Escape' || event.key === 'Enter') byId('filter').blur();
    return;
  }
  if (document.querySelector('dialog[open]') || event.target.tagName === 'SELECT') return;
  const onButton = event.target.tagName === 'BUTTON';
  const actions = {
    ArrowUp: () => moveSelection(-1), ArrowDown: () => moveSelection(1), k: () => moveSelection(-1), j: () => moveSelection(1),
    ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15),
    '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6), '0': showAll,
    f: () => setFollow(!timeline.follows), '/': () => byId('filter').focus(), s: sortByNext, m: nextMeasure,
    w: openWhy, d: switchTheme, '?': () => open(byId('help')),
    Escape: () => select(null),
  };
  if (!onButton) actions.Enter = () => openDetail();
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

// --- Dark and light: the system's setting, until the reader chooses.

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : systemIsDark.matches;
}

function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  try { localStorage.setItem('weft.theme', document.documentElement.dataset.theme); } catch { /* not kept */ }
  readColours();
}

function setUpTheme() {
  let kept = null;
  try { kept = localStorage.getItem('weft.theme'); } catch { /* none is kept */ }
  if (kept === 'dark' || kept === 'light') document.documentElement.dataset.theme = kept;
  systemIsDark.addEventListener('change', readColours);
}

// --- Data

async function getJson(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let readUpTo = 0;

// Polls the data. Once the job is over, it reads the final data and stops.
async function poll() {
  const over = page.state && page.state.over;
  if (page.polling || document.hidden || !page.connected || (over && page.settled > 1)) return;
  page.polling = true;
  try {
    const events = await getJson(`/timeline?after=${readUpTo}`);
    // Rings are read one after the other, so the next request overlaps this one a little.
    readUpTo = Math.max(0, Math.round(events.now - 1e8));
    addTimeline(events);
    if (page.polls++ % CURVES_EVERY === 0 || over) addCurves(await getJson('/curves'));
    page.settled = over ? page.settled + 1 : 0;
  } catch { /* the stream of events reports the error */ }
  page.polling = false;
}

function connect() {
  clearTimeout(page.retry);
  if (page.source) page.source.close();
  const source = new EventSource('/events');
  page.source = source;
  source.onmessage = (event) => {
    page.connected = true;
    take(JSON.parse(event.data));
    showLive(page.state && page.state.over ? 'ended' : 'live', page.state && page.state.over ? 'off' : 'on');
    if (page.polls === 0) poll();
  };
  source.onerror = () => {
    page.connected = false;
    showLive('not connected', 'lost');
    if (source.readyState !== EventSource.CLOSED) return;
    // The server refused; perhaps the maximum number of readers is reached.
    page.retry = setTimeout(connect, RETRY_MS);
  };
}

function showExported(data) {
  page.exported = true;
  page.madeAt = data.made_unix_s;
  page.stacks = data.stacks;
  showLive('exported', 'off');
  take(data);
  timeline.follows = !data.state.over;
  addTimeline(data.timeline);
  timeline.follows = true;
  followNow();
  setFollow(false);
  byId('follow').hidden = true;
  addCurves(data.curves);
}

function setUp() {
  setUpTheme();
  setUpMesh(select);
  setUpActors(select, openDetail);
  setUpTimeline(select);
  setUpCurves();
  for (const [key, text] of KEYS) {
    byId('help-list').append(element('div', {}, element('dt', {text: key}), element('dd', {text})));
  }
  for (const button of document.querySelectorAll('[data-close]')) {
    button.addEventListener('click', () => button.closest('dialog').close());
  }
  for (const dialog of document.querySelectorAll('dialog')) {
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  }
  byId('theme-button').addEventListener('click', switchTheme);
  byId('help-button').addEventListener('click', () => open(byId('help')));
  document.addEventListener('keydown', press);
  const data = byId('data');
  if (data) return showExported(JSON.parse(data.textContent));
  showLive('connecting', 'lost');
  connect();
  setInterval(poll, EVERY_MS);
  setInterval(() => {
    if (page.state && !document.hidden) show();
  }, 500);
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) { if (page.source) page.source.close(); page.connected = false; } else connect();
  });
}

setUp();
