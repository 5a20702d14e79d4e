// Role: the rows of the transaction form. Each row is one guard or one operation, and becomes its JSON and back.
import { element, labelled, select } from './dom.js';
import { parseBytes, showBytes, fromBase64, toBase64 } from './keys.js';
import { GUARD_KINDS } from './transaction.js';

const GUARD_WORDS = {
  exists: 'exists',
  absent: 'is absent',
  eq: '=',
  ne: '≠',
  lt: '<',
  le: '≤',
  gt: '>',
  ge: '≥',
  version: 'has the version',
  unchanged: 'unchanged since version',
  bytes_eq: 'has the bytes',
  range_unchanged: 'range unchanged since version',
  time_before: 'time is before',
  time_after: 'time is at or after',
};
const OPERATIONS = [
  ['get', 'GET'],
  ['put', 'PUT'],
  ['add', 'ADD'],
  ['delete', 'DELETE'],
  ['range_get', 'RANGE_GET'],
  ['range_get_reverse', 'RANGE_GET_REVERSE'],
  ['delete_range', 'DELETE_RANGE'],
];
const OPERANDS = [
  ['integer', 'the number'],
  ['text', 'the bytes'],
  ['get', 'what GET n has read'],
  ['get_negated', 'minus what GET n has read'],
  ['commit_version', 'the commit version'],
  ['batch_time', 'the time of the batch'],
];
const EXPIRIES = [
  ['keep', 'not set'],
  ['ttl_us', 'after (µs)'],
  ['expires_at_us', 'at (µs since 1970)'],
];
const COMPARISONS = new Set(['eq', 'ne', 'lt', 'le', 'gt', 'ge']);
const TIMES = new Set(['time_before', 'time_after']);
const VERSIONS = new Set(['version', 'unchanged', 'range_unchanged']);
const RANGES = new Set(['range_get', 'range_get_reverse', 'delete_range']);

const isPrintable = (bytes) => bytes.every((byte) => byte >= 0x20 && byte <= 0x7e);

// What was typed, as JSON has it: a text if all of it is printable ASCII.
function bytesJson(text) {
  const bytes = parseBytes(text);
  return isPrintable(bytes) ? String.fromCharCode(...bytes) : { b64: toBase64(bytes) };
}

function shownJson(value) {
  if (value === undefined) return '';
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : fromBase64(value.b64);
  return showBytes(bytes).text;
}

function number(text, name) {
  if (!/^[+-]?\d+$/.test(text.trim())) throw new Error(`${name}: "${text}" is no whole number.`);
  return BigInt(text.trim());
}

const input = (mono = true) =>
  element('input', { type: 'text', spellcheck: false, autocomplete: 'off', className: mono ? 'mono' : '' });

class Row {
  #fields = [];
  #mark = element('p', { className: 'mark', hidden: true });

