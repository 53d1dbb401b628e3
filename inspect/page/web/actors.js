// The table of actors. A click on a heading or a key sorts it; it can be filtered and has one selected row.

const COLUMNS = [
  {key: 'name', name: 'actor', title: 'The trainer, its workers, and their chips', order: (actor, index) => index},
  {key: 'state', name: 'state', title: 'The state of the actor', order: (actor) => rankOf(actor.state)},
  {key: 'for', name: 'for', right: true, title: 'How long the actor has been in this state', order: (actor) => (actor.since === null ? Infinity : actor.since)},
  {key: 'step', name: 'step', right: true, title: 'The current step of the actor', order: (actor) => actor.step},
  {key: 'cpu', name: 'CPU', right: true, title: 'Share of a core that a chip\'s thread, or all threads of a process, used just now', order: (actor) => -(actor.cores || 0)},
  {key: 'late', name: 'came last', right: true, title: 'Share of its collectives at which the chip arrived last, so that the others waited for it', order: (actor) => -(actor.came_last || 0)},
  {key: 'waits', name: 'waits', right: true, title: 'Time that the chip has waited for others in collectives, since the job began', order: (actor) => -(actor.waited_s || 0)},
  {key: 'unread', name: 'unread', right: true, title: 'Messages that the actor has received but not handled', order: (actor) => -actor.mailbox},
  {key: 'doing', name: 'doing', title: 'What the actor does now, or did last', order: (actor) => doingOf(actor)},
];

// Explains the states whose names are not self-explanatory.
const STATE_TITLES = {
  running: 'a loop: its chips work; a chip: it runs a program; the trainer: it watches its workers',
  waiting: 'it waits for other chips',
  idle: 'it has nothing to do until the loop gives it a program',
  'user code': 'the loop is in the program\'s own code, outside weft',
  admission: 'it waits until every worker has submitted the same program',
  lease: 'it waits for the trainer to grant the next steps',
  lost: 'its process is gone', gone: 'its process is gone', silent: 'the host doesn\'t answer; its rows are the last ones that host 0 had',
  held: 'a debugger holds it', stopped: 'a signal has stopped its process',
};

function doingOf(actor) {
  if (actor.doing) return actor.source ? `${actor.doing}, after ${actor.source}` : actor.doing;
  return actor.source ? `after ${actor.source}` : '';
}

const table = {sort: 'name', down: false, filter: '', selected: null, rows: new Map(), shown: [], state: null};

function setUpActors(onSelect, onOpen) {
  table.onSelect = onSelect;
  table.onOpen = onOpen;
  const row = byId('actors').tHead.rows[0];
  for (const column of COLUMNS) {
    const button = element('button', {type: 'button', text: column.name, title: column.title, onclick: () => sortBy(column.key)});
    row.append(element('th', {scope: 'col', 'data-key': column.key, class: column.right ? 'right' : null}, button));
  }
  byId('filter').addEventListener('input', (event) => {
    table.filter = event.target.value.toLowerCase();
    showActors(table.state, table.at);
  });
  table.sort = null;
  sortBy('name');
}

function sortBy(key) {
  table.down = table.sort === key ? !table.down : false;
  table.sort = key;
  for (const heading of byId('actors').tHead.rows[0].cells) {
    const chosen = heading.dataset.key === key;
    heading.setAttribute('aria-sort', chosen ? (table.down ? 'descending' : 'ascending') : 'none');
  }
  if (table.state) showActors(table.state, table.at);
}

function sortByNext() {
  const index = COLUMNS.findIndex((column) => column.key === table.sort);
  sortBy(COLUMNS[(index + 1) % COLUMNS.length].key);
}

function chosenActors(state) {
  const {order} = COLUMNS.find((column) => column.key === table.sort);
  const actors = state.actors.map((actor, index) => ({actor, key: order(actor, index), index}));
  const kept = actors.filter(({actor}) => !table.filter ||
    `${actor.name} ${actor.state} ${doingOf(actor)} ${actor.pid}`.toLowerCase().includes(table.filter));
  const sign = table.down ? -1 : 1;
  kept.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.index - b.index));
  return kept.map(({actor}) => actor);
}

