'use strict';
// Role: what the pages of a run and of a sweep share: texts, notices, tiles, and the list of what was measured.

// The fields of a configuration: name, the text of a value, and the name in a title if it is another one.
const FIELDS = {
  workload: ['workload', String],
  keys: ['keys', whole],
  distribution: ['distribution', String],
  encoding: ['encoding', String],
  batch_size: ['batch size', whole],
  connections: ['connections', whole],
  in_flight: ['in flight', whole, 'requests in flight'],
  rate_per_s: ['rate/s', (rate) => (rate === null ? 'closed loop' : whole(rate)), 'rate'],
};

const nameOf = (field) => FIELDS[field][0];
const titleOf = (field) => FIELDS[field][2] ?? nameOf(field);
const shown = (field, value) => FIELDS[field][1](value);
const withName = (field, value) => (value === null ? shown(field, value) : `${nameOf(field)} ${shown(field, value)}`);
// Such as "batch size 64, connections 1".
const pointOf = (run, fields) => fields.map((field) => withName(field, run.config[field])).join(', ');

const answered = (run) =>
  ['committed', 'guard_failed', 'wait_expired', 'overflow', 'type_mismatch', 'cancelled'].reduce(
    (sum, outcome) => sum + run[outcome],
    0,
  );
const perSecond = (transactions, run) => (run.measured_seconds > 0 ? transactions / run.measured_seconds : 0);
const othersPerSecond = (run) => perSecond(answered(run) - run.committed, run);
const serverBatch = (run) => run.server_batches?.mean_size ?? null;

function loop(config) {
  return config.rate_per_s === null
    ? 'a closed loop'
    : `an open loop at ${whole(config.rate_per_s)} transactions a second`;
}

function notice(kind, title, ...lines) {
  return element(
    'section',
    { className: `notice ${kind}` },
    element('h2', {}, title),
    lines.flat().map((line) => element('p', {}, line)),
  );
}

// Whether a run was verified: [kind of notice, title, text].
function verdict(run) {
  const { invariant, holds, violation, records, boundary } = run.verified;
  if (holds === null) return ['bad', 'Not verified', 'The check of the state did not run.'];
  if (!holds) return ['bad', 'The check failed', `The invariant is: ${invariant}. What was found: ${violation}.`];
  const where = `${count(records, 'record')} at boundary ${whole(boundary)}`;
  return ['good', 'Verified', `After the run the invariant held: ${invariant} (${where}).`];
}

function checkOf(run) {
  if (run.verified.holds === null) return 'did not run';
  return `${run.failure === null ? 'holds' : 'FAILED'}${run.interrupted_by === null ? '' : ', ended early'}`;
}

// A text is a whole sentence in the page.
function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}

// What limited the runs, as far as kilokv-bench knows: each warning once.
function warningNotice(runs) {
  const warnings = new Map();
  for (const run of runs) {
    for (const { code, text } of run.warnings) {
      if (!warnings.has(code)) warnings.set(code, { text, runs: 0 });
      warnings.get(code).runs += 1;
    }
  }
  if (warnings.size === 0) {
    const text =
      'Neither the load tester, nor the number in flight, nor other work of the machine seems to be the limit.';
    return notice('plain', 'No warnings', text);
  }
  const lines = [...warnings.values()].map(({ text, runs: having }) =>
    runs.length === 1
      ? sentence(text)
      : sentence(`${text} (${having} of ${runs.length} runs; the numbers are of the first one)`),
  );
  return notice('warn', 'What may have limited these numbers', lines);
}

function tiles(list) {
  return element(
    'dl',
    { className: 'tiles' },
    list.map(([name, value, note]) =>
      element('div', {}, element('dt', {}, name), element('dd', {}, value, note ? element('small', {}, note) : null)),
    ),
  );
}

// What was measured, and on what: the command, the configuration that all runs share, the machine and the server.
function measuredList(data, runs) {
  const [first] = runs;
  const same = (pick) => runs.every((run) => JSON.stringify(pick(run)) === JSON.stringify(pick(first)));
  const rows = [
    ['command', element('code', {}, data.command)],
    ['began', data.made_at],
  ];
  const add = (name, pick, show = String) => {
    if (pick(first) !== undefined && pick(first) !== null && same(pick)) rows.push([name, show(pick(first))]);
  };
  for (const field of Object.keys(FIELDS)) {
    const isShared = same((run) => run.config[field]);
    if (isShared) rows.push([nameOf(field), shown(field, first.config[field])]);
  }
  add('share of pairs', (run) => run.config.wait_share, percent);
  add('order of pairs', (run) => run.config.pair_order);
  add('share that only reads', (run) => run.config.read_only_share, percent);
  add('value size in bytes', (run) => run.config.value_size_bytes, whole);
  rows.push(['seed', data.details[0].seed]);
  add('duration', (run) => run.config.duration_us, duration);
  add('warm-up', (run) => run.config.warmup_us, duration);
  add('processor of the load tester', (run) => run.hardware.cpu);
  add('cores of the load tester', (run) => run.hardware.cores);
  add('version of the server', (run) => run.server.version);
  add('strategy of the server', (run) => run.server.strategy);
  add('device of the server', (run) => run.server.device);
  add('commit of kilokv-bench', (run) => run.commit);
  return element(
    'section',
    {},
    element('h2', {}, 'What was measured'),
    element(
      'dl',
      { className: 'facts' },
      rows.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))),
    ),
  );
}
