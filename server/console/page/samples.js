// Role: looks at the metrics every second, and keeps what the charts need of the last ten minutes.
//
// Counters only grow while the server runs. So each point is the difference of two looks, divided by the time between.
import { difference, mean, percentile, sumOf } from './histogram.js';

const KEPT_SECONDS = 600;
const TRANSACTION_CALLS = new Set(['Execute', 'ExecuteBatch', 'SessionRequest', 'Get']);
const RARE_OUTCOMES = new Set(['OVERFLOW', 'TYPE_MISMATCH', 'CANCELLED']);

// One look at the metrics, by the names of the families.
export class Look {
  #families;

  constructor({ time_us: timeUs, families }) {
    this.seconds = Number(timeUs) / 1e6;
    this.#families = new Map(families.map((family) => [family.name, family.metrics]));
  }

  list(name) {
    return this.#families.get(name) ?? [];
  }

  value(name) {
    return this.list(name)[0]?.value ?? 0;
  }

  sum(name, accepts = () => true) {
    return this.list(name).reduce((sum, { labels, value }) => (accepts(labels) ? sum + value : sum), 0);
  }

  histogram(name, accepts = () => true) {
    return sumOf(this.list(name).filter(({ labels }) => accepts(labels)));
  }
}

const isTransactionCall = ({ call, outcome }) => TRANSACTION_CALLS.has(call) && outcome === 'ok';

function histogramsOf(look) {
  return {
    calls: look.histogram('kilokv_call_duration_seconds', isTransactionCall),
    batches: look.histogram('kilokv_batch_transactions'),
    queued: look.histogram('kilokv_queue_wait_seconds'),
    execution: look.histogram('kilokv_batch_execution_seconds'),
    append: look.histogram('kilokv_log_append_seconds'),
    sync: look.histogram('kilokv_log_sync_seconds'),
  };
}

function differences(now, before) {
  const old = histogramsOf(before);
  return Object.entries(histogramsOf(now)).map(([name, histogram]) => [name, difference(histogram, old[name])]);
}

// Where the time of a call goes, as means in seconds. What none of the measured stages has is `rest`.
function stagesOf({ calls, queued, execution, append, sync }) {
  const call = mean(calls);
  if (call === null) return { queued: null, execution: null, write: null, sync: null, rest: null };
  const stages = { queued: mean(queued) ?? 0, execution: mean(execution) ?? 0, sync: mean(sync) ?? 0 };
  stages.write = Math.max(0, (mean(append) ?? 0) - stages.sync);
  stages.rest = Math.max(0, call - stages.queued - stages.execution - stages.write - stages.sync);
  return stages;
}

// What happened between two looks. null in each place: the server was started anew in between.
export function pointOf(now, before) {
  const seconds = now.seconds - before.seconds;
  const restarted = now.value('process_start_time_seconds') !== before.value('process_start_time_seconds');
  if (restarted || !(seconds > 0)) return { time: now.seconds };
  const perSecond = (name, accepts) => (now.sum(name, accepts) - before.sum(name, accepts)) / seconds;
  const outcome = (wanted) => perSecond('kilokv_transactions_total', (labels) => wanted(labels.outcome));
  const parts = Object.fromEntries(differences(now, before));
  return {
    time: now.seconds,
    transactions: outcome(() => true),
    committed: outcome((name) => name === 'COMMITTED'),
    guardFailed: outcome((name) => name === 'GUARD_FAILED'),
    waitExpired: outcome((name) => name === 'WAIT_EXPIRED'),
    rare: outcome((name) => RARE_OUTCOMES.has(name)),
    refused: perSecond('kilokv_refusals_total'),
    p50: percentile(parts.calls, 0.5),
    p99: percentile(parts.calls, 0.99),
    p999: percentile(parts.calls, 0.999),
    batches: parts.batches.count / seconds,
    batchMean: mean(parts.batches),
    batchP99: percentile(parts.batches, 0.99),
    written: perSecond('kilokv_log_written_bytes_total'),
    cores: perSecond('process_cpu_seconds_total'),
    ...stagesOf(parts),
  };
}

export class Samples {
  points = [];
  now; // the last look

  add(answer) {
    const look = new Look(answer);
    if (this.now && look.seconds <= this.now.seconds) return;
    if (this.now) this.points.push(pointOf(look, this.now));
    this.now = look;
    const oldest = look.seconds - KEPT_SECONDS;
    while (this.points.length > 0 && this.points[0].time < oldest) this.points.shift();
  }

  get last() {
    return this.points.at(-1) ?? {};
  }

  // The server is away: the charts get a gap.
  interrupt() {
    const last = this.points.at(-1);
    if (last && last.transactions !== undefined) this.points.push({ time: last.time + 0.001 });
    this.now = undefined;
  }

  clear() {
    this.points = [];
    this.now = undefined;
  }
}
