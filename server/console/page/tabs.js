// Role: the list of views. Arrow keys, Home and End move among them, as in the pattern "tabs" of WAI-ARIA.
import { element } from './dom.js';

const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

export class Tabs {
  #views = new Map(); // by name: {tab, view, panels}
  #current;
  list = element('div', { role: 'tablist', 'aria-label': 'Views', className: 'tabs' });
  content = element('main', { id: 'views' });

  constructor() {
    this.list.addEventListener('keydown', (event) => this.#keyPressed(event));
    window.addEventListener('hashchange', () => this.select(location.hash.slice(1)));
  }

  // `panels` begin to ask the server when the view is shown, and end when it is left.
  add(name, title, panels, { hidden = false, className = '' } = {}) {
    const tab = element(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `tab-${name}`,
        'aria-controls': `view-${name}`,
        onclick: () => this.select(name),
        hidden,
      },
      title,
    );
    const nodes = panels.map(({ node }) => node);
    const view = element(
      'div',
      {
        role: 'tabpanel',
        id: `view-${name}`,
        'aria-labelledby': `tab-${name}`,
        hidden: true,
        className: `view ${className}`,
      },
      nodes,
    );
    this.#views.set(name, { tab, view, panels });
    this.list.append(tab);
    this.content.append(view);
  }

  select(name) {
    if (!this.#views.has(name) || this.#views.get(name).tab.hidden) name = this.#views.keys().next().value;
    if (name === this.#current) return;
    this.#current = name;
    for (const [other, { tab, view, panels }] of this.#views) {
      const chosen = other === name;
      tab.setAttribute('aria-selected', String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      view.hidden = !chosen;
      for (const panel of panels) {
        if (chosen) panel.show();
        else panel.hide();
      }
      if (chosen) tab.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    }
    history.replaceState(null, '', `#${name}`);
  }

  setHidden(name, hidden) {
    const { tab } = this.#views.get(name);
    if (tab.hidden === hidden) return;
    tab.hidden = hidden;
    if (hidden && this.#current === name) this.select('');
  }

  #keyPressed(event) {
    const names = [...this.#views].filter(([, { tab }]) => !tab.hidden).map(([name]) => name);
    const at = names.indexOf(this.#current);
    let next;
    if (event.key in STEPS) next = names[(at + STEPS[event.key] + names.length) % names.length];
    else if (event.key === 'Home') [next] = names;
    else if (event.key === 'End') next = names.at(-1);
    if (next === undefined) return;
    event.preventDefault();
    this.select(next);
    this.#views.get(next).tab.focus();
  }
}
