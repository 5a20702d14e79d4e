'use strict';
// Role: the page of a sweep: throughput, p99, processors and batches along each axis that has several values.

function sweepHeadline(runs, varied) {
  const best = runs.reduce((a, b) => (b.committed_per_s > a.committed_per_s ? b : a));
  const where = pointOf(best, varied);
  const workloads = valuesOf(runs, 'workload').join(', ');
  return (
    `${workloads}: the most of ${count(runs.length, 'run')} is ${whole(best.committed_per_s)} committed transactions a second, ` +
    `with a p99 of ${duration(best.latency_us.p99)}${where ? ` (${where})` : ''}`
  );
}

function choiceNotice(data, runs, varied) {
  if (data.choices.length === 0) return null;
  const others = varied.filter((field) => field !== 'batch_size');
  const lines = data.choices.map(({ chosen, best }) => {
    const [one, most] = [runs[chosen], runs[best]];
    const where = pointOf(one, others);
    const size = whole(one.config.batch_size);
    const rate = `${whole(one.committed_per_s)} committed/s`;
    const found =
      chosen === best
        ? `${rate}, the most of all sizes`
        : `${rate}, ${percent(one.committed_per_s / most.committed_per_s)} of those of ${whole(most.config.batch_size)}`;
    return `${where ? `${sentence(where).slice(0, -1)}: ` : ''}${size}, with ${found}, and a p99 of ${duration(one.latency_us.p99)}.`;
  });
  return notice(
    'plain whole',
    'The smallest batch size within 5% of the best',
    lines,
    'A sweep makes each run once, so chance may decide. kilokv-bench tune repeats the runs, and says how sure the choice is.',
  );
}

function alongAxis(data, runs, field, varied, isFirst) {
  const { values, series } = seriesAlong(runs, field, varied);
  const x = {
    scale: namedScale(values.map((value) => shown(field, value))),
    label: titleOf(field),
    values: values.map((_, index) => index),
  };
  const pick = (list, value) => {
    const numbers = list.map(value).filter(isNumber);
    return numbers.length > 0 ? median(numbers) : null;
  };
  const points = values.every(isNumber) || 'alone'; // a line leads from number to number
  const lines = (value, name) =>
    series.map(({ label, runs: lists }) => ({
      label: label || name,
      values: lists.map((list) => pick(list, value)),
      points,
    }));
  const plot = (title, scale, label, drawn, more = {}) =>
    figure({ title, x, y: { scale, label }, series: drawn, ...more });

  const throughput = lines((run) => run.committed_per_s, 'committed/s');
  const marked = field === 'batch_size' && data.choices.length > 0;
  const by = `by ${titleOf(field)}`;
  const figures = [
    plot(`Throughput ${by}`, linearScale(whole, short), 'committed/s', throughput, {
      note: marked ? 'A ring marks the smallest batch size within 5% of the best.' : null,
      marks: marked ? (drawn) => markChoices(drawn, data, runs, values, throughput) : null,
    }),
    plot(
      `Latency (p99) ${by}`,
      logScale(duration, shortDuration),
      'p99',
      lines((run) => log(run.latency_us.p99), 'p99'),
    ),
  ];
  if (!isFirst) return figures;

  const shares = [
    ['server', (run) => run.cpu?.server_machine_share, []],
    ['load tester', (run) => run.cpu?.client_machine_share, [7, 4]],
  ].flatMap(([who, value, dash]) =>
    lines(value, '').map((line, index) => ({
      ...line,
      label: line.label ? `${who}: ${line.label}` : who,
      colour: series.length > 1 ? index : dash.length > 0 ? 1 : 0,
      dash,
    })),
  );
  const known = shares.filter(({ values: list }) => list.some(isNumber));
  if (known.length > 0) {
    figures.push(plot(`Processors ${by}`, linearScale(percent, percent, 1), 'share of the machine', known));
  }
  const batches = lines(serverBatch, 'mean of a batch');
  if (batches.some(({ values: list }) => list.some(isNumber))) {
    figures.push(plot(`Batch size of the server ${by}`, linearScale(mean, short), 'transactions', batches));
  }
  return figures;
}

function markChoices(plot, data, runs, values, lines) {
  for (const { chosen } of data.choices) {
    const run = runs[chosen];
    drawRing(plot, values.indexOf(run.config.batch_size), run.committed_per_s);
  }
  if (lines.length > 1) return;
  const best = runs[data.choices[0].best];
  drawLevel(plot, 0.95 * best.committed_per_s, '95% of the best');
}

function sweepTable(runs, varied) {
  const header = [
    ...varied.map(nameOf),
    'committed/s',
    'not committed/s',
    'p50',
    'p99',
    'p99.9',
    'server batch',
    'server CPU',
    'load tester CPU',
    'check',
    'warnings',
  ];
  const rows = runs.map((run) => {
    const row = [
      ...varied.map((field) => shown(field, run.config[field])),
      whole(run.committed_per_s),
      whole(othersPerSecond(run)),
      duration(run.latency_us.p50),
      duration(run.latency_us.p99),
      duration(run.latency_us.p999),
      mean(serverBatch(run)),
      percent(run.cpu?.server_machine_share),
      percent(run.cpu?.client_machine_share),
      checkOf(run),
      run.warnings.map(({ code }) => code).join(' ') || NONE,
    ];
    row.className = run.failure === null ? '' : 'failed';
    return row;
  });
  return element('section', {}, element('h2', {}, 'The runs'), table(header, rows));
}

// Whether all runs were verified.
function sweepVerdict(runs) {
  const bad = runs.filter((run) => run.failure !== null || !run.verified.holds);
  const early = runs.filter((run) => run.interrupted_by !== null);
  const lines = bad.map((run) => sentence(run.failure ?? 'the check of the state did not run'));
  if (early.length > 0) lines.push(`${count(early.length, 'run')} ended early.`);
  const title = bad.length > 0 ? `${whole(bad.length)} of ${count(runs.length, 'run')} failed` : 'What went wrong';
  if (lines.length > 0) return notice('bad', title, lines);
  const statements = new Set(runs.map((run) => run.verified.invariant));
  return notice(
    'good',
    'Verified',
    `After each of the ${count(runs.length, 'run')} the invariant held: ${[...statements].join('; ')}.`,
  );
}

function sweepPage(data) {
  const runs = data.report;
  const varied = variedAxes(runs);
  const along = varied.filter(
    (field) => typeof runs[0].config[field] !== 'string' && runs.some((run) => run.config[field] !== null),
  );
  const shownAxes = along.length > 0 ? along : varied.slice(0, 1);
  return [
    element(
      'header',
      {},
      element('p', { className: 'kind' }, 'KiloKV load test: a sweep'),
      element('h1', {}, sweepHeadline(runs, varied)),
    ),
    element('div', { className: 'notices' }, sweepVerdict(runs), warningNotice(runs), choiceNotice(data, runs, varied)),
    element(
      'div',
      { className: 'figures' },
      shownAxes.flatMap((field, index) => alongAxis(data, runs, field, varied, index === 0)),
    ),
    sweepTable(runs, varied),
    measuredList(data, runs),
  ];
}
