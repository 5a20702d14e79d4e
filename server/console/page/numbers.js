// Role: numbers, sizes, durations and times as people read them. 64-bit numbers come as decimal texts or BigInt.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const SECOND = 1e6; // in microseconds
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// Three digits that count: 1.23, 12.3, 123.
function threeDigits(value) {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

// All digits, in groups: 1,234,567.
export function whole(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ',');
}

// A rate or a mean, such as 57,412 or 3.25.
export function rate(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  return Math.abs(value) >= 99.95 ? whole(Math.round(value)) : threeDigits(value).replace(/\.0+$/, '');
}

// Short, for the axes of charts: 1.5k, 20M.
export function short(value) {
  for (const [size, letter] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ]) {
    if (Math.abs(value) >= size) return `${Number((value / size).toFixed(2))}${letter}`;
  }
  return String(Number(value.toPrecision(3)));
}

export function bytes(value) {
  let size = Number(value);
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : threeDigits(size)} ${UNITS[unit]}`;
}

export function percent(share) {
  if (!Number.isFinite(share)) return '–';
  if (share > 0 && share < 0.001) return '<0.1 %';
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

function longDuration(us) {
  if (us >= DAY) return `${Math.floor(us / DAY)}d ${Math.floor((us % DAY) / HOUR)}h`;
  if (us >= HOUR) return `${Math.floor(us / HOUR)}h ${Math.floor((us % HOUR) / MINUTE)}m`;
  return `${Math.floor(us / MINUTE)}m ${Math.floor((us % MINUTE) / SECOND)}s`;
}

// Microseconds as 350 µs, 2.10 ms, 11.5 s, 3m 20s.
export function duration(microseconds) {
  const us = Number(microseconds);
  if (!Number.isFinite(us)) return '–';
  if (us < 0) return `−${duration(-us)}`;
  if (us < 1) return us === 0 ? '0 s' : '<1 µs';
  if (us < 999.5) return `${us < 9.995 ? Number(us.toFixed(1)) : Math.round(us)} µs`;
  if (us < 999500) return `${threeDigits(us / 1e3)} ms`;
  return us < MINUTE ? `${threeDigits(us / SECOND)} s` : longDuration(us);
}

export const seconds = (value) => (value === null || value === undefined ? '–' : duration(value * SECOND));

const two = (value) => String(value).padStart(2, '0');

const dateOf = (us) => new Date(Number(BigInt(us) / 1000n));
const isDate = (date) => !Number.isNaN(date.getTime());

// Microseconds since the Unix epoch as the local time of day, with the date if it is another day.
export function time(us, now = new Date()) {
  const date = dateOf(us);
  if (!isDate(date)) return 'out of range';
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === now.toDateString()) return clock;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}

// The whole time in UTC, for titles.
export function exactTime(us) {
  const date = dateOf(us);
  if (!isDate(date)) return `${us} µs since 1970`;
  return date
    .toISOString()
    .replace(/\.\d+Z$/, `.${String(((BigInt(us) % 1000000n) + 1000000n) % 1000000n).padStart(6, '0')}Z`);
}

// Cents as an amount of money: exact, because they are a BigInt.
export function money(cents) {
  const value = BigInt(cents);
  const size = value < 0n ? -value : value;
  return `${value < 0n ? '−' : ''}${whole(size / 100n)}.${two(size % 100n)}`;
}
