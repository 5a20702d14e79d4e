// Role: asks before something is done that cannot be undone.
import { element, uniqueId } from './dom.js';

// Resolves to true if the person agrees. Escape and a click on "Keep" mean no.
export function confirm({ title, text, action, keep = 'Go back' }) {
  return new Promise((resolve) => {
    const id = uniqueId('dialog');
    const close = (answer) => dialog.close(answer);
    const dialog = element(
      'dialog',
      { 'aria-labelledby': id, className: 'confirm' },
      element('h2', { id }, title),
      element('p', {}, text),
      element(
        'div',
        { className: 'buttons' },
        element('button', { type: 'button', onclick: () => close('no') }, keep),
        element('button', { type: 'button', className: 'danger', onclick: () => close('yes') }, action),
      ),
    );
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Shows a long text, such as a whole value.
export function show({ title, content }) {
  const id = uniqueId('dialog');
  const dialog = element(
    'dialog',
    { 'aria-labelledby': id, className: 'whole' },
    element('h2', { id }, title),
    content,
    element(
      'div',
      { className: 'buttons' },
      element('button', { type: 'button', onclick: () => dialog.close() }, 'Close'),
    ),
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
