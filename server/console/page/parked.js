// Role: transactions that wait on the server for a guard, and their cancellation.
import * as api from './api.js';
import { confirm } from './dialog.js';
import { element } from './dom.js';
import { callForFewer } from './fewer.js';
import { fromBase64, showKey, showText, toHex } from './keys.js';
import * as numbers from './numbers.js';
import { Panel } from './panel.js';
import { putKey } from './shown_key.js';
import { Table } from './table.js';

const LIMIT = 200;

const left = (us) => Number(us) - Date.now() * 1000;
const key = ({ guard_key: base64 }) => (base64 ? { key: base64 } : undefined);

export class Parked extends Panel {
  #table;

  constructor(connection) {
    super(connection, {
      title: 'Parked transactions',
      note: 'A guard of each of them is false. The server tries the transaction again when a key of its guards is written.',
      right: 'the admin right, and shows only keys that you may read',
      every: 1000,
    });
    this.#table = new Table({
      caption: 'Parked transactions',
      empty: 'No transaction waits.',
      keyOf: ({ id }) => id,
      columns: [
        { title: 'key', className: 'key', update: (cell, one) => putKey(cell, key(one)) },
        { title: 'guard', number: true, text: ({ guard }) => String(guard) },
        {
          title: 'has waited',
          number: true,
          text: ({ since_us: since }) => numbers.duration(Math.max(0, -left(since))),
          hint: ({ since_us: since }) => `since ${numbers.exactTime(since)}`,
        },
        {
          title: 'time left',
          number: true,
          text: ({ deadline_us: deadline }) => numbers.duration(Math.max(0, left(deadline))),
          hint: ({ deadline_us: deadline }) => `until ${numbers.exactTime(deadline)}`,
        },
        { title: 'client', text: ({ client }) => showText(client) },
        {
          title: 'session',
          text: ({ session, request }) => (session ? `${toHex(fromBase64(session))}, request ${request}` : 'none'),
        },
        { title: 'first batch', number: true, text: ({ admitted_batch: batch }) => numbers.whole(batch) },
        {
          title: 'cancel',
          hidden: true,
          make: (current) =>
            element('button', { type: 'button', className: 'small', onclick: () => this.#cancel(current()) }, 'Cancel'),
        },
      ],
    });
    this.body.append(this.#table.node);
  }

  async refresh() {
    const { answer } = await callForFewer('ListParked', {}, LIMIT);
    const { parked, more } = answer;
    this.setCount(`${numbers.whole(parked.length)}${more ? ' or more: the first are shown' : ''}`);
    this.#table.update(parked);
  }

  async #cancel(one) {
    const waits = one.guard_key ? `It waits for the key ${showKey(one.guard_key)}. ` : '';
    const agreed = await confirm({
      title: 'Cancel this transaction?',
      text: `${waits}Its client ${showText(one.client)} gets the outcome CANCELLED. Nothing of the transaction is written.`,
      action: 'Cancel the transaction',
      keep: 'Let it wait',
    });
    if (!agreed) return;
    await this.attempt(async () => {
      await api.call('Cancel', { parked_id: one.id });
      await this.refresh();
    });
  }

  reset() {
    this.#table.update([]);
  }
}
