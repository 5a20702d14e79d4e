// Role: the view of the whole server: its load, its speed, where time goes, its memory and its disk.
import * as api from './api.js';
import { Chart } from './charts.js';
import { isDown } from './connection.js';
import { element, setText } from './dom.js';
import { showText } from './keys.js';
import { Facts } from './meter.js';
import * as numbers from './numbers.js';
import { Panel } from './panel.js';
import { Samples } from './samples.js';

const EVERY_MS = 1000;

const THROUGHPUT = {
  title: 'Transactions per second',
  note: 'Transactions that ended, by their outcome, and requests that the server refused.',
  format: numbers.rate,
  axis: numbers.short,
  stacked: true,
  series: [
    { name: 'committed', label: 'committed', color: 1 },
    { name: 'guardFailed', label: 'guard failed', color: 2 },
    { name: 'waitExpired', label: 'wait expired', color: 3 },
    { name: 'rare', label: 'overflow, type mismatch', color: 4 },
    { name: 'refused', label: 'refused', color: 5 },
  ],
};
const LATENCY = {
  title: 'Latency',
  note: 'From the start of a call that runs transactions until its answer. Time spent waiting for a guard counts.',
  format: numbers.seconds,
  log: true,
  series: [
    { name: 'p50', label: 'p50', color: 1 },
    { name: 'p99', label: 'p99', color: 2 },
    { name: 'p999', label: 'p99.9', color: 5 },
  ],
};
const BATCHES = {
  title: 'Batch sizes',
  note: 'Transactions in a batch. All transactions of a batch share one execution and one sync.',
  format: numbers.rate,
  axis: numbers.short,
  series: [
    { name: 'batchMean', label: 'mean size', color: 1 },
    { name: 'batchP99', label: 'p99 size', color: 2 },
  ],
};
const STAGES = {
  title: 'Where the time goes',
  note: 'Means of each stage. "Rest" is what remains of a call: other batches, waits for a guard, and the answer.',
  format: numbers.seconds,
  stacked: true,
  series: [
    { name: 'queued', label: 'queued', color: 1 },
    { name: 'execution', label: 'execution', color: 2 },
    { name: 'write', label: 'log write', color: 3 },
    { name: 'sync', label: 'sync', color: 4 },
    { name: 'rest', label: 'rest', color: 6 },
  ],
};

const TILES = [
  { name: 'transactions/s', text: ({ last }) => numbers.rate(last.transactions) },
  { name: 'p99 latency', text: ({ last }) => numbers.seconds(last.p99) },
  { name: 'batches/s', text: ({ last }) => numbers.rate(last.batches) },
  { name: 'batch size', text: ({ last }) => numbers.rate(last.batchMean) },
  { name: 'queued', text: ({ now }) => numbers.whole(now.value('kilokv_queue_transactions')) },
  { name: 'parked', text: ({ now }) => numbers.whole(now.value('kilokv_parked_transactions')) },
  { name: 'records', text: ({ now }) => numbers.whole(now.value('kilokv_records')) },
  { name: 'sessions', text: ({ now }) => numbers.whole(now.value('kilokv_sessions')) },
  { name: 'connections', text: ({ now }) => numbers.whole(now.value('kilokv_connections')) },
];

const share = (part, all) => (all > 0 ? part / all : undefined);

function strategyFacts({ now, status }) {
  const device = status.device ?? {};
  const choice = status.details?.find(({ name }) => name === 'strategy_choice')?.text;
  const ran = now.list('kilokv_batches_total').filter(({ value }) => value > 0);
  const all = ran.reduce((sum, { value }) => sum + value, 0);
  const model = device.device_model ? ` (${showText(device.device_model)})` : '';
  return [
    { name: 'strategy', text: showText(status.server?.strategy ?? '–') },
    { name: 'runs on', text: `${showText(device.device || '–')}${model}` },
    device.device_reason && { name: 'why there', text: showText(device.device_reason) },
    choice && { name: 'last choice', text: showText(choice) },
    ...ran
      .sort((a, b) => b.value - a.value)
      .map(({ labels, value }) => ({
        name: `batches: ${labels.strategy}${labels.ran === labels.strategy ? '' : `, ${labels.ran}`}`,
        text: `${numbers.whole(value)} (${numbers.percent(value / all)})`,
        share: value / all,
        warns: false,
      })),
  ].filter(Boolean);
}

function memoryFacts({ now, status }) {
  const memory = status.memory ?? {};
  const limit = Number(memory.memory_limit_bytes ?? 0);
  const sum = Number(memory.memory_sum_bytes ?? 0);
  const owners = (memory.owners ?? [])
    .map(({ name, bytes, bound_bytes: bound }) => ({ name, bytes: Number(bytes), bound: Number(bound) }))
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
  const measured = ({ name }) => name !== 'grpc' && name !== 'process';
  return [
    {
      name: 'all parts together',
      text: `${numbers.bytes(sum)} of ${limit > 0 ? numbers.bytes(limit) : 'no limit'}`,
      share: share(sum, limit),
    },
    {
      name: 'data',
      text: `${numbers.bytes(now.value('kilokv_data_bytes'))} of ${numbers.bytes(now.value('kilokv_data_limit_bytes'))}`,
      share: share(now.value('kilokv_data_bytes'), now.value('kilokv_data_limit_bytes')),
    },
    { name: 'resident memory', text: numbers.bytes(memory.memory_rss_bytes ?? 0) },
    ...owners.map((owner) => ({
      name: `part: ${showText(owner.name)}`,
      text:
        owner.bound > 0 ? `${numbers.bytes(owner.bytes)} of ${numbers.bytes(owner.bound)}` : numbers.bytes(owner.bytes),
      share: share(owner.bytes, owner.bound || limit),
      warns: measured(owner) && owner.bound > 0,
    })),
  ];
}

