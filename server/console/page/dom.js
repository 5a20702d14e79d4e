// Role: makes elements. Text always becomes a text node, so data never becomes markup.

const PROPERTIES = new Set([
  'className',
  'value',
  'disabled',
  'checked',
  'hidden',
  'type',
  'open',
  'rows',
  'spellcheck',
]);

// element('button', {className: 'quiet', onclick: f, 'aria-label': 'Close'}, 'text', node, ...)
export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (PROPERTIES.has(key)) node[key] = value;
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Sets a text only if it changes, so that a selection and the screen reader are left alone.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
}

let lastId = 0;
export function uniqueId(name) {
  lastId += 1;
  return `${name}-${lastId}`;
}

// A label above its field.
export function labelled(text, field, hint) {
  field.id ||= uniqueId('field');
  return element(
    'div',
    { className: 'field' },
    element('label', { for: field.id }, text),
    field,
    hint && element('p', { className: 'hint' }, hint),
  );
}

export function select(options, value, attributes = {}) {
  const node = element(
    'select',
    attributes,
    options.map(([name, text]) => element('option', { value: name }, text)),
  );
  node.value = value;
  return node;
}