  constructor(removed) {
    const remove = element(
      'button',
      { type: 'button', className: 'small remove', 'aria-label': 'Remove this row', onclick: () => removed(this) },
      '✕',
    );
    this.fields = element('div', { className: 'fields' });
    this.node = element('li', { className: 'edit-row' }, this.fields, remove, this.#mark);
    this.node.addEventListener('change', () => this.adapt());
    this.node.addEventListener('input', () => this.mark(''));
  }

  // `shown` tells whether the field has a meaning at present. `label` may be a function, too.
  field(label, control, shown = () => true) {
    const node = labelled(typeof label === 'string' ? label : label(), control);
    this.#fields.push({ node, control, label, shown });
    this.fields.append(node);
    return control;
  }

  adapt() {
    for (const { node, label, shown } of this.#fields) {
      node.hidden = !shown();
      if (typeof label === 'function') node.firstChild.textContent = label();
    }
  }

  // Marks the row as the one that decided; an empty text: it did not.
  mark(text) {
    this.#mark.textContent = text;
    this.#mark.hidden = !text;
    this.node.classList.toggle('failed', Boolean(text));
  }
}

export class GuardRow extends Row {
  #is = select(
    Object.keys(GUARD_KINDS).map((name) => [name, GUARD_WORDS[name]]),
    'ge',
  );
  #key = input();
  #from = input();
  #to = input();
  #against = select(
    [
      ['constant', 'a constant'],
      ['key', 'another key'],
    ],
    'constant',
  );
  #value = input();
  #whenFalse = select(
    [
      ['fail', 'fail'],
      ['wait', 'wait'],
    ],
    'fail',
  );

  constructor(removed) {
    super(removed);
    const is = () => this.#is.value;
    const isRange = () => is() === 'range_unchanged';
    const timeOfKey = () => TIMES.has(is()) && this.#against.value === 'key';
    this.field('key', this.#key, () => !isRange() && (!TIMES.has(is()) || timeOfKey()));
    this.field('from key', this.#from, isRange);
    this.field('to key, not included', this.#to, isRange);
    this.field('condition', this.#is);
    this.field('compare with', this.#against, () => COMPARISONS.has(is()) || TIMES.has(is()));
    this.field(
      () => this.#valueLabel(),
      this.#value,
      () => !['exists', 'absent'].includes(is()) && !timeOfKey(),
    );
    this.field('when false', this.#whenFalse);
    this.adapt();
  }

  #valueLabel() {
    const is = this.#is.value;
    if (VERSIONS.has(is)) return 'version';
    if (TIMES.has(is)) return 'µs since 1970';
    if (is === 'bytes_eq') return 'bytes';
    return this.#against.value === 'key' ? 'other key' : 'number';
  }

  #operand(is) {
    if (is === 'exists' || is === 'absent') return {};
    if (VERSIONS.has(is)) return { version: number(this.#value.value, 'version') };
    if (is === 'bytes_eq') return { value: bytesJson(this.#value.value) };
    const key = this.#against.value === 'key';
    if (TIMES.has(is)) return key ? {} : { time_us: number(this.#value.value, 'time') };
    return key ? { other: bytesJson(this.#value.value) } : { value: number(this.#value.value, 'number') };
  }

  json() {
    const is = this.#is.value;
    const operand = this.#operand(is);
    const place =
      is === 'range_unchanged'
        ? { from: bytesJson(this.#from.value), to: bytesJson(this.#to.value) }
        : operand.time_us === undefined && { key: bytesJson(this.#key.value) };
    return { ...place, is, ...operand, when_false: this.#whenFalse.value };
  }

  fill({ is = 'ge', key, from, to, value, other, version, time_us: time, when_false: whenFalse = 'fail' }) {
    this.#is.value = is;
    this.#key.value = shownJson(key);
    this.#from.value = shownJson(from);
    this.#to.value = shownJson(to);
    this.#against.value = other !== undefined || (TIMES.has(is) && key !== undefined) ? 'key' : 'constant';
    const constant = version ?? time ?? value;
    this.#value.value = typeof constant === 'bigint' ? String(constant) : shownJson(other ?? constant);
    this.#whenFalse.value = whenFalse;
    this.adapt();
  }
}

export class OperationRow extends Row {
  #op = select(OPERATIONS, 'get');
  #key = input();
  #from = input();
  #to = input();
  #limit = input();
  #operand = select(OPERANDS, 'integer');
  #value = input();
  #expiry = select(EXPIRIES, 'keep');
  #expiryValue = input();

  constructor(removed) {
    super(removed);
    const op = () => this.#op.value;
    const isRange = () => RANGES.has(op());
    const writes = () => op() === 'put' || op() === 'add';
    this.#limit.value = '100';
    this.field('operation', this.#op);
    this.field('key', this.#key, () => !isRange());
    this.field('from key', this.#from, isRange);
    this.field('to key, not included', this.#to, isRange);
    this.field('most keys', this.#limit, isRange);
    this.field('value', this.#operand, writes);
    this.field(
      () => this.#valueLabel(),
      this.#value,
      () => writes() && !['commit_version', 'batch_time'].includes(this.#operand.value),
    );
    this.field('expires', this.#expiry, writes);
    this.field('µs', this.#expiryValue, () => writes() && this.#expiry.value !== 'keep');
    this.adapt();
  }

  #valueLabel() {
    if (this.#operand.value.startsWith('get')) return 'n: place in this list, from 0';
    return this.#operand.value === 'text' ? 'bytes' : 'number';
  }

  #operandJson() {
    const text = this.#value.value;
    switch (this.#operand.value) {
      case 'integer':
        return number(text, 'value');
      case 'text':
        return bytesJson(text);
      case 'get':
        return { get: number(text, 'n') };
      case 'get_negated':
        return { get: number(text, 'n'), negate: true };
      default:
        return { [this.#operand.value]: true };
    }
  }

  json() {
    const op = this.#op.value;
    if (RANGES.has(op)) {
      const range = {
        from: bytesJson(this.#from.value),
        to: bytesJson(this.#to.value),
        limit: number(this.#limit.value, 'most keys'),
      };
      return op === 'range_get_reverse' ? { op: 'range_get', ...range, reverse: true } : { op, ...range };
    }
    const json = { op, key: bytesJson(this.#key.value) };
    if (op === 'put') json.value = this.#operandJson();
    if (op === 'add') json.delta = this.#operandJson();
    if ((op === 'put' || op === 'add') && this.#expiry.value !== 'keep')
      json[this.#expiry.value] = number(this.#expiryValue.value, 'expires');
    return json;
  }

  #fillOperand(value) {
    this.#value.value = '';
    if (typeof value === 'bigint') {
      this.#operand.value = 'integer';
      this.#value.value = String(value);
    } else if (typeof value === 'string' || value?.b64 !== undefined) {
      this.#operand.value = 'text';
      this.#value.value = shownJson(value);
    } else if (value?.get !== undefined) {
      this.#operand.value = value.negate ? 'get_negated' : 'get';
      this.#value.value = String(value.get);
    } else if (value !== undefined) {
      this.#operand.value = value.commit_version ? 'commit_version' : 'batch_time';
    }
  }

  fill({ op = 'get', key, from, to, limit = 100n, reverse, value, delta, ttl_us: ttl, expires_at_us: at }) {
    this.#op.value = op === 'range_get' && reverse ? 'range_get_reverse' : op;
    this.#key.value = shownJson(key);
    this.#from.value = shownJson(from);
    this.#to.value = shownJson(to);
    this.#limit.value = String(limit);
    this.#fillOperand(value ?? delta);
    this.#expiry.value = ttl === undefined ? (at === undefined ? 'keep' : 'expires_at_us') : 'ttl_us';
    this.#expiryValue.value = String(ttl ?? at ?? '');
    this.adapt();
  }
}

// A list of rows with a button that adds one.
export class RowList {
  #rows = [];
  #Kind;
  #list = element('ol', { className: 'edit-rows', start: '0' });

  constructor({ title, note, add, Kind }) {
    this.#Kind = Kind;
    const button = element('button', { type: 'button', className: 'small', onclick: () => this.#addAndFocus() }, add);
    this.node = element(
      'fieldset',
      {},
      element('legend', {}, title),
      element('p', { className: 'hint' }, note),
      this.#list,
      button,
    );
  }

  #add() {
    const row = new this.#Kind((removed) => this.#remove(removed));
    this.#rows.push(row);
    this.#list.append(row.node);
    return row;
  }

  #addAndFocus() {
    this.#add().node.querySelector('input, select').focus();
  }

  #remove(row) {
    this.#rows = this.#rows.filter((other) => other !== row);
    row.node.remove();
  }

  json() {
    return this.#rows.map((row) => row.json());
  }

  fill(list = []) {
    for (const row of [...this.#rows]) this.#remove(row);
    for (const json of list) this.#add().fill(json);
  }

  // Marks one row, and no other. -1: none.
  mark(index, text) {
    this.#rows.forEach((row, at) => row.mark(at === index ? text : ''));
  }
}