function checkpointText(now) {
  const batch = now.value('kilokv_checkpoint_batch');
  if (batch === 0) return 'none yet';
  return `batch ${numbers.whole(batch)}, ${numbers.seconds(now.value('kilokv_checkpoint_age_seconds'))} ago`;
}

function diskFacts({ now, last, status }) {
  const free = now.value('kilokv_disk_free_bytes');
  const size = now.value('kilokv_disk_bytes');
  const since = now.value('kilokv_log_since_checkpoint_bytes');
  const limit = now.value('kilokv_checkpoint_log_limit_bytes');
  const position = status.position ?? {};
  return [
    {
      name: 'last batch',
      text: `${numbers.whole(position.executed_batch ?? 0)} executed, ${numbers.whole(position.durable_batch ?? 0)} durable`,
    },
    { name: 'log on the disk', text: numbers.bytes(now.value('kilokv_log_bytes')) },
    {
      name: 'written to the log',
      text: last.written === undefined ? '–' : `${numbers.bytes(Math.round(last.written))}/s`,
    },
    { name: 'log goes back', text: numbers.seconds(now.value('kilokv_log_kept_seconds')) },
    {
      name: 'log since the checkpoint',
      text: `${numbers.bytes(since)} of ${numbers.bytes(limit)}`,
      share: share(since, limit),
      warns: false,
    },
    { name: 'last checkpoint', text: checkpointText(now) },
    { name: 'disk', text: `${numbers.bytes(free)} free of ${numbers.bytes(size)}`, share: share(size - free, size) },
  ];
}

function tableFacts({ now, last, status }) {
  const table = status.table ?? {};
  const parkedLimit = now.value('kilokv_parked_transactions_limit');
  const queueLimit = now.value('kilokv_queue_transactions_limit');
  const parked = now.value('kilokv_parked_transactions');
  const queued = now.value('kilokv_queue_transactions');
  return [
    { name: 'records', text: numbers.whole(now.value('kilokv_records')) },
    { name: 'deleted keys kept', text: numbers.whole(now.value('kilokv_tombstones')) },
    { name: 'keys that expire', text: numbers.whole(now.value('kilokv_expiring_records')) },
    { name: 'slots of the table', text: `${numbers.whole(table.table_slots ?? 0)}` },
    {
      name: 'queued',
      text: `${numbers.whole(queued)} of ${numbers.whole(queueLimit)}`,
      share: share(queued, queueLimit),
    },
    {
      name: 'parked',
      text: `${numbers.whole(parked)} of ${numbers.whole(parkedLimit)}`,
      share: share(parked, parkedLimit),
    },
    { name: 'processor', text: last.cores === undefined ? '–' : `${numbers.rate(last.cores)} cores` },
    { name: 'up for', text: numbers.seconds(status.server?.uptime_seconds) },
  ];
}

class FactsPanel {
  #facts = new Facts();
  #factsOf;

  constructor(title, factsOf) {
    this.#factsOf = factsOf;
    this.node = element(
      'section',
      { className: 'panel' },
      element('header', {}, element('h2', {}, title)),
      this.#facts.node,
    );
  }

  update(seen) {
    this.#facts.update(this.#factsOf(seen));
  }
}

// It goes on in the background, so that the charts have no gap when the person looks at another view.
export class Overview extends Panel {
  samples = new Samples();
  status = {}; // the last answer to Status
  statusChanged = () => {}; // is called after each look
  #tiles;
  #facts;

  constructor(connection) {
    super(connection, { title: 'Overview', right: 'the metrics right', every: EVERY_MS, className: 'bare untitled' });
    this.#tiles = TILES.map(({ name, text }) => ({ text, value: element('dd', {}, '–'), name }));
    const tile = ({ name, value }) => element('div', {}, element('dt', {}, name), value);
    this.charts = [THROUGHPUT, LATENCY, BATCHES, STAGES].map((options) => new Chart(options));
    this.#facts = [
      new FactsPanel('Strategy', strategyFacts),
      new FactsPanel('Log and disk', diskFacts),
      new FactsPanel('Table and queue', tableFacts),
      new FactsPanel('Memory', memoryFacts),
    ];
    this.body.append(
      element('dl', { className: 'tiles' }, this.#tiles.map(tile)),
      element(
        'div',
        { className: 'grid' },
        this.charts.map(({ node }) => node),
      ),
      element(
        'div',
        { className: 'columns' },
        this.#facts.map(({ node }) => node),
      ),
    );
    connection.addEventListener('change', () => {
      if (isDown(connection.state)) this.samples.interrupt();
    });
  }

  show() {
    super.show();
    this.draw();
  }

  hide() {}

  async refresh() {
    const [metrics, status] = await Promise.all([api.metrics(), api.call('Status')]);
    this.samples.add(metrics);
    this.status = status;
    this.draw();
    this.statusChanged();
  }

  reset() {
    this.samples.clear();
    this.status = {};
  }

  // Draws only what can be seen.
  draw() {
    if (!this.samples.now || !this.node.isConnected || this.node.offsetParent === null) return;
    const seen = { now: this.samples.now, last: this.samples.last, status: this.status };
    for (const { text, value } of this.#tiles) setText(value, text(seen));
    for (const chart of this.charts) chart.update(this.samples.points);
    for (const facts of this.#facts) facts.update(seen);
  }

  redraw() {
    for (const chart of this.charts) chart.redraw();
  }
}
