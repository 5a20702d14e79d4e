// Role: the keys that are used most, one list for each use.
import { element, select, setText } from './dom.js';
import { callForFewer } from './fewer.js';
import { identityOfKey, putKey } from './shown_key.js';
import * as numbers from './numbers.js';
import { Meter } from './meter.js';
import { Panel } from './panel.js';
import { Table } from './table.js';

const USES = [
  ['KEY_USE_READ', 'Reads', 'guards and reads of the key'],
  ['KEY_USE_WRITE', 'Writes', 'PUT, ADD and DELETE of the key'],
  ['KEY_USE_FAILED_GUARD', 'Failed guards', 'the guard that decided a transaction was false'],
  ['KEY_USE_WAIT', 'Waits', 'a transaction waits for a guard on the key'],
];

const certain = ({ per_second: perSecond, error }) => Math.max(0, perSecond - error);

// Others would only look like hot keys (docs/activity.md).
const isCertain = (key, all) => certain(key) >= key.per_second / 2 || certain(key) > all / 256;

class UseList {
  #table;
  #total = element('span', { className: 'count' });
  #left = element('p', { className: 'note' });
  #most = 0;

  constructor(title, meaning) {
    this.#table = new Table({
      caption: `Hot keys: ${title}`,
      empty: 'No key stands out.',
      keyOf: ({ key }) => identityOfKey(key),
      columns: [
        { title: 'key', className: 'key', update: (cell, { key }) => putKey(cell, key) },
        { title: 'at least/s', number: true, text: (key) => numbers.rate(certain(key)) },
        { title: 'at most/s', number: true, text: (key) => numbers.rate(key.per_second) },
        {
          title: 'share',
          hidden: true,
          className: 'bar',
          make: () => new Meter(`share of ${title}`).node,
          update: (cell, key) => this.#bar(cell, key),
        },
      ],
    });
    this.node = element(
      'section',
      { className: 'panel' },
      element('header', {}, element('h3', {}, title), this.#total),
      element('p', { className: 'note' }, meaning),
      this.#table.node,
      this.#left,
    );
  }

  #bar(cell, key) {
    cell.firstChild.firstChild.style.width = `${this.#most > 0 ? (certain(key) / this.#most) * 100 : 0}%`;
  }

  update({ per_second: all = 0, keys = [] } = {}) {
    const shown = keys.filter((key) => isCertain(key, all)).sort((a, b) => certain(b) - certain(a));
    this.#most = certain(shown[0] ?? { per_second: 0, error: 0 });
    setText(this.#total, all > 0 ? `${numbers.rate(all)}/s of all keys` : '');
    this.#table.update(shown);
    const left = keys.length - shown.length;
    setText(this.#left, left > 0 ? `Left out, because most of their rate is uncertain: ${left}` : '');
  }
}

export class HotKeys extends Panel {
  #lists = new Map();
  #limit = select(
    [
      ['10', '10 keys'],
      ['20', '20 keys'],
      ['50', '50 keys'],
      ['256', '256 keys'],
    ],
    '10',
    { 'aria-label': 'Keys of each use' },
  );

  constructor(connection) {
    super(connection, {
      title: 'Hot keys',
      note: 'Rates of the last seconds: a use counts half after ten seconds. "At least" is certain.',
      right: 'the metrics right',
      className: 'bare',
    });
    this.#limit.addEventListener('change', () => this.attempt(() => this.refresh()));
    this.tools.append(this.#limit);
    for (const [use, title, meaning] of USES) this.#lists.set(use, new UseList(title, meaning));
    this.body.append(
      element(
        'div',
        { className: 'grid' },
        [...this.#lists.values()].map(({ node }) => node),
      ),
    );
  }

  async refresh() {
    const { answer } = await callForFewer('ListHotKeys', {}, Number(this.#limit.value));
    const sampled = Number(answer.sampled_one_in ?? 1);
    this.setCount(sampled > 1 ? `sample: one transaction of ${numbers.whole(sampled)}` : '');
    for (const [use, list] of this.#lists) list.update(answer.uses.find((one) => one.use === use));
  }
}
