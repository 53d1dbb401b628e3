'use strict';
// Functions that all parts of the page share: elements, shapes, numbers as text, colours.

const SVG = 'http://www.w3.org/2000/svg';

const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') made.textContent = value;
    else if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') made.textContent = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// A state has a class, which sets its colour, and a shape, which shows the same without colour.
const STATES = {
  stopped: 'bad', frozen: 'bad', gone: 'bad', lost: 'bad', failed: 'bad', dead: 'bad', hung: 'bad', silent: 'bad',
  held: 'held',
  waiting: 'wait', admission: 'wait', lease: 'wait', waits: 'wait', slow: 'wait',
  running: 'run', 'user code': 'run', compiling: 'run', loading: 'run', saving: 'run', reporting: 'run',
  starting: 'run', joining: 'run', well: 'run',
  ended: 'rest', idle: 'rest', absent: 'rest', succeeded: 'rest', cancelled: 'rest',
};
const classOf = (state) => STATES[state] || 'rest';

const SHAPES = {
  bad: 'M6 0.6 L11.6 11 H0.4 Z',
  held: 'M6 0.5 L11.5 6 L6 11.5 L0.5 6 Z',
  wait: 'M1.5 1 H10.5 L6 6 L10.5 11 H1.5 L6 6 Z',
  run: 'M6 1 A5 5 0 1 1 5.99 1 Z',
  rest: 'M1.5 1.5 H10.5 V10.5 H1.5 Z',
};

function mark(state) {
  const kind = classOf(state);
  return shape('svg', {viewBox: '0 0 12 12', class: `mark ${kind}`, 'aria-hidden': 'true'},
               shape('path', {d: SHAPES[kind]}));
}

const ORDER = ['bad', 'held', 'wait', 'run', 'rest'];
// Ranks the worst states first.
const rankOf = (state) => ORDER.indexOf(classOf(state));

function secondsText(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return '';
  const size = Math.abs(seconds);
  if (size === 0) return '0 s';
  if (size < 1e-6) return `${(seconds * 1e9).toFixed(0)} ns`;
  if (size < 1e-3) return `${short(seconds * 1e6)} µs`;
  if (size < 1) return `${short(seconds * 1e3)} ms`;
  if (size < 100) return `${short(seconds)} s`;
  if (size < 6000) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}

// Returns the text for a time that is still growing.
function wholeText(seconds) {
  return seconds < 100 ? `${Math.floor(seconds)} s` : secondsText(seconds);
}

// Returns steps per second; all places of the page show this number.
function rateText(state) {
  if (!state || state.steps_per_s === null) return '';
  return state.steps_per_s === 0 ? '0' : short(state.steps_per_s);
}

// Returns for example "2026-11-28 06:51:18", in the reader's time zone.
function timeText(unixSeconds) {
  const at = new Date(unixSeconds * 1000);
  const two = (number) => String(number).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

// Returns a number with three digits.
function short(number) {
  const size = Math.abs(number);
  if (size >= 100 || size === 0) return number.toFixed(0);
  return size >= 10 ? number.toFixed(1) : number.toFixed(2);
}

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');

function numberText(number) {
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return number.toExponential(2);
  if (Number.isInteger(number)) return grouped(number);
  return size >= 1000 ? grouped(Math.round(number)) : String(Number(number.toPrecision(4)));
}

const percent = (share) => `${Math.round(share * 100)} %`;

// Returns the value of a colour of page.css, for a canvas.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Sets a text only if it changes, so that a reader's selection stays.
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Returns between 3 and about `count` round numbers within [low, high].
function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const made = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) {
    made.push(Number(at.toPrecision(12)));
  }
  return made;
}
