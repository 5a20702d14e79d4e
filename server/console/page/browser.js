// Role: the key browser: pages of keys with their values, by prefix, from a key on, or one key.
import { element, labelled, replace, select } from './dom.js';
import { callForFewer } from './fewer.js';
import { endOfPrefix, nextKey, parseBytes, showKey, toBase64 } from './keys.js';
import * as numbers from './numbers.js';
import { Panel } from './panel.js';
import { putKey } from './shown_key.js';
import { shownValue, typeOfValue } from './shown_value.js';
import { Table } from './table.js';

const MODES = [
  ['prefix', 'keys that begin with'],
  ['from', 'keys from'],
  ['key', 'the one key'],
];
const SIZES = ['25', '50', '100', '500'].map((size) => [size, size]);

function rangeOf(mode, bytes) {
  if (mode === 'from') return { from: bytes, to: new Uint8Array() };
  return { from: bytes, to: mode === 'key' ? nextKey(bytes) : endOfPrefix(bytes) };
}

function expiry({ expires_at_us: us }) {
  if (!us || us === '0') return 'never';
  const left = Number(us) - Date.now() * 1000;
  return left > 0 ? `in ${numbers.duration(left)}` : 'due';
}

function putValue(cell, pair) {
  const version = `${pair.key} ${pair.version}`;
  if (cell.dataset.version === version) return;
  cell.dataset.version = version;
  replace(cell, shownValue(pair.value, showKey(pair.key)));
}

export class Browser extends Panel {
  #mode = select(MODES, 'prefix', { 'aria-label': 'Which keys' });
  #text = element('input', { type: 'text', spellcheck: false, autocomplete: 'off', className: 'mono' });
  #size = select(SIZES, '50');
  #fault = element('p', { className: 'fault', role: 'alert', hidden: true });
  #about = element('p', { className: 'note', role: 'status' });
  #back = element('button', { type: 'button', onclick: () => this.#turn(-1) }, 'Previous page');
  #next = element('button', { type: 'button', onclick: () => this.#turn(1) }, 'Next page');
  #starts = []; // the first keys of the pages so far
  #range;
  #following; // the first key of the next page
  #table = new Table({
    caption: 'Keys and values',
    empty: 'There are no such keys.',
    keyOf: ({ key }) => key,
    columns: [
      { title: 'key', className: 'key', update: (cell, { key }) => putKey(cell, { key }) },
      { title: 'value', className: 'wide', update: putValue },
      { title: 'type', text: ({ value }) => typeOfValue(value) },
      { title: 'version', number: true, text: ({ version }) => numbers.whole(version) },
      {
        title: 'expires',
        number: true,
        text: expiry,
        hint: ({ expires_at_us: us }) => (us && us !== '0' ? numbers.exactTime(us) : ''),
      },
    ],
  });

  constructor(connection) {
    super(connection, { title: 'Keys', right: 'the right to read all of these keys', every: 0 });
    const form = element(
      'form',
      { className: 'row', onsubmit: (event) => this.#begin(event) },
      labelled('Show', this.#mode),
      labelled('Key or prefix', this.#text),
      labelled('Pairs in a page', this.#size),
      element('button', { type: 'submit', className: 'main' }, 'Show keys'),
    );
    const hint = element(
      'p',
      { className: 'hint' },
      'Escapes name bytes that cannot be typed: \\x00 is a byte, \\u202e a character, and \\\\ a backslash. Nothing typed means all keys.',
    );
    const pages = element('div', { className: 'buttons start' }, this.#back, this.#next);
    this.node.insertBefore(element('div', { className: 'content' }, form, hint, this.#fault), this.node.children[1]);
    this.body.append(this.#about, this.#table.node, pages);
    this.#buttons();
  }

  async refresh() {
    if (this.#starts.length === 0) this.#restart();
    await this.#read();
  }

  #restart() {
    this.#range = rangeOf(this.#mode.value, parseBytes(this.#text.value));
    if (this.#mode.value === 'key' && this.#range.from.length === 0) throw new Error('Write the key.');
    this.#starts = [toBase64(this.#range.from)];
  }

  async #begin(event) {
    event.preventDefault();
    this.#fault.hidden = true;
    try {
      this.#restart();
    } catch (error) {
      this.#fault.textContent = error.message;
      this.#fault.hidden = false;
      return;
    }
    await this.attempt(() => this.#read());
  }

  async #turn(step) {
    const before = [...this.#starts];
    if (step > 0) this.#starts.push(this.#following);
    else this.#starts.pop();
    if (!(await this.attempt(() => this.#read()))) this.#starts = before;
  }

  async #read() {
    const range = { from: this.#starts.at(-1), to: toBase64(this.#range.to) };
    const asked = Number(this.#size.value);
    const { answer, limit } = await callForFewer('Scan', { range }, asked);
    this.#following = answer.more ? answer.next_from : undefined;
    const fewer = limit < asked ? ` The page has fewer pairs, because the values are long.` : '';
    const count = answer.pairs.length === 1 ? '1 pair' : `${numbers.whole(answer.pairs.length)} pairs`;
    const shown = `${count} as of batch ${numbers.whole(answer.boundary)}, ${numbers.time(answer.batch_time_us)}.`;
    const none = answer.more && answer.pairs.length === 0 ? ' This page has deleted keys only. More may follow.' : '';
    this.#about.textContent = `Page ${this.#starts.length}: ${shown}${fewer}${none}`;
    this.#table.update(answer.pairs);
    this.#buttons();
  }

  #buttons() {
    this.#back.disabled = this.#starts.length < 2;
    this.#next.disabled = this.#following === undefined;
  }

  reset() {
    this.#starts = [];
    this.#following = undefined;
    this.#table.update([]);
    this.#about.textContent = '';
    this.#buttons();
  }
}
