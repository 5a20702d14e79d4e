'use strict';
// Role: the page of one run: latency, and what happened over time.

const NINES = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
const SAMPLES_MIN = 3; // fewer make no plot

function runHeadline(run) {
  const { config, latency_us: latency } = run;
  if (answered(run) === 0) return `${config.workload}: nothing was measured`;
  return (
    `${config.workload}: ${whole(run.committed_per_s)} committed transactions a second, ` +
    `with a p50 of ${duration(latency.p50)} and a p99 of ${duration(latency.p99)}`
  );
}

function runSummary(run) {
  const { config } = run;
  const sent =
    config.encoding === 'unary'
      ? 'The load tester sent one transaction in each call'
      : `The load tester sent ${count(config.batch_size, 'transaction')} in each request`;
  const batch = serverBatch(run);
  return (
    `${sent}, with ${whole(config.in_flight)} in flight on ${count(config.connections, 'connection')}, in ${loop(config)}. ` +
    (batch === null ? '' : `The batches of the server had a mean size of ${mean(batch)}. `) +
    `${run.measured_seconds.toFixed(1)} s were measured.`
  );
}

function runTiles(run) {
  const { latency_us: latency } = run;
  const others = othersPerSecond(run);
  return tiles([
    ['committed', `${whole(run.committed_per_s)}/s`],
    ['p50', duration(latency.p50)],
    ['p99', duration(latency.p99)],
    ['p99.9', duration(latency.p999)],
    ['slowest', duration(latency.max)],
    ['not committed', `${whole(others)}/s`, percent(others / (others + run.committed_per_s || 1))],
    ['server batch', mean(serverBatch(run)), 'transactions, mean'],
  ]);
}

// The latency distribution in steps: the upper end of each step as a logarithm, and its transactions, without gaps.
function latencySteps({ latency_counts: counts, latency_steps_per_doubling: steps }) {
  if (counts.length === 0) return [];
  const known = new Map(counts);
  const list = [];
  for (let step = counts[0][0]; step <= counts[counts.length - 1][0]; step += 1) {
    list.push({
      from: ((step - 1) / steps) * Math.log10(2),
      to: (step / steps) * Math.log10(2),
      transactions: known.get(step) ?? 0,
    });
  }
  return list;
}

function latencyFigures(run, details) {
  const steps = latencySteps(details);
  if (steps.length === 0) return [];
  const total = steps.reduce((sum, { transactions }) => sum + transactions, 0);
  const latency = logScale(duration, shortDuration);
  const quantiles = [
    ['p50', run.latency_us.p50],
    ['p99', run.latency_us.p99],
    ['p99.9', run.latency_us.p999],
  ].filter(([, us]) => us > 0);
  const last = steps[steps.length - 1];
  const distribution = figure({
    title: 'Latency of the transactions',
    note: 'The latency is on a logarithmic scale. Each step covers 9% more time than the step before it.',
    x: {
      scale: latency,
      label: 'latency',
      legend: 'latency from',
      values: [...steps.map(({ from }) => from), last.to],
    },
    y: { scale: linearScale(percent), label: 'share of the transactions' },
    series: [
      {
        label: 'share',
        values: [...steps.map(({ transactions }) => transactions / total), 0],
        stepped: 'after',
        filled: true,
      },
    ],
    marks: (plot) =>
      drawLines(
        plot,
        quantiles.map(([name, us]) => [log(us), `${name} ${duration(us)}`]),
      ),
  });
  return [distribution, percentileFigure(run, steps, total)];
}

function percentileFigure(run, steps, total) {
  const nines = (share) => -Math.log10(1 - share);
  const points = [[0, steps[0].to]];
  let below = 0;
  for (const { to, transactions } of steps) {
    below += transactions;
    if (transactions > 0 && below < total) points.push([nines(below / total), Math.min(to, log(run.latency_us.max))]);
  }
  points.push([nines(1 - 1 / (total + 1)), log(run.latency_us.max)]);
  const most = points[points.length - 1][0];
  const shares = NINES.filter((share) => nines(share) <= most);
  const percentile = (value) => `${Number((100 * (1 - 10 ** -value)).toPrecision(7))}%`;
  return figure({
    title: 'Latency by percentile',
    note: 'The slowest transactions are on the right: one in 1,000 takes longer than the latency at 99.9%.',
    x: {
      scale: { range: () => [0, most], splits: () => shares.map(nines), format: percentile, axis: percentile },
      label: 'percentile',
      values: points.map(([x]) => x),
    },
    y: { scale: logScale(duration, shortDuration), label: 'latency' },
    series: [{ label: 'latency', values: points.map(([, y]) => y), stepped: 'before' }],
  });
}

