// Role: the result of a transaction: its outcome, its place in the order, and what it has read.
import { reasonOf } from './api.js';
import { element } from './dom.js';
import { fromBase64, showKey, showValueBytes } from './keys.js';
import * as numbers from './numbers.js';
import { putKey } from './shown_key.js';
import { shownValue, typeOfValue } from './shown_value.js';
import { Table } from './table.js';

const OUTCOMES = {
  OUTCOME_COMMITTED: ['committed', 'good'],
  OUTCOME_GUARD_FAILED: ['guard failed', 'warn'],
  OUTCOME_WAIT_EXPIRED: ['wait expired', 'warn'],
  OUTCOME_OVERFLOW: ['overflow', 'bad'],
  OUTCOME_TYPE_MISMATCH: ['type mismatch', 'bad'],
  OUTCOME_CANCELLED: ['cancelled', 'bad'],
};
const LISTS = {
  FAILED_IN_GUARDS: 'guard',
  FAILED_IN_THEN: 'operation of "then"',
  FAILED_IN_ELSE: 'operation of "else"',
};

function valueText(value) {
  if (value?.integer !== undefined) return `the value ${value.integer}`;
  if (value?.bytes === undefined) return 'no value';
  const { text } = showValueBytes(fromBase64(value.bytes));
  return `the bytes ${text.length > 80 ? `${text.slice(0, 80)}…` : text}`;
}

const hasKey = (read) => Boolean(read?.key);

// What the server saw where the transaction failed.
export function explainFailure({ outcome, failed_in: failedIn, failed_index: index, guard_value: read }) {
  const place = `${LISTS[failedIn]} ${index}`;
  if (outcome === 'OUTCOME_OVERFLOW') return `The ${place}: the result is beyond 64 bits.`;
  if (outcome === 'OUTCOME_TYPE_MISMATCH')
    return `The ${place}: an integer was needed, and the value is bytes, or the reverse.`;
  if (!hasKey(read)) return `The ${place} was false.`;
  const version = read.version === '0' ? 'never written' : `version ${numbers.whole(read.version)}`;
  return `The ${place} was false: ${showKey(read.key)} had ${valueText(read.value)} (${version}).`;
}

// What is known about a transaction whose call has failed.
export function fateOf({ kind, details }) {
  if (reasonOf(details) === 'ANSWER_TOO_LARGE')
    return 'The transaction has run, but what it read is too large for this page. Read less at a time.';
  if (details.not_run === true) return 'The transaction has not run.';
  const unknown = 'The transaction may have run, or not.';
  return kind === 'unreachable' ? `No answer came. ${unknown}` : unknown;
}

const readColumns = [
  { title: 'operation', number: true, text: ({ operation }) => String(operation) },
  { title: 'key', className: 'key', update: (cell, { key }) => putKey(cell, { key }) },
  {
    title: 'value',
    className: 'wide',
    update: (cell, read) => cell.replaceChildren(shownValue(read.value, showKey(read.key))),
  },
  { title: 'type', text: ({ value }) => typeOfValue(value) },
  {
    title: 'version',
    number: true,
    text: ({ own_write: own, version }) => (own ? 'own write' : numbers.whole(version)),
  },
];

export class TransactionResult {
  constructor(transaction, result, took) {
    const [word, mood] = OUTCOMES[result.outcome] ?? [result.outcome, 'bad'];
    const failed = result.failed_in && result.failed_in !== 'FAILED_IN_NONE';
    this.node = element(
      'section',
      { 'aria-label': 'Result' },
      element('h3', {}, 'Result ', element('span', { className: `outcome ${mood}` }, word)),
      failed && element('p', { className: 'mark' }, explainFailure(result)),
      this.#facts(result, took),
      this.#reads(result.reads ?? []),
      result.reads_dropped && element('p', { className: 'note' }, 'The answer had no room for all reads.'),
    );
  }

  #facts({ version, batch, rank, admitted_batch: admitted, batch_time_us: time }, took) {
    const waited = admitted !== batch ? `, first tried in batch ${numbers.whole(admitted)}` : '';
    const facts = [
      ['version', version === '0' ? 'none: it wrote nothing' : numbers.whole(version)],
      ['batch', `${numbers.whole(batch)}, rank ${rank}${waited}`],
      ['time of the batch', numbers.exactTime(time)],
      ['took', `${took} as this page saw it`],
    ];
    return element(
      'dl',
      { className: 'facts' },
      facts.map(([name, text]) => element('div', {}, element('dt', {}, name), element('dd', {}, text))),
    );
  }

  #reads(reads) {
    if (reads.length === 0) return undefined;
    const table = new Table({
      caption: 'Reads',
      empty: '',
      keyOf: (read) => `${read.operation} ${read.key}`,
      columns: readColumns,
    });
    table.update(reads);
    return table.node;
  }
}
