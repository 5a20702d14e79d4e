'use strict';
// Role: plots, drawn by uPlot. They are drawn again if their width, the colours or the medium change: uPlot draws pixels.

const HEIGHT = 240;
const PRINTED_WIDTH = 310; // two plots beside each other on a sheet of paper
const COLOURS = 6;
const DASHES = [[], [7, 4], [2, 3]]; // for more series than colours
const FONT = '12px system-ui, sans-serif';
const LETTER_WIDTH = 7; // about, in pixels
const drawers = []; // a function for each plot

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isPrinting = () => 'print' in document.documentElement.dataset;

function drawAll() {
  for (const draw of drawers) draw();
}

function watchMedium() {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  addEventListener('beforeprint', () => {
    document.documentElement.dataset.print = '';
    drawAll();
  });
  addEventListener('afterprint', () => {
    delete document.documentElement.dataset.print;
    drawAll();
  });
}

// Scales. A logarithmic one has the logarithms of the values as its numbers: so its ends need not be powers of ten.

const log = (value) => (value > 0 ? Math.log10(value) : null);

function logSplits(least, most) {
  const factors = most - least > 3.5 ? [1] : most - least > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const splits = [];
  for (let power = Math.floor(least); power <= most; power += 1) {
    for (const factor of factors) {
      const split = power + Math.log10(factor);
      if (split >= least && split <= most) splits.push(split);
    }
  }
  return splits;
}

// `format` writes a value, `axis` writes it short. `top`: the least end of the scale.
const linearScale = (format, axis = format, top = 0) => ({
  range: (_plot, _least, most) => [0, Math.max(top, most > 0 ? most * 1.1 : 1)],
  format,
  axis,
});
const logScale = (format, axis) => ({
  range: (_plot, least, most) => [(least ?? 0) - 0.1, (most ?? 1) + 0.15],
  splits: (_plot, _axis, least, most) => logSplits(least, most),
  format: (value) => format(10 ** value),
  axis: (value) => axis(10 ** value),
});

// The values of `names`, at equal distances from each other.
const namedScale = (names) => ({
  range: () => [-0.35, names.length - 0.65],
  splits: () => names.map((_, index) => index),
  format: (index) => names[index] ?? '',
  axis: (index) => names[index] ?? '',
});

// The texts of the x axis: one that has no room beside the text before it is left out.
function withRoom(plot, splits, texts) {
  let free = -Infinity;
  return splits.map((split, place) => {
    const centre = plot.valToPos(split, 'x');
    const half = (texts[place].length * LETTER_WIDTH) / 2;
    if (centre - half < free) return '';
    free = centre + half + LETTER_WIDTH;
    return texts[place];
  });
}

function axis(scale, label, size, isX) {
  const texts = (splits) => splits.map((value) => (value === null ? '' : scale.axis(value)));
  return {
    label,
    labelFont: FONT,
    labelSize: 20,
    font: FONT,
    size,
    stroke: variable('--soft'),
    grid: { stroke: variable('--line'), width: 1 },
    ticks: { stroke: variable('--line'), width: 1, size: 4 },
    splits: scale.splits,
    values: (plot, splits) => (isX ? withRoom(plot, splits, texts(splits)) : texts(splits)),
  };
}

// A legend shows a value only where the cursor is.
const legendValue = (scale) => (_plot, value, _series, index) =>
  index === null || index === undefined || value === null || value === undefined ? '' : scale.format(value);

function drawnSeries(series, index, scale) {
  const stroke = variable(`--series-${((series.colour ?? index) % COLOURS) + 1}`);
  return {
    label: series.label,
    stroke,
    width: 2,
    dash: series.dash ?? DASHES[Math.floor(index / COLOURS) % DASHES.length],
    fill: series.filled ? `${stroke}40` : undefined,
    paths:
      series.points === 'alone'
        ? () => null
        : series.stepped
          ? uPlot.paths.stepped({ align: series.stepped === 'after' ? 1 : -1 })
          : undefined,
    points: { show: Boolean(series.points), size: 7, fill: stroke },
    spanGaps: true,
    value: legendValue(scale),
  };
}

