// Role: a value as text: an integer, or bytes as text or as hexadecimal digits.
import { show } from './dialog.js';
import { element } from './dom.js';
import { fromBase64, showBytes, showValueBytes, toHex } from './keys.js';
import * as numbers from './numbers.js';
import { shownText } from './shown_key.js';

const LONGEST = 160; // characters of a value in a table
const LONGEST_WHOLE = 200_000; // characters in the dialog

function cut(text) {
  return text.length > LONGEST_WHOLE ? `${text.slice(0, LONGEST_WHOLE)}… (the rest is left out)` : text;
}

function showWhole(title, bytes) {
  const content = element('pre', { className: 'data', tabindex: '0' }, cut(showValueBytes(bytes).text));
  const forms = [
    ['Text', () => showBytes(bytes).text],
    ['Hex', () => toHex(bytes)],
  ];
  const buttons = forms.map(([name, text]) =>
    element('button', { type: 'button', className: 'small', onclick: () => (content.textContent = cut(text())) }, name),
  );
  show({ title, content: element('div', {}, element('div', { className: 'buttons start' }, buttons), content) });
}

// A Value of the protocol: {integer}, {bytes}, or {} if the key is absent. `name`: of what, for the title of the dialog.
export function shownValue(value, name) {
  if (value?.integer !== undefined) return element('span', { className: 'integer' }, value.integer);
  if (value?.bytes === undefined) return element('span', { className: 'faint' }, 'absent');
  const bytes = fromBase64(value.bytes);
  if (bytes.length === 0) return element('span', { className: 'faint' }, 'empty bytes');
  const { text, form } = showValueBytes(bytes);
  const label = form === 'hex' ? [element('span', { className: 'tag' }, 'hex'), ' '] : [];
  const node = element('span', { className: 'value' }, label, shownText(text, { longest: LONGEST }));
  if (text.length > LONGEST) {
    const open = () => showWhole(`Value of ${name}, ${numbers.bytes(bytes.length)}`, bytes);
    node.append(
      ' ',
      element(
        'button',
        { type: 'button', className: 'small', onclick: open },
        `Show all ${numbers.bytes(bytes.length)}`,
      ),
    );
  }
  return node;
}

export const typeOfValue = (value) => {
  if (value?.integer !== undefined) return 'integer';
  return value?.bytes === undefined ? 'absent' : 'bytes';
};
