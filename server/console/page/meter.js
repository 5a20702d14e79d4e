// Role: a bar that shows a part of a whole.
import { element, setText } from './dom.js';

const CLOSE = 0.9; // from here on the bar warns

export class Meter {
  constructor(label) {
    this.fill = element('span', { className: 'fill' });
    this.node = element(
      'span',
      { className: 'meter', role: 'meter', 'aria-label': label, 'aria-valuemin': '0', 'aria-valuemax': '100' },
      this.fill,
    );
  }

  set(share, { warns = true } = {}) {
    const part = Number.isFinite(share) ? Math.min(Math.max(share, 0), 1) : 0;
    this.fill.style.width = `${(part * 100).toFixed(2)}%`;
    this.node.classList.toggle('close', warns && part >= CLOSE);
    this.node.setAttribute('aria-valuenow', (part * 100).toFixed(0));
  }
}

// Names with values, and a bar below those that have a limit.
export class Facts {
  #rows = new Map();
  node = element('dl', { className: 'facts' });

  // A fact is {name, text, share, title}.
  update(facts) {
    const seen = new Set();
    for (const { name, text, share, title = '', warns } of facts) {
      seen.add(name);
      const row = this.#rows.get(name) ?? this.#add(name);
      setText(row.value, text);
      row.value.title = title;
      row.meter.node.hidden = share === undefined;
      if (share !== undefined) row.meter.set(share, { warns });
      this.node.append(row.node); // keeps the order of the list
    }
    for (const [name, { node }] of this.#rows) {
      if (seen.has(name)) continue;
      node.remove();
      this.#rows.delete(name);
    }
  }

  #add(name) {
    const row = { value: element('dd'), meter: new Meter(name) };
    row.node = element('div', {}, element('dt', {}, name), row.value, row.meter.node);
    this.#rows.set(name, row);
    return row;
  }
}