function rowOf(name) {
  let row = table.rows.get(name);
  if (row) return row;
  const cells = COLUMNS.map((column) => element('td', {class: column.right ? `right ${column.key}` : column.key}));
  row = {line: element('tr', {'data-actor': name}, ...cells), cells, state: ''};
  row.line.addEventListener('click', () => { table.onSelect(name); byId('actors').tBodies[0].focus({preventScroll: true}); });
  row.line.addEventListener('dblclick', () => table.onOpen(name));
  table.rows.set(name, row);
  return row;
}

const countText = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`;

// Returns whether `why` names the actor as a cause that keeps the job from continuing.
function isRoot(actor, state = table.state) {
  const {verdict, roots} = state.why;
  if (['well', 'waits'].includes(verdict)) return false;
  return roots.some((root) => root.actor === actor.name ||
    (!root.actor.startsWith('chip') && root.workers.includes(actor.worker)));
}

function fillRow(row, actor, at) {
  const [name, state, since, step, cpu, late, waits, unread, doing] = row.cells;
  if (row.state !== actor.state) {
    state.replaceChildren(mark(actor.state), actor.state);
    state.title = STATE_TITLES[actor.state] || '';
    row.line.dataset.state = actor.state;
    row.line.dataset.changedMs = Date.now();
    row.state = actor.state;
  }
  // A state that changes many times a second can not be read, and its duration is not shown.
  const seconds = actor.since === null ? null : at - actor.since;
  const isBrief = seconds !== null && seconds < 1 && !['bad', 'held'].includes(classOf(actor.state));
  row.line.className = `${isRoot(actor) ? 'bad' : classOf(actor.state)}${isBrief ? ' brief' : ''}${actor.name === table.selected ? ' selected' : ''}`;
  row.line.setAttribute('aria-selected', String(actor.name === table.selected));
  setText(name, actor.name);
  setText(since, seconds !== null && seconds >= 1 ? wholeText(seconds) : '');
  setText(step, ['trainer', 'actor', 'host'].includes(actor.kind) ? '' : grouped(actor.step));
  setText(cpu, actor.cores === null ? '' : percent(actor.cores));
  setText(late, actor.came_last === null ? '' : percent(actor.came_last));
  setText(waits, actor.waited_s === null ? '' : secondsText(actor.waited_s));
  setText(unread, actor.mailbox ? grouped(actor.mailbox) : '');
  setText(doing, doingOf(actor));
  doing.title = doingOf(actor);
}

// Returns how many actors there are of each kind. Actors of an application's own are of the kind "actor".
function countsText(state) {
  const own = state.actors.filter((actor) => actor.kind === 'actor').length;
  if (own === state.actors.length) return countText(own, 'actor');
  const parts = ['the trainer', countText(state.workers, 'worker'), countText(state.num_chips, 'chip')];
  if (own) parts.push(`${countText(own, 'actor')} of the program's own`);
  return `${parts.slice(0, -1).join(', ')} and ${parts[parts.length - 1]}`;
}

function showActors(state, at) {
  if (!state) return;
  table.state = state;
  table.at = at;
  const actors = chosenActors(state);
  const body = byId('actors').tBodies[0];
  actors.forEach((actor, index) => {
    const row = rowOf(actor.name);
    fillRow(row, actor, at);
    if (body.children[index] !== row.line) body.insertBefore(row.line, body.children[index] || null);
  });
  while (body.children.length > actors.length) body.lastChild.remove();
  table.shown = actors.map((actor) => actor.name);
  setText(byId('actors-count'), actors.length === state.actors.length ? countsText(state) : `${actors.length} of ${state.actors.length}`);
}

// Moves the selection up or down in the table.
function moveSelection(by) {
  if (!table.shown.length) return;
  const at = table.shown.indexOf(table.selected);
  const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), table.shown.length - 1);
  table.onSelect(table.shown[next]);
}

function selectRow(name) {
  table.selected = name;
  showActors(table.state, table.at);
  const row = table.rows.get(name);
  if (row && row.line.isConnected) row.line.scrollIntoView({block: 'nearest'});
}
