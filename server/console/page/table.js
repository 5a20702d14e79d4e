// Role: a table whose rows are updated in place, so that the focus, a selection and the scroll position stay.
import { element, setText } from './dom.js';

export class Table {
  #columns;
  #rows = new Map(); // by key: {row, cells, data}
  #body = element('tbody');
  #empty;
  #keyOf;

  // A column is {title, text(data)} or {title, make(current), update(cell, data)}. `make` runs once for each row, and
  // `current()` is always the newest data of the row. `number`: aligned to the right. `hint`: the title of the cell.
  constructor({ caption, columns, keyOf, empty }) {
    this.#columns = columns;
    this.#keyOf = keyOf;
    this.#empty = element('p', { className: 'empty' }, empty);
    const heads = columns.map(({ title, number, hidden }) =>
      element(
        'th',
        { scope: 'col', className: number ? 'number' : '' },
        hidden ? element('span', { className: 'unseen' }, title) : title,
      ),
    );
    this.table = element(
      'table',
      {},
      element('caption', { className: 'unseen' }, caption),
      element('thead', {}, element('tr', {}, heads)),
      this.#body,
    );
    const frame = { className: 'table', tabindex: '0', role: 'region', 'aria-label': caption };
    this.frame = element('div', frame, this.table);
    this.node = element('div', {}, this.frame, this.#empty);
    this.update([]);
  }

  #add(key, data) {
    const entry = { data };
    entry.cells = this.#columns.map(({ make, number, className = '' }) => {
      const cell = element('td', { className: `${number ? 'number ' : ''}${className}` });
      if (make) cell.append(make(() => entry.data));
      return cell;
    });
    entry.row = element('tr', {}, entry.cells);
    this.#rows.set(key, entry);
    return entry;
  }

  update(list) {
    const seen = new Set();
    let at = this.#body.firstElementChild;
    for (const data of list) {
      const key = this.#keyOf(data);
      if (seen.has(key)) continue;
      seen.add(key);
      const entry = this.#rows.get(key) ?? this.#add(key, data);
      entry.data = data;
      this.#columns.forEach((column, index) => {
        const cell = entry.cells[index];
        if (column.text) setText(cell, column.text(data));
        column.update?.(cell, data);
        if (column.hint) cell.title = column.hint(data);
      });
      if (entry.row === at) at = at.nextElementSibling;
      else this.#body.insertBefore(entry.row, at);
    }
    for (const [key, { row }] of this.#rows) {
      if (seen.has(key)) continue;
      row.remove();
      this.#rows.delete(key);
    }
    this.frame.hidden = seen.size === 0;
    this.#empty.hidden = seen.size !== 0;
  }
}
