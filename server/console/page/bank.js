// Role: the bank of the demo (docs/bank-demo.md): accounts, their total, and the last movements of money.
import * as api from './api.js';
import { confirm } from './dialog.js';
import { element, labelled, select, setText } from './dom.js';
import { callForFewer } from './fewer.js';
import { endOfPrefix, fromBase64, parseBytes, showBytes, showText, toBase64 } from './keys.js';
import * as numbers from './numbers.js';
import { Panel } from './panel.js';
import { Table } from './table.js';

const ACCOUNTS = 'bank/account/';
const ENTRIES = 'bank/entry/';
const PAGE = 400;
const MOST_PAGES = 25;
const PAGES_A_SECOND = 4; // a bank with more is looked at less often
const SECOND_MS = 1000;
const MOST_ROWS = 40;
const WATCHED_ACCOUNTS = 24; // those that changed last: their statements are read
const MOVEMENTS = 40;

const rangeOfPrefix = (prefix) => {
  const bytes = parseBytes(prefix);
  return { from: toBase64(bytes), to: toBase64(endOfPrefix(bytes)) };
};

// Whether the keys of the demo exist, as far as this user may know.
export async function hasBank() {
  const { pairs } = await api.call('Scan', { range: rangeOfPrefix(ACCOUNTS), limit: 1 });
  return pairs.length > 0;
}

// All accounts at one batch boundary. `complete`: there are no more than the page reads.
async function readAccounts() {
  const range = rangeOfPrefix(ACCOUNTS);
  let { answer, limit } = await callForFewer('Scan', { range, keep_boundary: true }, PAGE);
  const pairs = [...answer.pairs];
  const { boundary } = answer;
  let pages = 1;
  for (; answer.more && pages < MOST_PAGES; pages += 1) {
    const { next_from: from, reader } = answer;
    const request = { range: { ...range, from }, boundary, reader, keep_boundary: pages + 1 < MOST_PAGES };
    ({ answer, limit } = await callForFewer('Scan', request, limit));
    pairs.push(...answer.pairs);
  }
  return { accounts: pairs.map(accountOf).filter(Boolean), boundary, pages, complete: !answer.more };
}

function accountOf({ key, value, version }) {
  if (value?.integer === undefined) return undefined;
  const name = showBytes(fromBase64(key).slice(ACCOUNTS.length)).text;
  return { name, cents: BigInt(value.integer), version: BigInt(version) };
}

const ORDERS = {
  name: (a, b) => (a.name < b.name ? -1 : 1),
  balance: (a, b) => Number(b.cents > a.cents) - Number(b.cents < a.cents),
  changed: (a, b) => Number(b.version > a.version) - Number(b.version < a.version),
};

function markChange(cell, { version }) {
  const before = cell.dataset.version;
  if (before === String(version)) return;
  cell.dataset.version = String(version);
  if (before === undefined) return;
  cell.classList.remove('changed');
  void cell.offsetWidth; // so that the animation starts again
  cell.classList.add('changed');
}

