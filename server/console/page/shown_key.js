// Role: a key in a table: as text with escapes, or as its hash if the user may not read it.
import { element, replace } from './dom.js';
import { showKey, showText } from './keys.js';

const LONGEST = 120; // characters of a key in a table; the title has all of it

function markEscapes(text) {
  const parts = text.split(/(\\(?:\\|x[0-9a-f]{2}|u[0-9a-f]{4}|u\{[0-9a-f]+\}))/);
  return parts.map((part, index) => (index % 2 === 1 ? element('span', { className: 'escape' }, part) : part));
}

// Text with its escapes in another colour.
export function shownText(text, { longest = LONGEST } = {}) {
  const cut = text.length > longest ? `${text.slice(0, longest)}` : text;
  const node = element('code', { className: 'data' }, markEscapes(cut));
  if (cut !== text) node.append(element('span', { className: 'more' }, '…'));
  node.title = text.length > 2000 ? `${text.slice(0, 2000)}…` : text;
  return node;
}

// Tells a key, a range and a hash apart, even if they look the same.
export const identityOfKey = ({ key, hash, is_range: isRange } = {}) =>
  JSON.stringify([hash ?? '', key ?? null, isRange === true]);

// Updates a cell with a key, only if it is another one.
export function putKey(cell, shown) {
  const identity = identityOfKey(shown);
  if (cell.dataset.key === identity && cell.hasChildNodes()) return;
  cell.dataset.key = identity;
  if (shown?.hash)
    replace(
      cell,
      element(
        'code',
        { className: 'data hash', title: 'You may not read this key. This is its hash.' },
        showText(shown.hash),
      ),
    );
  else if (shown?.key === undefined) replace(cell, element('span', { className: 'faint' }, 'no key'));
  else {
    const tag = shown.is_range ? [' ', element('span', { className: 'tag' }, 'range')] : [];
    replace(cell, shownText(showKey(shown.key)), ...tag);
  }
}
