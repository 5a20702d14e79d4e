// The parts of a session that need no server: the queue, the window, the acknowledgements, and the delays.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Acknowledgements } from '../../src/acknowledgements.js';
import { Backoff } from '../../src/backoff.js';
import { Timer, now, sleepUntil } from '../../src/clock.js';
import { SendQueue } from '../../src/send_queue.js';
import { SendWindow } from '../../src/send_window.js';

test('the queue sends the lowest number, and lets those that wait pass a full window', () => {
  const queue = new SendQueue();
  for (const number of [5n, 3n, 9n, 1n, 5n]) queue.insert(number, false);
  queue.insert(4n, true);
  assert.equal(queue.next(true), 1n);
  assert.equal(queue.next(false), 4n);
  queue.erase(1n);
  queue.erase(3n);
  queue.erase(7n);
  assert.equal(queue.next(true), 4n);
  queue.erase(4n);
  assert.equal(queue.next(false), undefined);
  assert.equal(queue.next(true), 5n);
  queue.erase(5n);
  queue.erase(9n);
  assert.ok(queue.empty);
});

test('a refusal closes the window to what is in flight, and answers open it', () => {
  const window = new SendWindow();
  for (let i = 0; i < 10; ++i) window.take();
  assert.ok(window.hasRoom(0));
  assert.equal(window.leaveRefused(0, 100), false); // nine are in flight
  assert.ok(!window.hasRoom(0));
  window.leaveAnswered(1);
  assert.ok(window.hasRoom(1));
  window.take();
  window.leaveAnswered(2000); // no refusal for more than a second
  window.take();
  assert.ok(window.hasRoom(2000));
});

test('a session with nothing in flight rests as long as the server asks', () => {
  const window = new SendWindow();
  window.take();
  assert.equal(window.leaveRefused(0, 100), true);
  assert.ok(!window.hasRoom(99));
  assert.ok(window.hasRoom(100));
});

test('numbers are acknowledged in their order', () => {
  const numbers = new Acknowledgements(0n, 0n);
  const [one, two, three] = [numbers.begin(), numbers.begin(), numbers.begin()];
  numbers.end(two, false);
  numbers.end(three, false);
  numbers.settle();
  assert.equal(numbers.through, 0n);
  numbers.end(one, false);
  assert.equal(numbers.through, 0n);
  numbers.settle();
  assert.equal(numbers.through, 3n);
  assert.ok(!numbers.canResume(2n));
  assert.ok(!numbers.canResume(4n)); // it is new
});

test('a number that was given up can be resumed, for 1,024 numbers', () => {
  const numbers = new Acknowledgements(0n, 0n);
  const given = numbers.begin();
  numbers.end(given, true);
  assert.ok(numbers.canResume(given));
  for (let i = 0; i < 1023; ++i) numbers.end(numbers.begin(), false);
  numbers.settle();
  assert.equal(numbers.through, 0n);
  assert.ok(numbers.canResume(given));
  numbers.resume(given);
  assert.ok(!numbers.canResume(given)); // it is in flight
  numbers.end(given, true);
  numbers.end(numbers.begin(), false);
  numbers.settle();
  assert.equal(numbers.through, 1025n);
});

test('numbers of an earlier holder stay until the program lets go of them', () => {
  const numbers = new Acknowledgements(2n, 7n);
  assert.equal(numbers.begin(), 8n);
  numbers.end(8n, false);
  numbers.settle();
  assert.equal(numbers.through, 2n);
  assert.ok(numbers.canResume(5n));
  numbers.resume(5n);
  numbers.letGoOfInherited(7n);
  assert.equal(numbers.through, 4n); // 5 is in flight
  numbers.end(5n, false);
  numbers.settle();
  assert.equal(numbers.through, 5n);
  numbers.letGoOfInherited(100n);
  numbers.settle();
  assert.equal(numbers.through, 8n);
});

test('delays double, with a bound, and are as long as the server asks', () => {
  const backoff = new Backoff({ backoffMinMs: 10, backoffMaxMs: 100 });
  for (const full of [10, 20, 40, 80, 100, 100]) {
    const delay = backoff.next();
    assert.ok(delay >= full / 2 && delay <= full, `${delay} of ${full}`);
  }
  assert.ok(backoff.next(5_000_000n) >= 5000);
  backoff.reset();
  assert.ok(backoff.next() <= 10);
});

test('a timer is never early, also after the program was busy', async () => {
  const called = [];
  const begin = now();
  while (now() - begin < 60); // the loop of Node does not see this time
  const time = now() + 30;
  await new Promise((resolve) => new Timer(time, resolve));
  assert.ok(now() >= time);
  new Timer(now() + 5, () => called.push('cancelled')).cancel();
  const far = new Timer(now() + 2 ** 40, () => called.push('far'));
  await sleepUntil(now() + 30);
  far.cancel();
  assert.deepEqual(called, []);
});

test('a sleep ends with its signal', async () => {
  const begin = now();
  await sleepUntil(begin + 60_000, AbortSignal.timeout(20));
  await sleepUntil(begin + 60_000, AbortSignal.abort());
  assert.ok(now() - begin < 30_000);
});
