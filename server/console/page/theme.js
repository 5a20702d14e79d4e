// Role: light, dark, or as the system says. The choice is kept in this browser.
import { element } from './dom.js';

const STORED_AS = 'kilokv-console-theme';
const NEXT = { system: 'light', light: 'dark', dark: 'system' };

function stored() {
  try {
    const theme = localStorage.getItem(STORED_AS);
    return Object.hasOwn(NEXT, theme) ? theme : 'system';
  } catch {
    return 'system'; // the browser keeps nothing
  }
}

function store(theme) {
  try {
    localStorage.setItem(STORED_AS, theme);
  } catch {
    // The choice lasts until the page is left.
  }
}

export function themeButton(changed) {
  const button = element('button', { type: 'button', className: 'quiet', onclick: () => apply(NEXT[theme], true) });
  let theme;
  const apply = (chosen, keep) => {
    theme = chosen;
    if (chosen === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = `Theme: ${chosen}`;
    if (keep) store(chosen);
    changed();
  };
  apply(stored(), false);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  return button;
}