function timeFigures(run, { samples }) {
  if (samples.length < SAMPLES_MIN) {
    return [element('p', { className: 'note' }, `Plots over time need a run of ${SAMPLES_MIN} seconds or more.`)];
  }
  const seconds = {
    range: () => [0, samples[samples.length - 1].end_us / 1e6],
    format: (s) => `${s.toFixed(1)} s`,
    axis: (s) => `${s} s`,
  };
  const x = {
    scale: seconds,
    label: 'time',
    values: samples.map(({ end_us: end, length_us: length }) => (end - length / 2) / 1e6),
  };
  const warmup = (plot) => shade(plot, 0, run.config.warmup_us / 1e6, 'warm-up');
  const over = (title, y, series, note) => figure({ title, note, x, y, series, ground: warmup });
  const rate = (field) => samples.map((sample) => (sample[field] * 1e6) / sample.length_us);
  const sent = [{ label: 'committed', values: rate('committed') }];
  if (samples.some(({ others }) => others > 0)) sent.push({ label: 'not committed', values: rate('others') });
  const figures = [
    over('Throughput over time', { scale: linearScale(whole, short), label: 'transactions/s' }, sent),
    over('Latency over time', { scale: logScale(duration, shortDuration), label: 'latency' }, [
      { label: 'p50', values: samples.map(({ p50_us: us }) => log(us)) },
      { label: 'p99', values: samples.map(({ p99_us: us }) => log(us)) },
    ]),
  ];
  const processors = [
    { label: 'server', colour: 0, values: samples.map(({ server_cpu: share }) => share) },
    { label: 'load tester', colour: 1, values: samples.map(({ client_cpu: share }) => share) },
  ].filter(({ values }) => values.some((value) => value !== null));
  if (processors.length > 0) {
    figures.push(
      over(
        'Processors over time',
        { scale: linearScale(percent, percent, 1), label: 'share of the machine' },
        processors,
      ),
    );
  }
  if (samples.some(({ batches }) => batches > 0)) {
    const values = samples.map(({ batches, batch_transactions: sum }) => (batches > 0 ? sum / batches : null));
    const scale = linearScale(mean, short);
    figures.push(
      over(
        'Batch size of the server over time',
        { scale, label: 'transactions' },
        [{ label: 'mean of a batch', values }],
        'The batches have the transactions of all clients of the server.',
      ),
    );
  }
  return figures;
}

// A bar with what the processors of this machine did in the measured part.
function processorBar({ cpu }) {
  const title = element('h2', {}, 'Processors of this machine');
  if (cpu === null) {
    return element(
      'section',
      {},
      title,
      element('p', { className: 'note' }, 'Less than 100 ms were measured, so the shares are not known.'),
    );
  }
  const {
    server_machine_share: server,
    client_machine_share: client,
    others_share: others,
    steal_share: steal,
    idle_share: idle,
  } = cpu;
  const isHidden = others === null;
  const parts = [
    ['server', server, 'series-1'],
    ['load tester', client, 'series-2'],
    ['other processes', others, 'series-4'],
    ['other virtual machines', steal, 'series-3'],
    ['idle', idle, 'idle'],
  ].filter(([, share]) => share !== null);
  const rest = Math.max(0, 1 - parts.reduce((sum, [, share]) => sum + share, 0));
  if (rest >= 0.005)
    parts.splice(-1, 0, [isHidden ? 'server, other processes and interrupts' : 'interrupts', rest, 'series-6']);
  const visible = parts.filter(([, share]) => share >= 0.0005);
  const bar = element('div', {
    className: 'bar',
    role: 'img',
    'aria-label': visible.map(([name, share]) => `${name} ${percent(share)}`).join(', '),
  });
  for (const [, share, className] of visible) {
    const part = element('span', { className });
    part.style.width = `${share * 100}%`;
    bar.append(part);
  }
  const legend = visible.map(([name, share, className]) =>
    element('li', {}, element('span', { className: `swatch ${className}` }), `${name} ${percent(share)}`),
  );
  const place = isHidden
    ? 'The load tester may not see the process of the server, so its share is not known.'
    : server === null
      ? 'The server runs on another machine.'
      : null;
  const busiest = `The busiest thread of the load tester used ${percent(cpu.client_thread_share)} of a core.`;
  const text = `Shares of ${count(cpu.cores, 'core')} in the measured part. ${place ? `${place} ` : ''}${busiest}`;
  return element(
    'section',
    {},
    title,
    bar,
    element('ul', { className: 'legend' }, legend),
    element('p', { className: 'note' }, text),
  );
}

function runProblems(run) {
  const problems = [];
  if (run.failure !== null) problems.push(sentence(run.failure));
  if (run.interrupted_by !== null) problems.push(`Signal ${run.interrupted_by} ended the run early.`);
  if (run.not_sent > 0)
    problems.push(`${count(run.not_sent, 'transaction was', 'transactions were')} due, but not sent.`);
  return problems.length > 0 ? notice('bad', 'What went wrong', problems) : null;
}

function runPage(data) {
  const run = data.report;
  const [details] = data.details;
  const [kind, title, text] = verdict(run);
  return [
    element(
      'header',
      {},
      element('p', { className: 'kind' }, 'KiloKV load test: a run'),
      element('h1', {}, runHeadline(run)),
      element('p', {}, runSummary(run)),
    ),
    element(
      'div',
      { className: 'notices' },
      notice(kind, title, text),
      runProblems(run),
      answered(run) > 0 ? warningNotice([run]) : null,
    ),
    runTiles(run),
    element('div', { className: 'figures' }, latencyFigures(run, details), timeFigures(run, details)),
    processorBar(run),
    measuredList(data, [run]),
  ];
}
