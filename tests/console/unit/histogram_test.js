// Percentiles of histograms, and the points of the charts.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EMPTY, difference, mean, percentile, sumOf } from '../../../server/console/page/histogram.js';
import { Look, Samples, pointOf } from '../../../server/console/page/samples.js';
import { stack } from '../../../server/console/page/stack.js';

const histogram = (counts, sum = 0) => {
  let all = 0;
  const bounds = [1, 10, 100, null];
  const buckets = bounds.map((bound, index) => [bound, (all += counts[index])]);
  return { count: all, sum, buckets };
};

test('a percentile lies within its bucket', () => {
  const values = histogram([50, 49, 1, 0]);
  assert.equal(percentile(values, 0.5), 1);
  assert.equal(percentile(values, 0.25), 0.5);
  assert.ok(Math.abs(percentile(values, 0.99) - 10) < 1e-9);
  assert.ok(Math.abs(percentile(values, 1) - 100) < 1e-9);
});

test('the last bucket has no bound', () => {
  assert.equal(percentile(histogram([0, 0, 0, 5]), 0.5), 100);
});

test('buckets without values are passed over', () => {
  assert.equal(percentile(histogram([0, 0, 10, 0]), 0.5), 55);
});

test('a histogram without values has no percentile and no mean', () => {
  assert.equal(percentile(EMPTY, 0.5), null);
  assert.equal(mean(EMPTY), null);
  assert.equal(percentile(histogram([0, 0, 0, 0]), 0.5), null);
});

test('the difference is what was added', () => {
  const added = difference(histogram([5, 5, 1, 0], 30), histogram([2, 5, 0, 0], 20));
  assert.deepEqual(added, histogram([3, 0, 1, 0], 10));
  assert.equal(mean(added), 2.5);
});

test('after a restart all is new', () => {
  const now = histogram([1, 0, 0, 0], 1);
  assert.equal(difference(now, histogram([5, 5, 0, 0], 9)), now);
  assert.equal(difference(now, undefined), now);
});

test('the sum adds the buckets, and leaves its parts alone', () => {
  const one = histogram([1, 2, 3, 4], 5);
  assert.deepEqual(sumOf([one, one]), histogram([2, 4, 6, 8], 10));
  assert.deepEqual(one, histogram([1, 2, 3, 4], 5));
  assert.equal(sumOf([]), EMPTY);
});

// What the server answers: `count` transactions so far, half of them with a false guard.
function answer(seconds, count, start = 7) {
  const buckets = histogram([count, 0, 0, 0]).buckets;
  const gauge = (name, value) => ({ name, type: 'gauge', metrics: [{ labels: {}, value }] });
  const one = (name, labels, sum) => ({ name, type: 'histogram', metrics: [{ labels, count, sum, buckets }] });
  return {
    time_us: String(seconds * 1e6),
    families: [
      gauge('process_start_time_seconds', start),
      {
        name: 'kilokv_transactions_total',
        type: 'counter',
        metrics: ['COMMITTED', 'GUARD_FAILED'].map((outcome) => ({ labels: { outcome }, value: count / 2 })),
      },
      one('kilokv_call_duration_seconds', { call: 'Execute', outcome: 'ok' }, count * 0.5),
      one('kilokv_batch_transactions', {}, count * 3),
      one('kilokv_queue_wait_seconds', {}, count * 0.125),
      one('kilokv_log_append_seconds', {}, count * 0.25),
      one('kilokv_log_sync_seconds', {}, count * 0.125),
    ],
  };
}

test('a point is what happened between two looks', () => {
  const point = pointOf(new Look(answer(12, 300)), new Look(answer(10, 100)));
  assert.equal(point.committed, 50);
  assert.equal(point.guardFailed, 50);
  assert.equal(point.batches, 100);
  assert.equal(point.batchMean, 3);
  assert.equal(point.p50, 0.5);
  const { queued, write, sync, execution, rest } = point;
  assert.deepEqual(
    { queued, write, sync, execution, rest },
    { queued: 0.125, write: 0.125, sync: 0.125, execution: 0, rest: 0.125 },
  );
});

test('a restart is a gap', () => {
  assert.deepEqual(pointOf(new Look(answer(12, 5, 11)), new Look(answer(10, 100, 7))), { time: 12 });
});

test('ten minutes are kept', () => {
  const samples = new Samples();
  for (let second = 1; second <= 700; second += 1) samples.add(answer(second, second * 10));
  assert.ok(samples.points.length >= 599 && samples.points.length <= 601);
  assert.equal(samples.last.committed, 5);
  samples.interrupt();
  assert.equal(samples.now, undefined);
  assert.equal(samples.last.committed, undefined);
});

test('stacked columns', () => {
  const stacked = stack([
    [1, 2, null],
    [10, 20, null],
  ]);
  assert.deepEqual(stacked, [
    [1, 2, null],
    [11, 22, null],
  ]);
  assert.deepEqual(stack([]), []);
});
