// Role: transactions that took long, and the stage that took most of their time.
import { element, setText } from './dom.js';
import { callForFewer } from './fewer.js';
import { showText } from './keys.js';
import * as numbers from './numbers.js';
import { Panel } from './panel.js';
import { putKey } from './shown_key.js';
import { Table } from './table.js';

const LIMIT = 100;
const STAGES = [
  ['queued_us', 'queued'],
  ['waited_us', 'waited'],
  ['execution_us', 'execution'],
  ['sync_us', 'sync'],
  ['answer_us', 'answer'],
];

const word = (name, prefix) => name.replace(prefix, '').toLowerCase().replaceAll('_', ' ');

function stagesOf(transaction) {
  const passed = STAGES.filter(([field]) => Number(transaction[field]) > 0);
  return passed.map(([field, name]) => `${name} ${numbers.duration(transaction[field])}`).join(', ');
}

const columns = [
  {
    title: 'answered',
    text: ({ answered_us: us }) => numbers.time(us),
    hint: ({ answered_us: us }) => numbers.exactTime(us),
  },
  { title: 'took', number: true, text: ({ total_us: us }) => numbers.duration(us) },
  { title: 'reason', text: ({ reason }) => word(reason, 'SLOW_REASON_') },
  { title: 'key', className: 'key', update: (cell, { guard_key: key }) => putKey(cell, key) },
  { title: 'stages', className: 'wide', text: stagesOf },
  { title: 'outcome', text: ({ outcome }) => word(outcome, 'OUTCOME_') },
  { title: 'batch', number: true, text: ({ batch }) => numbers.whole(batch) },
  { title: 'client', text: ({ client }) => showText(client) },
  { title: 'session', text: ({ session, number }) => (session ? `${showText(session)}, request ${number}` : 'none') },
];

export class Slow extends Panel {
  #counts = element('ul', { className: 'chips', 'aria-label': 'Slow transactions since the start, by reason' });
  #table = new Table({
    caption: 'Slow transactions',
    empty: 'No transaction was slow.',
    keyOf: ({ answered_us: us, client, session, number, index, batch }) =>
      [us, client, session, number, index, batch].join(),
    columns,
  });

  constructor(connection) {
    super(connection, { title: 'Slow transactions', right: 'the metrics right' });
    this.body.append(this.#counts, this.#table.node);
  }

  async refresh() {
    const { answer } = await callForFewer('ListSlow', {}, LIMIT);
    const { transactions, counts, threshold_us: threshold } = answer;
    this.setCount(`${numbers.duration(threshold)} or longer, the latest first`);
    this.#count(counts);
    this.#table.update(transactions);
  }

  #count(counts) {
    while (this.#counts.children.length < counts.length) this.#counts.append(element('li'));
    counts.forEach(({ reason, transactions }, index) => {
      const chip = this.#counts.children[index];
      setText(chip, `${word(reason, 'SLOW_REASON_')} ${numbers.whole(transactions)}`);
      chip.classList.toggle('zero', transactions === '0');
    });
  }

  reset() {
    this.#table.update([]);
  }
}
