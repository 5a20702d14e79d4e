'use strict';
// Role: numbers as people read them, in the form that kilokv-bench prints them.

const NONE = '–';
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

// 1234567.8 -> 1,234,567
function whole(value) {
  return isNumber(value) ? String(Math.trunc(value)).replace(/\B(?=(\d{3})+$)/g, ',') : NONE;
}

// Three digits that count: 1.23, 12.3, 123.
function threeDigits(value) {
  if (value >= 99.95) return value.toFixed(0);
  return value.toFixed(value >= 9.995 ? 1 : 2);
}

// Microseconds with the unit that fits: 87 us, 1.23 ms, 4.56 s.
function duration(us) {
  if (!isNumber(us)) return NONE;
  if (us < 999.5) return `${Math.round(us)} µs`;
  return us < 999500 ? `${threeDigits(us / 1e3)} ms` : `${threeDigits(us / 1e6)} s`;
}

// Short, for axes: 200 µs, 5 ms, 1 s.
function shortDuration(us) {
  if (us < 1e3) return `${Number(us.toPrecision(3))} µs`;
  return us < 1e6 ? `${Number((us / 1e3).toPrecision(3))} ms` : `${Number((us / 1e6).toPrecision(3))} s`;
}

// Short, for axes: 1.5k, 20M.
function short(value) {
  for (const [size, letter] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ]) {
    if (value >= size) return `${Number((value / size).toFixed(2))}${letter}`;
  }
  return String(Number(value.toPrecision(3)));
}

// A mean, such as 3.25 or 1,024.
function mean(value) {
  if (!isNumber(value)) return NONE;
  return value >= 99.95 ? whole(value) : String(Number(threeDigits(value)));
}

function percent(share) {
  if (!isNumber(share)) return NONE;
  if (share > 0 && share < 0.001) return '<0.1%';
  return `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)}%`;
}

function count(number, one, several = `${one}s`) {
  return `${whole(number)} ${number === 1 ? one : several}`;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
