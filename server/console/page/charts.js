// Role: charts over time, drawn by uPlot, with a legend of text.
import uPlot from './uplot.js';

import { element, setText, uniqueId } from './dom.js';
import { stack } from './stack.js';

const LEAST_SECONDS = 60;
const HEIGHT = 190;
const cursor = { sync: { key: 'time' }, y: false, points: { size: 6 }, drag: { x: false, y: false } };

// The canvas knows no variables of CSS, so an element that nobody sees tells their colours.
const probe = element('span', { hidden: true });

function variable(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

const color = (index) => () => variable(`--series-${index}`);
const two = (value) => String(value).padStart(2, '0');

// The powers of ten from `least` to `most`, for a logarithmic axis.
function decades(least, most) {
  const powers = [];
  for (let power = Math.floor(Math.log10(least)); 10 ** power <= most * 1.001; power += 1) powers.push(10 ** power);
  return powers;
}

function clock(seconds) {
  const date = new Date(seconds * 1000);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export class Chart {
  #series;
  #stacked;
  #format;
  #values = []; // the legend's cells
  #columns = [];
  #plot;
  #times = [];
  #log;
  #axis;

  // A series is {name, label, color (1 to 6)}: `name` is the field of a point.
  constructor({ title, note, series, format, axis, stacked = false, log = false }) {
    this.#series = series;
    this.#stacked = stacked;
    this.#format = format;
    this.#log = log;
    const id = uniqueId('chart');
    this.canvas = element('div', { className: 'plot', role: 'img', 'aria-labelledby': id });
    this.node = element(
      'section',
      { className: 'panel chart', 'aria-labelledby': id },
      element('header', {}, element('h2', { id }, title)),
      note && element('p', { className: 'note' }, note),
      this.canvas,
      this.#legend(),
    );
    this.#axis = axis ?? format;
    new ResizeObserver(() => this.#resize()).observe(this.canvas);
  }

  #legend() {
    const items = this.#series.map(({ label, color: index }) => {
      const value = element('span', { className: 'value' }, '–');
      this.#values.push(value);
      return element('li', {}, element('span', { className: `swatch series-${index}` }), label, value);
    });
    return element('ul', { className: 'legend' }, items);
  }

  #options(width) {
    const drawn = this.#series.map(({ label, color: index }) => ({
      label,
      stroke: color(index),
      width: 1.5,
      fill: this.#stacked ? color(`${index}-soft`) : undefined,
      points: { show: false },
      spanGaps: false,
    }));
    const line = {
      stroke: () => variable('--faint'),
      grid: { stroke: () => variable('--line'), width: 1 },
      ticks: { show: false },
    };
    const font = '11px system-ui, sans-serif';
    return {
      width,
      height: HEIGHT,
      cursor,
      legend: { show: false },
      padding: [8, 26, 0, 0],
      scales: { x: { time: true, range: (_, least, most) => this.#window(least, most) }, y: this.#scale() },
      axes: [
        { ...line, font, size: 28, space: 70, values: (_, splits) => splits.map(clock) },
        {
          ...line,
          font,
          size: 62,
          space: 32,
          splits: this.#log ? (_plot, _axis, least, most) => decades(least, most) : undefined,
          values: (_, splits) => splits.map((value) => (value === null ? '' : this.#axis(value))),
        },
      ],
      series: [{}, ...(this.#stacked ? drawn.reverse() : drawn)],
      hooks: { setCursor: [(plot) => this.#showValues(plot.cursor.idx)] },
    };
  }

  #window(least, most) {
    return [Math.min(least ?? most, most - LEAST_SECONDS), most];
  }

  #scale() {
    if (this.#log)
      return {
        distr: 3,
        range: (_, least, most) => [
          10 ** Math.floor(Math.log10(least || 1e-4)),
          10 ** Math.ceil(Math.log10(most || 1)),
        ],
      };
    return { range: (_, _least, most) => [0, most > 0 ? most * 1.08 : 1] };
  }

  #resize() {
    const width = Math.floor(this.canvas.clientWidth);
    if (width < 50) return;
    if (this.#plot) this.#plot.setSize({ width, height: HEIGHT });
    else this.#plot = new uPlot(this.#options(width), this.#data(), this.canvas);
  }

  #data() {
    const columns = this.#stacked ? stack(this.#columns).reverse() : this.#columns;
    return [this.#times, ...(columns.length > 0 ? columns : this.#series.map(() => []))];
  }

  #showValues(index) {
    const at = index ?? this.#times.length - 1;
    this.#columns.forEach((column, series) => {
      const value = column[at];
      setText(this.#values[series], value === null || value === undefined ? '–' : this.#format(value));
    });
  }

  update(points) {
    this.#times = points.map(({ time }) => time);
    this.#columns = this.#series.map(({ name }) => points.map((point) => point[name] ?? null));
    this.#plot?.setData(this.#data());
    this.#showValues(this.#plot?.cursor.idx);
  }

  // The colours have changed.
  redraw() {
    this.#plot?.redraw(false, true);
  }
}
