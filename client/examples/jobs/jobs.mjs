#!/usr/bin/env node
// A queue of jobs. A worker takes a job for a time, and finishes it within this time. Otherwise another worker takes
// it. The work may be done more than once. Its result counts once. docs/recipes.md explains it.
//
//   jobs/QUEUE/work/ID     what to do: an integer, which the job adds to the sum
//   jobs/QUEUE/lease/ID    from when on a worker may take the job, in microseconds; 0: at once
//   jobs/QUEUE/done/ID     the token under which the job was finished
//   jobs/QUEUE/submitted   how many jobs were submitted
//   jobs/QUEUE/sum         the result of all jobs
import { batchTime, keyNamed, Transaction, WAIT } from 'kilokv';

import { endOf, integer, main, milliseconds, wrongCommand } from '../example.mjs';

const USAGE = `\
jobs [--endpoint HOST:PORT] VERB ...
  submit QUEUE ID NUMBER           adds a job; each job needs an ID of its own
  take QUEUE LEASE_MS WAIT_MS      takes a job for LEASE_MS; waits up to WAIT_MS for one; prints ID, NUMBER and TOKEN
  finish QUEUE ID NUMBER TOKEN     says that the job is done: NUMBER is added to the sum
`;
const LOOKED = 100; // leases that a worker looks at; more than there are workers

class Queue {
  #session;
  #prefix;

  constructor(session, name) {
    this.#session = session;
    this.#prefix = `jobs/${name}/`;
  }

  #work = (id) => `${this.#prefix}work/${id}`;
  #lease = (id) => `${this.#prefix}lease/${id}`;
  #done = (id) => `${this.#prefix}done/${id}`;
  #submitted = () => `${this.#prefix}submitted`;

  async submit(id, number) {
    await this.#session.execute(
      new Transaction()
        .guardAbsent(this.#work(id))
        .guardAbsent(this.#done(id))
        .put(this.#work(id), number)
        .put(this.#lease(id), 0)
        .add(this.#submitted(), 1), // wakes workers that wait
    );
    return `submitted ${id}`; // by this run, or by an earlier one
  }

  async take(leaseMs, waitMs) {
    let untilUs = null;
    for (;;) {
      const { nowUs, submitted, leases } = await this.#look();
      const open = leases.filter(({ endUs }) => endUs <= nowUs).map(({ id }) => id);
      for (const id of shuffled(open)) {
        const taken = await this.#takeOne(id, leaseMs);
        if (taken !== null) return taken;
      }
      if (open.length > 0) continue;
      untilUs ??= nowUs + BigInt(waitMs) * 1000n;
      if (nowUs >= untilUs) return 'nothing';
      const next = leases.reduce((first, lease) => (first?.endUs <= lease.endUs ? first : lease), undefined);
      await this.#wait(submitted, next, Number(untilUs - nowUs) / 1000);
    }
  }

  // What a worker sees of the queue at one moment.
  async #look() {
    const leases = this.#lease('');
    const result = await this.#session.execute(
      new Transaction().get(this.#submitted()).rangeGet(leases, endOf(leases), LOOKED),
    );
    const [submitted, ...found] = result.reads;
    return {
      nowUs: result.batchTimeUs,
      submitted: submitted.value ?? 0n,
      leases: found.map(({ key, value }) => ({ id: key.toString().slice(leases.length), endUs: value })),
    };
  }

  // The token is the version of the transaction that takes the job. As long as nobody else takes the job, the lease has
  // this version. Returns null if another worker was faster.
  async #takeOne(id, leaseMs) {
    const leaseUs = BigInt(leaseMs) * 1000n;
    const result = await this.#session.execute(
      new Transaction()
        .guardExists(this.#work(id))
        .guardTimeAfter(keyNamed(this.#lease(id))) // nobody has it now
        .put(this.#lease(id), batchTime)
        .add(this.#lease(id), leaseUs)
        .get(this.#work(id)),
    );
    if (!result.committed) return null;
    return `took ${id} ${result.reads[0].value} ${result.version} until ${result.batchTimeUs + leaseUs}`;
  }

  // Waits until a new job is submitted, or until the lease of the job `next` ends or its job is done.
  async #wait(submitted, next, waitMs) {
    const waiting = new Transaction({ waitTimeoutMs: waitMs });
    if (next !== undefined) waiting.guardTimeBefore(keyNamed(this.#lease(next.id))); // false: it ends the wait
    await this.#session.execute(waiting.guard(this.#submitted(), '>', submitted, WAIT));
  }

  async finish(id, number, token) {
    const result = await this.#session.execute(
      new Transaction()
        .guardVersion(this.#lease(id), token) // nobody has taken it since
        .add(`${this.#prefix}sum`, number) // the result, in the same transaction
        .put(this.#done(id), token)
        .delete(this.#lease(id))
        .delete(this.#work(id))
        .otherwise()
        .get(this.#done(id)),
    );
    if (!result.committed && result.outcome !== 'GUARD_FAILED') return result.outcome;
    // If the guard was false, an earlier run has finished it, or another worker has the job, or had it.
    const isFinished = result.committed || result.reads[0].value === token;
    return `${isFinished ? 'finished' : 'lost'} ${id} at ${result.batchTimeUs}`;
  }
}

// In random order, so that few workers want the same job.
function shuffled(list) {
  return list
    .map((value) => ({ value, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ value }) => value);
}

async function run(session, [verb, name, ...words]) {
  const queue = new Queue(session, name);
  if (verb === 'submit' && words.length === 2) return queue.submit(words[0], integer(words[1]));
  if (verb === 'take' && words.length === 2) return queue.take(milliseconds(words[0], 1), milliseconds(words[1], 0));
  if (verb === 'finish' && words.length === 3) return queue.finish(words[0], integer(words[1]), integer(words[2], 1n));
  throw wrongCommand();
}

await main(USAGE, run);
