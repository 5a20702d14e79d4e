'use strict';
// Role: makes elements. Every text of the report becomes a text node, so no text is ever read as HTML.

// Properties with a dash are attributes. Children are elements or texts; null, undefined and false are left out.
function element(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes('-') || key === 'role' || key === 'scope') made.setAttribute(key, value);
    else made[key] = value;
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) made.append(child);
  }
  return made;
}

// A table in a box that scrolls sideways on a narrow screen. The first column is aligned left, the others right.
function table(header, rows) {
  const cells = (row, name) => row.map((text) => element(name, name === 'th' ? { scope: 'col' } : {}, text));
  return element(
    'div',
    { className: 'wide' },
    element(
      'table',
      {},
      element('thead', {}, element('tr', {}, cells(header, 'th'))),
      element(
        'tbody',
        {},
        rows.map((row) => element('tr', { className: row.className ?? '' }, cells(row, 'td'))),
      ),
    ),
  );
}
