// The chips in the mesh. The colour of a cell shows how often the other chips waited for the chip, or how
// long it waited itself; its letter and frame show its state.

const MESH_MAX = 256;
const MESH_MEASURES = {
  late: {
    name: 'came last',
    title: 'Share of its collectives at which a chip arrived last, so that the others waited for it',
    value: (actor) => actor.came_last,
    high: () => 1,
    text: percent,
  },
  waited: {
    name: 'waits',
    title: 'Time that a chip has waited for others in collectives',
    value: (actor) => actor.waited_s,
    high: (values) => Math.max(...values, 0),
    text: secondsText,
  },
};

const mesh = {measure: 'late', cells: new Map(), key: '', state: null};

function setUpMesh(onSelect) {
  mesh.onSelect = onSelect;
  for (const [key, measure] of Object.entries(MESH_MEASURES)) {
    byId('mesh-choice').append(element('button', {
      type: 'button', text: measure.name, title: `${measure.title} (m)`, 'data-measure': key,
      onclick: () => chooseMeasure(key),
    }));
  }
  chooseMeasure('late');
}

function chooseMeasure(key) {
  mesh.measure = key;
  for (const button of byId('mesh-choice').children) {
    button.setAttribute('aria-pressed', String(button.dataset.measure === key));
  }
  if (mesh.state) showMesh(mesh.state, mesh.selected, mesh.at);
}

const nextMeasure = () => chooseMeasure(mesh.measure === 'late' ? 'waited' : 'late');

// The last axis runs from left to right; the other axes make the rows.
function meshLayout(state) {
  const {shape: sizes, axes, chips} = state.mesh;
  if (!chips.length || chips.length > MESH_MAX) return null;
  const columns = sizes[sizes.length - 1];
  return {columns, rows: chips.length / columns, chips, sizes, axes};
}

function rowName(layout, row) {
  const coordinates = [];
  for (let axis = layout.sizes.length - 2; axis >= 0; --axis) {
    coordinates.unshift(row % layout.sizes[axis]);
    row = Math.floor(row / layout.sizes[axis]);
  }
  return coordinates.join(',');
}

// Sizes are in screen pixels, so that text does not shrink with the mesh. A mesh that is wider than its
// panel scrolls within it.
function buildMesh(layout, host) {
  const gap = 3, left = layout.sizes.length > 1 ? 16 + 7 * (layout.sizes.length - 1) : 1, top = 20;
  const room = Math.floor((host.clientWidth - left) / layout.columns) - gap;
  const size = Math.min(Math.max(room, 14), 36);
  const width = left + layout.columns * (size + gap), height = top + layout.rows * (size + gap);
  const root = shape('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Chips in the mesh'});
  const last = layout.axes[layout.axes.length - 1];
  const others = layout.axes.slice(0, -1).join(', ');
  root.append(shape('text', {x: left, y: 12, class: 'axis', text: `${last} →${others ? `   ${others} ↓` : ''}`}));
  mesh.cells.clear();
  mesh.size = size;
  layout.chips.forEach((chip, position) => {
    const column = position % layout.columns, row = Math.floor(position / layout.columns);
    const x = left + column * (size + gap), y = top + row * (size + gap);
    if (column === 0 && layout.sizes.length > 1) {
      root.append(shape('text', {x: left - 6, y: y + size / 2 + 4, class: 'axis end', text: rowName(layout, row)}));
    }
    const box = shape('rect', {x, y, width: size, height: size, rx: 4});
    const heat = shape('rect', {x, y, width: size, height: size, rx: 4, class: 'heat'});
    const letter = shape('text', {x: x + size / 2, y: y + size / 2, class: 'letter'});
    const title = shape('title');
    const cell = shape('g', {class: 'cell', 'data-chip': chip}, box, heat, letter, title);
    cell.addEventListener('click', () => mesh.onSelect(`chip ${chip}`));
    mesh.cells.set(chip, {cell, heat, letter, title});
    root.append(cell);
  });
  host.replaceChildren(root);
}

// Returns the letter of a state that deserves attention, else the chip's number.
function letterOf(actor, at) {
  const isBad = ['bad', 'held'].includes(classOf(actor.state));
  return isBad || (actor.state === 'waiting' && actor.since !== null && at - actor.since >= 1) ? actor.letter : '';
}

function showMesh(state, selected, at) {
  mesh.state = state;
  mesh.at = at;
  mesh.selected = selected;
  const host = byId('mesh');
  const layout = meshLayout(state);
  const key = layout ? `${JSON.stringify(state.mesh)} ${host.clientWidth}` : '';
  if (!layout) {
    if (mesh.key !== null) host.replaceChildren(element('p', {class: 'none', text: state.mesh.chips.length ? `${state.mesh.chips.length} chips: too many for a picture` : 'no mesh'}));
    mesh.key = null;
    byId('mesh-scale').replaceChildren();
    return;
  }
  if (mesh.key !== key) buildMesh(layout, host);
  mesh.key = key;
  const measure = MESH_MEASURES[mesh.measure];
  const chips = state.actors.filter((actor) => actor.chip >= 0);
  const values = chips.map(measure.value).filter((value) => value !== null);
  const high = measure.high(values);
  for (const actor of chips) {
    const cell = mesh.cells.get(actor.chip);
    if (!cell) continue;
    const value = measure.value(actor);
    const share = value === null || high <= 0 ? 0 : value / high;
    const isAccused = isRoot(actor, state);
    cell.cell.setAttribute('class', `cell ${isAccused ? 'bad' : classOf(actor.state)}${actor.name === selected ? ' selected' : ''}`);
    cell.cell.setAttribute('data-state', actor.state);
    cell.heat.setAttribute('opacity', (0.06 + 0.84 * share).toFixed(3));
    const letter = letterOf(actor, at);
    const isSmall = mesh.size < 26;
    cell.letter.setAttribute('class', `${letter ? 'letter' : 'letter calm'}${isSmall ? ' small' : ''}${share > 0.55 ? ' on-heat' : ''}`);
    setText(cell.letter, letter || (mesh.size < 20 ? '' : String(actor.chip)));
    const shown = value === null ? '' : `\n${measure.name}: ${measure.text(value)}`;
    setText(cell.title, `${actor.name}, worker ${actor.worker}: ${actor.state}${shown}\n${actor.doing}`);
  }
  showScale(measure, high, values.length);
  showLetters(chips, state, at);
}

function showScale(measure, high, any) {
  const text = any ? `${high}|${measure.name}` : '';
  const host = byId('mesh-scale');
  if (host.dataset.key === text) return;
  host.dataset.key = text;
  host.replaceChildren();
  if (!any) return;
  host.append(element('span', {text: `${measure.name}: ${measure.text(0)}`}), element('i'), element('span', {text: measure.text(high)}));
}

const LETTERS = {T: 'stopped', D: 'in a debugger', X: 'gone', '!': 'failed', w: 'waits for others'};

// Explains the letters that are shown.
function showLetters(chips, state, at) {
  const found = new Set(chips.map((actor) => letterOf(actor, at)).filter((letter) => letter));
  const words = Object.keys(LETTERS).filter((letter) => found.has(letter)).map((letter) => `${letter} ${LETTERS[letter]}`);
  if (chips.some((actor) => isRoot(actor, state))) words.unshift('red: holds the job up');
  setText(byId('mesh-letters'), words.join(',  '));
}