// A figure with a plot. `x` is {scale, label, values}, `y` {scale, label}; a series is {label, values, ...}, and its points
// may be 'alone', without lines. `marks` draws on top of the plot, `ground` below it: functions of the plot.
function figure({ title, note, x, y, series, marks, ground }) {
  const holder = element('div', { className: 'plot', role: 'img', 'aria-label': `Plot: ${title}` });
  const node = element(
    'figure',
    {},
    element('figcaption', {}, title),
    note ? element('p', { className: 'note' }, note) : null,
    holder,
  );
  let plot = null;
  let width = 0;
  const draw = () => {
    width = isPrinting() ? PRINTED_WIDTH : Math.floor(holder.clientWidth);
    if (width < 50) return;
    plot?.destroy();
    const options = {
      width,
      height: HEIGHT,
      padding: [10, 24, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: false, range: x.scale.range }, y: { range: y.scale.range } },
      axes: [axis(x.scale, x.label, 32, true), axis(y.scale, y.label, 58, false)],
      series: [
        { label: x.legend ?? x.label, value: legendValue(x.scale) },
        ...series.map((one, index) => drawnSeries(one, index, y.scale)),
      ],
      hooks: { draw: marks ? [marks] : [], drawClear: ground ? [ground] : [] },
    };
    plot = new uPlot(options, [x.values, ...series.map(({ values }) => values)], holder);
  };
  drawers.push(draw);
  new ResizeObserver(() => {
    if (!isPrinting() && Math.floor(holder.clientWidth) !== width) draw();
  }).observe(holder);
  return node;
}

// What figures draw on a plot. Positions are in pixels of the canvas.

function paint(plot, work) {
  const { ctx } = plot;
  ctx.save();
  ctx.lineWidth = devicePixelRatio * 1.5;
  ctx.strokeStyle = ctx.fillStyle = variable('--text');
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  work(ctx, devicePixelRatio);
  ctx.restore();
}

function drawRing(plot, xValue, yValue) {
  paint(plot, (ctx, ratio) => {
    ctx.beginPath();
    ctx.arc(plot.valToPos(xValue, 'x', true), plot.valToPos(yValue, 'y', true), 8 * ratio, 0, 2 * Math.PI);
    ctx.stroke();
  });
}

function drawLevel(plot, yValue, label) {
  paint(plot, (ctx, ratio) => {
    const y = plot.valToPos(yValue, 'y', true);
    ctx.strokeStyle = ctx.fillStyle = variable('--soft');
    ctx.setLineDash([5 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(plot.bbox.left, y);
    ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
    ctx.stroke();
    ctx.fillText(label, plot.bbox.left + 4 * ratio, y - 4 * ratio);
  });
}

// Vertical lines at [value, label]. The labels stand one below the other, so that they do not cover each other.
function drawLines(plot, lines) {
  const { bbox } = plot;
  paint(plot, (ctx, ratio) => {
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    for (const [value] of lines) {
      const x = plot.valToPos(value, 'x', true);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    lines.forEach(([value, label], place) => {
      const x = plot.valToPos(value, 'x', true);
      const width = ctx.measureText(label).width + 4 * ratio;
      const fits = x + width + 4 * ratio < bbox.left + bbox.width;
      const left = fits ? x + 3 * ratio : x - width - 3 * ratio;
      const top = bbox.top + 15 * place * ratio;
      ctx.fillStyle = variable('--card');
      ctx.fillRect(left, top, width, 14 * ratio);
      ctx.fillStyle = variable('--text');
      ctx.fillText(label, left + 2 * ratio, top + 11 * ratio);
    });
  });
}

function shade(plot, from, to, label) {
  paint(plot, (ctx, ratio) => {
    const left = Math.max(plot.bbox.left, plot.valToPos(from, 'x', true));
    const right = Math.min(plot.bbox.left + plot.bbox.width, plot.valToPos(to, 'x', true));
    if (right <= left) return;
    ctx.fillStyle = variable('--shade');
    ctx.fillRect(left, plot.bbox.top, right - left, plot.bbox.height);
    ctx.fillStyle = variable('--soft');
    if (ctx.measureText(label).width + 8 * ratio < right - left)
      ctx.fillText(label, left + 4 * ratio, plot.bbox.top + 12 * ratio);
  });
}
