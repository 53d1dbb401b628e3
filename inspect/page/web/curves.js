// Draws curves over steps: the reported points (faint if there are many) and a smoothed line.

const CURVE_LEFT = 46, CURVE_BOTTOM = 18, CURVE_TOP = 6, CURVE_RIGHT = 10, RATES_MAX = 2000;

const curves = {data: null, column: null, rate: {x: [], values: []}, state: null};

function pointsOf(x, values) {
  const points = [];
  for (let i = 0; i < values.length; ++i) {
    if (values[i] !== null && x[i] !== null && x[i] !== undefined) points.push([x[i], values[i]]);
  }
  return points;
}

function smoothed(points) {
  const weight = 2 / (1 + Math.max(1, points.length / 40));
  let mean = points[0][1];
  return points.map(([x, value]) => [x, (mean += weight * (value - mean))]);
}

// Returns the range of the values, without the few outliers.
function rangeOf(points) {
  const values = points.map(([, value]) => value).sort((a, b) => a - b);
  const at = (share) => values[Math.round(share * (values.length - 1))];
  let low = at(0), high = at(1);
  if (values.length > 50 && high - low > 4 * (at(0.98) - at(0.02))) [low, high] = [at(0.02), at(0.98)];
  if (high === low) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const room = (high - low) * 0.06;
  return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
}

