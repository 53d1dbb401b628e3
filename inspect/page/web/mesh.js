// The chips as they stand in the mesh: the colour of a cell says how often the others waited for it,
// or how long it waited itself; its letter and frame say its state.

const MESH_MAX = 256;
const MESH_MEASURES = {
  late: {
    name: 'comes last',
    title: 'Share of its collectives to which a chip came last of all',
    value: (actor) => (actor.calls ? actor.last / actor.calls : null),
    text: percent,
  },
  waited: {
    name: 'waits',
    title: 'Time that a chip has waited for others',
    value: (actor) => (actor.waited_s === undefined ? null : actor.waited_s),
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

// The last axis goes from left to right; the others make the rows.
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

function buildMesh(layout, host) {
  const size = 10, gap = 1, left = layout.sizes.length > 1 ? 7 : 1, top = 5;
  const width = left + layout.columns * (size + gap), height = top + layout.rows * (size + gap);
  const root = shape('svg', {
    viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Chips in the mesh',
    preserveAspectRatio: 'xMidYMid meet',
  });
  const last = layout.axes[layout.axes.length - 1];
  const others = layout.axes.slice(0, -1).join(', ');
  root.append(shape('text', {x: left, y: 2.6, class: 'axis', text: `${last} →${others ? `    ${others} ↓` : ''}`}));
  mesh.cells.clear();
  layout.chips.forEach((chip, position) => {
    const column = position % layout.columns, row = Math.floor(position / layout.columns);
    const x = left + column * (size + gap), y = top + row * (size + gap);
    if (column === 0 && layout.sizes.length > 1) {
      root.append(shape('text', {x: left - 1.5, y: y + size / 2 + 1, class: 'axis end', text: rowName(layout, row)}));
    }
    const box = shape('rect', {x, y, width: size, height: size, rx: 1.4});
    const heat = shape('rect', {x, y, width: size, height: size, rx: 1.4, class: 'heat'});
    const letter = shape('text', {x: x + size / 2, y: y + size / 2 + 0.2, class: 'letter'});
    const number = shape('text', {x: x + size / 2, y: y + size - 1.3, class: 'number'});
    const title = shape('title');
    const cell = shape('g', {class: 'cell', 'data-chip': chip}, box, heat, letter, number, title);
    cell.addEventListener('click', () => mesh.onSelect(`chip ${chip}`));
    mesh.cells.set(chip, {cell, heat, letter, number, title});
    root.append(cell);
  });
  host.replaceChildren(root);
}

// Where the state is news, its letter; else the chip's number.
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
  const key = layout ? JSON.stringify(state.mesh) : '';
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
  const high = Math.max(...values, 0), low = mesh.measure === 'late' ? 0 : Math.min(...values, high);
  for (const actor of chips) {
    const cell = mesh.cells.get(actor.chip);
    if (!cell) continue;
    const value = measure.value(actor);
    const share = value === null || high <= low ? 0 : (value - low) / (high - low);
    cell.cell.setAttribute('class', `cell ${classOf(actor.state)}${actor.name === selected ? ' selected' : ''}`);
    cell.cell.setAttribute('data-state', actor.state);
    cell.heat.setAttribute('opacity', (0.06 + 0.84 * share).toFixed(3));
    const letter = letterOf(actor, at);
    cell.letter.setAttribute('class', `${letter ? 'letter' : 'letter calm'}${share > 0.55 ? ' on-heat' : ''}`);
    setText(cell.letter, letter || String(actor.chip));
    setText(cell.number, letter ? String(actor.chip) : '');
    const shown = value === null ? '' : `\n${measure.name}: ${measure.text(value)}`;
    setText(cell.title, `${actor.name}, worker ${actor.worker}: ${actor.state}${shown}\n${actor.doing}`);
  }
  showScale(measure, low, high, values.length);
}

function showScale(measure, low, high, any) {
  const text = any ? `${low}|${high}|${measure.name}` : '';
  const host = byId('mesh-scale');
  if (host.dataset.key === text) return;
  host.dataset.key = text;
  host.replaceChildren();
  if (!any) return;
  host.append(element('span', {text: measure.text(low)}), element('i'), element('span', {text: measure.text(high)}));
}