export class BankAccounts extends Panel {
  accounts = [];
  #filter = element('input', { type: 'search', spellcheck: false, autocomplete: 'off' });
  #order = select(
    [
      ['name', 'name'],
      ['balance', 'balance'],
      ['changed', 'last change'],
    ],
    'name',
  );
  #kill = element(
    'button',
    { type: 'button', className: 'danger', hidden: true, onclick: () => this.#killServer() },
    'Kill the server',
  );
  #tiles = ['total', 'accounts', 'lowest balance', 'as of batch'].map((name) => ({
    name,
    value: element('dd', {}, '–'),
  }));
  #more = element('p', { className: 'note' });
  #table = new Table({
    caption: 'Accounts',
    empty: 'No account has this name.',
    keyOf: ({ name }) => name,
    columns: [
      { title: 'account', className: 'mono wraps', text: ({ name }) => name },
      {
        title: 'balance',
        number: true,
        update: (cell, account) => {
          setText(cell, numbers.money(account.cents));
          markChange(cell, account);
        },
      },
      { title: 'version', number: true, text: ({ version }) => numbers.whole(version) },
    ],
  });

  constructor(connection) {
    super(connection, {
      title: 'Bank',
      note: 'All balances are of one moment: the boundary of a batch. So the total is exact while money moves.',
      right: 'the right to read the keys below bank/account/',
      every: 1000,
    });
    this.tools.append(this.#kill);
    const update = () => this.#draw();
    this.#filter.addEventListener('input', update);
    this.#order.addEventListener('change', update);
    this.body.append(
      element(
        'dl',
        { className: 'tiles' },
        this.#tiles.map(({ name, value }) => element('div', {}, element('dt', {}, name), value)),
      ),
      element('div', { className: 'row' }, labelled('Name has', this.#filter), labelled('Order by', this.#order)),
      this.#table.node,
      this.#more,
    );
    connection.addEventListener('change', () => (this.#kill.hidden = !connection.session.demo));
  }

  async refresh() {
    const { accounts, boundary, pages, complete } = await readAccounts();
    this.accounts = accounts;
    this.every = SECOND_MS * Math.ceil(pages / PAGES_A_SECOND);
    const total = accounts.reduce((sum, { cents }) => sum + cents, 0n);
    const lowest = accounts.reduce(
      (least, { cents }) => (least === undefined || cents < least ? cents : least),
      undefined,
    );
    const texts = [
      numbers.money(total),
      `${numbers.whole(accounts.length)}${complete ? '' : ' or more'}`,
      lowest === undefined ? '–' : numbers.money(lowest),
      numbers.whole(boundary),
    ];
    this.#tiles.forEach(({ value }, index) => setText(value, texts[index]));
    this.#draw();
  }

  #draw() {
    const wanted = this.#filter.value.trim();
    const found = this.accounts.filter(({ name }) => name.includes(wanted)).sort(ORDERS[this.#order.value]);
    this.#table.update(found.slice(0, MOST_ROWS));
    const left = found.length - MOST_ROWS;
    setText(
      this.#more,
      left > 0 ? `${numbers.whole(left)} more accounts are not shown. Write a part of a name to find one.` : '',
    );
  }

  async #killServer() {
    const agreed = await confirm({
      title: 'Kill the server?',
      text: 'The server ends at once with SIGKILL, as if its machine had failed. All that it has acknowledged stays. What starts it again is up to you.',
      action: 'Kill the server',
    });
    if (!agreed) return;
    await this.attempt(() => api.kill());
  }

  reset() {
    this.accounts = [];
    this.#table.update([]);
  }
}

// bank/entry/<account>/<id>/<kind>/<counterpart>, or nothing if it is another key.
export function parseEntry(key, cents) {
  const parts = key.slice(ENTRIES.length).split('/');
  if (!key.startsWith(ENTRIES) || parts.length !== 4) return undefined;
  const [account, id, kind, counterpart] = parts;
  const out = cents < 0n;
  const amount = out ? -cents : cents;
  return {
    id,
    kind,
    from: out ? account : counterpart,
    to: out ? counterpart : account,
    amount,
    time: /^\d{16}-/.test(id) ? id.slice(0, 16) : undefined,
  };
}

export class BankMovements extends Panel {
  #accounts;
  #movements = new Map(); // by id: both halves of a transfer have the same
  #table = new Table({
    caption: 'Last movements of money',
    empty: 'No money has moved.',
    keyOf: ({ id }) => id,
    columns: [
      {
        title: 'time',
        text: ({ time }) => (time ? numbers.time(time) : '–'),
        hint: ({ time }) => (time ? numbers.exactTime(time) : ''),
      },
      { title: 'kind', text: ({ kind }) => showText(kind) },
      { title: 'amount', number: true, text: ({ amount }) => numbers.money(amount) },
      { title: 'from', className: 'mono wraps', text: ({ from }) => from },
      { title: 'to', className: 'mono wraps', text: ({ to }) => to },
    ],
  });

  constructor(connection, accounts) {
    super(connection, {
      title: 'Last movements',
      note: `The newest entries of the ${WATCHED_ACCOUNTS} accounts that changed last.`,
      right: 'the right to read the keys below bank/entry/',
      every: 1000,
    });
    this.#accounts = accounts;
    this.body.append(this.#table.node);
  }

  async refresh() {
    const newest = [...this.#accounts.accounts].sort(ORDERS.changed).slice(0, WATCHED_ACCOUNTS);
    if (newest.length === 0) return;
    const then = newest.map(({ name }) => ({
      kind: 'OPERATION_KIND_RANGE_GET_REVERSE',
      range: rangeOfPrefix(`${ENTRIES}${name}/`),
      limit: 3,
    }));
    const { result } = await api.call('Execute', { transaction: { then } });
    for (const { key, value } of result.reads ?? []) {
      const entry = parseEntry(showBytes(fromBase64(key)).text, BigInt(value?.integer ?? 0));
      if (entry) this.#movements.set(entry.id, entry);
    }
    const last = [...this.#movements.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, MOVEMENTS);
    this.#movements = new Map(last.map((entry) => [entry.id, entry]));
    this.#table.update(last);
  }

  reset() {
    this.#movements.clear();
    this.#table.update([]);
  }
}