const pathOf = (points, x, y) => points.map(([at, value], i) => `${i ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('');

function drawCurve(host, points, name) {
  const width = host.clientWidth, height = host.clientHeight;
  if (!width || !height) return;
  if (points.length < 2) {
    host.replaceChildren(element('p', {class: 'none', text: name}));
    return;
  }
  const right = width - CURVE_RIGHT, bottom = height - CURVE_BOTTOM;
  const first = points[0][0], last = points[points.length - 1][0];
  const [low, high] = rangeOf(points);
  const x = (at) => CURVE_LEFT + (at - first) / Math.max(1e-12, last - first) * (right - CURVE_LEFT);
  const y = (value) => bottom - (Math.min(Math.max(value, low), high) - low) / (high - low) * (bottom - CURVE_TOP);
  const root = shape('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': name});
  for (const value of ticks(low, high, 3)) {
    root.append(shape('line', {x1: CURVE_LEFT, x2: right, y1: y(value), y2: y(value), class: 'grid'}),
                shape('text', {x: CURVE_LEFT - 6, y: y(value) + 3.5, class: 'axis end', text: numberText(value)}));
  }
  for (const at of ticks(first, last, width < 360 ? 3 : 6)) {
    root.append(shape('text', {x: x(at), y: height - 4, class: 'axis middle', text: numberText(at)}));
  }
  const smooth = points.length > 60 ? smoothed(points) : points;
  const area = `${pathOf(smooth, x, y)}L${x(last).toFixed(1)} ${bottom}L${x(first).toFixed(1)} ${bottom}Z`;
  root.append(shape('path', {d: area, class: 'area'}));
  if (smooth !== points) root.append(shape('path', {d: pathOf(points, x, y), class: 'raw'}));
  root.append(shape('path', {d: pathOf(smooth, x, y), class: 'line'}));
  const dot = shape('circle', {r: 3, class: 'dot', cx: x(last), cy: y(smooth[smooth.length - 1][1])});
  const cursor = shape('line', {y1: CURVE_TOP, y2: bottom, class: 'cursor', visibility: 'hidden'});
  const label = shape('text', {class: 'axis reading', y: CURVE_TOP + 8, visibility: 'hidden'});
  root.append(cursor, dot, label);
  root.addEventListener('pointermove', (event) => {
    const at = first + (event.offsetX - CURVE_LEFT) / (right - CURVE_LEFT) * (last - first);
    const i = Math.min(lowerBound(points.map(([step]) => step), at), points.length - 1);
    const px = x(points[i][0]);
    for (const node of [cursor, label]) node.setAttribute('visibility', 'visible');
    cursor.setAttribute('x1', px);
    cursor.setAttribute('x2', px);
    label.setAttribute('x', px > width / 2 ? px - 6 : px + 6);
    label.setAttribute('class', `axis reading${px > width / 2 ? ' end' : ''}`);
    label.textContent = `${numberText(points[i][1])}  at step ${grouped(points[i][0])}`;
  });
  root.addEventListener('pointerleave', () => {
    for (const node of [cursor, label]) node.setAttribute('visibility', 'hidden');
  });
  host.replaceChildren(root);
}

function firstColumn(columns) {
  const by = (fits) => columns.findIndex((column) => fits(column.name));
  const found = [by((name) => name === 'loss'), by((name) => name.endsWith('loss')), by((name) => name !== 'epoch'), 0];
  return found.find((index) => index >= 0);
}

function addCurves(data) {
  curves.data = data;
  const names = data.columns.map((column) => column.name);
  const select = byId('column');
  if (select.options.length !== names.length) {
    select.replaceChildren(...names.map((name) => element('option', {value: name, text: name})));
    if (curves.column === null && names.length) curves.column = names[firstColumn(data.columns)];
    if (curves.column !== null) select.value = curves.column;
    select.hidden = names.length < 2;
  }
  addHistory(data.rate);
  showCurves();
}

// Adds steps that are older than the first one the page has seen, from the events.
function addHistory(rate) {
  const {x, values} = curves.rate;
  const seen = x.length ? x[0] : Infinity;
  const count = x.length > 1 ? 0 : lowerBound(rate.x, seen);
  x.unshift(...rate.x.slice(0, count));
  values.unshift(...rate.values.slice(0, count));
}

// Adds the present rate, which the head shows too.
function addRate(state) {
  const {x, values} = curves.rate;
  curves.state = state;
  if (state.steps_per_s !== null) {
    if (x.length && state.step < x[x.length - 1]) x.length = values.length = 0;  // the job restarted
    if (x.length && state.step === x[x.length - 1]) {
      values[values.length - 1] = state.steps_per_s;
    } else {
      x.push(state.step);
      values.push(state.steps_per_s);
    }
    if (x.length > RATES_MAX) {
      x.splice(0, RATES_MAX / 2);
      values.splice(0, RATES_MAX / 2);
    }
  }
  showRate();
}

const reported = () => curves.data && curves.data.columns.find((each) => each.name === curves.column);

function showCurves() {
  const column = reported();
  const points = column ? pointsOf(curves.data.x, column.values) : [];
  setText(byId('loss-title'), column && !column.name.endsWith('loss') ? 'Reported' : 'Loss');
  const {state} = curves;
  drawCurve(byId('loss'), points, state && state.over ? 'the loop has reported no numbers' : 'the loop has reported no numbers yet');
  showLast();
  showRate();
}

// Shows the present numbers, which the head shows too.
function showLast() {
  const value = curves.state && curves.column !== null ? curves.state.metrics[curves.column] : null;
  setText(byId('loss-value'), typeof value === 'number' ? numberText(value) : '');
  setText(byId('rate-value'), rateText(curves.state));
  byId('rate-now').hidden = rateText(curves.state) === '';
}

function noRateText(state) {
  if (!state || (state.step === 0 && !state.over)) return 'no step has ended yet';
  return state.over ? 'the job has ended and kept no times of its steps' : 'measuring …';
}

function showRate() {
  const points = pointsOf(curves.rate.x, curves.rate.values);
  drawCurve(byId('rate'), points, noRateText(curves.state));
  showLast();
}

function setUpCurves() {
  byId('column').addEventListener('change', (event) => {
    curves.column = event.target.value;
    showCurves();
  });
  byId('column').hidden = true;
  new ResizeObserver(() => { if (curves.data) showCurves(); }).observe(byId('loss'));
  new ResizeObserver(() => { if (curves.state) showRate(); }).observe(byId('rate'));
}
