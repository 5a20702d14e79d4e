'use strict';
// Role: the axes of a sweep, and its runs as series along an axis.

const AXES = ['batch_size', 'in_flight', 'connections', 'rate_per_s', 'keys', 'encoding', 'distribution', 'workload'];

// The axes with several values, such as ['batch_size', 'connections'].
function variedAxes(runs) {
  const varied = AXES.filter((field) => new Set(runs.map((run) => run.config[field])).size > 1);
  // Each workload has its own default of the keys.
  return varied.includes('workload') ? varied.filter((field) => field !== 'keys') : varied;
}

// The values of the axis: numbers ascend, and other values stay in their order. No rate is a closed loop, and comes last.
function valuesOf(runs, field) {
  const values = [...new Set(runs.map((run) => run.config[field]))];
  return values.every((value) => value === null || typeof value === 'number')
    ? values.sort((a, b) => (a ?? Infinity) - (b ?? Infinity))
    : values;
}

// A series for each combination of the other varied axes: {label, runs}, and in `runs` a list of runs for each value.
function seriesAlong(runs, field, varied) {
  const values = valuesOf(runs, field);
  const others = varied.filter((other) => other !== field);
  const series = new Map();
  for (const run of runs) {
    const label = pointOf(run, others);
    if (!series.has(label)) series.set(label, { label, runs: values.map(() => []) });
    series.get(label).runs[values.indexOf(run.config[field])].push(run);
  }
  return { values, series: [...series.values()] };
}
