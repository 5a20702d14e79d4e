// Role: the transaction editor: a form or JSON, the run of the transaction, and what came of it.
import * as api from './api.js';
import { ApiError, reasonOf } from './api.js';
import { element, labelled, replace, select } from './dom.js';
import { parseJson, writeJson } from './exact_json.js';
import * as numbers from './numbers.js';
import { Panel } from './panel.js';
import { TransactionResult, explainFailure, fateOf } from './result.js';
import { checkSize, requestOf } from './transaction.js';
import { GuardRow, OperationRow, RowList } from './transaction_rows.js';

const EXAMPLES = {
  move: {
    guards: [{ key: 'alice', is: 'ge', value: 50n, when_false: 'fail' }],
    then: [
      { op: 'add', key: 'alice', delta: -50n },
      { op: 'add', key: 'bob', delta: 50n },
      { op: 'get', key: 'alice' },
    ],
    else: [{ op: 'get', key: 'alice' }],
  },
  wait: {
    guards: [{ key: 'alice', is: 'ge', value: 50n, when_false: 'wait' }],
    then: [{ op: 'add', key: 'alice', delta: -50n }],
    wait_timeout_ms: 60000n,
  },
  once: {
    guards: [{ key: 'name', is: 'absent', when_false: 'fail' }],
    then: [{ op: 'put', key: 'name', value: 'mine' }],
    else: [{ op: 'get', key: 'name' }],
  },
  read: { then: [{ op: 'range_get', from: '', to: '', limit: 20n }] },
};

export class Editor extends Panel {
  #guards = new RowList({
    title: 'Guards',
    note: 'Conditions, in their order. The first false guard decides.',
    add: 'Add a guard',
    Kind: GuardRow,
  });
  #then = new RowList({
    title: 'Then',
    note: 'Runs as one if all guards hold.',
    add: 'Add an operation',
    Kind: OperationRow,
  });
  #else = new RowList({
    title: 'Else',
    note: 'Runs as one if the first false guard says "fail".',
    add: 'Add an operation',
    Kind: OperationRow,
  });
  #precedence = element('input', { type: 'number', min: '0', max: '255', step: '1', value: '0' });
  #timeout = element('input', { type: 'number', min: '0', step: '1', value: '0' });
  #runsElse = element('input', { type: 'checkbox', id: 'expire-runs-else' });
  #text = element('textarea', { className: 'mono', rows: 16, spellcheck: false });
  #form;
  #json;
  #modes;
  #fault = element('p', { className: 'fault', role: 'alert', hidden: true });
  #run = element('button', { type: 'submit', className: 'main' }, 'Run the transaction');
  #giveUp = element('button', { type: 'button', hidden: true, onclick: () => this.#aborter?.abort() }, 'Give up');
  #progress = element('span', { className: 'progress', role: 'status' });
  #result = element('div', { className: 'result', 'aria-live': 'polite' });
  #aborter;

  constructor(connection) {
    super(connection, {
      title: 'Transaction',
      note: 'All of "then" happens, or all of "else", or nothing. This writes to the database.',
      right: 'the right to read each key of a guard or a read, and to write each key of a write',
      every: 0,
      keepsBody: true,
    });
    this.tools.append(this.#exampleChoice());
    this.#form = element('div', {}, this.#guards.node, this.#then.node, this.#else.node, this.#options());
    this.#json = element(
      'div',
      { hidden: true },
      labelled(
        'Transaction as JSON, as for "kilokv txn"',
        this.#text,
        'Keys and byte values are texts, or {"b64": "..."}.',
      ),
    );
    const buttons = element('div', { className: 'buttons start' }, this.#run, this.#giveUp, this.#progress);
    const form = element(
      'form',
      { onsubmit: (event) => this.#submit(event) },
      this.#modeChoice(),
      this.#form,
      this.#json,
      this.#fault,
      buttons,
    );
    this.body.append(form, this.#result);
    this.#fill(EXAMPLES.move);
  }

  #exampleChoice() {
    const choice = select(
      [
        ['', 'Load an example…'],
        ['move', 'Move 50 from alice to bob'],
        ['wait', 'Wait until alice has 50'],
        ['once', 'Write a key once'],
        ['read', 'Read the first 20 keys'],
      ],
      '',
      { 'aria-label': 'Load an example' },
    );
    choice.addEventListener('change', () => {
      if (choice.value) this.#fill(EXAMPLES[choice.value]);
      choice.value = '';
    });
    return choice;
  }

  #modeChoice() {
    const radio = (value, text) =>
      element(
        'label',
        {},
        element('input', {
          type: 'radio',
          name: 'transaction-mode',
          value,
          checked: value === 'form',
          onchange: () => this.#switchTo(value),
        }),
        text,
      );
    this.#modes = element(
      'fieldset',
      { className: 'segments' },
      element('legend', { className: 'unseen' }, 'Write the transaction as'),
      radio('form', 'Form'),
      radio('json', 'JSON'),
    );
    return this.#modes;
  }

  #options() {
    const runsElse = element(
      'div',
      { className: 'check' },
      this.#runsElse,
      element('label', { for: 'expire-runs-else' }, 'run "else" if the time is up'),
    );
    return element(
      'fieldset',
      {},
      element('legend', {}, 'Options'),
      element(
        'div',
        { className: 'row' },
        labelled('wait at most (ms)', this.#timeout),
        labelled('precedence (0 runs first)', this.#precedence),
        runsElse,
      ),
    );
  }

  get #isForm() {
    return this.#json.hidden;
  }

  #say(text) {
    this.#fault.textContent = text;
    this.#fault.hidden = !text;
  }

  #fill(transaction) {
    this.#guards.fill(transaction.guards);
    this.#then.fill(transaction.then);
    this.#else.fill(transaction.else);
    this.#precedence.value = String(transaction.precedence ?? 0);
    this.#timeout.value = String(transaction.wait_timeout_ms ?? 0);
    this.#runsElse.checked = transaction.expire_runs_else === true;
    this.#text.value = writeJson(transaction);
    this.#say('');
    this.clearProblem();
    replace(this.#result);
  }

  #fromForm() {
    const part = (list, name) => {
      const json = list.json();
      return json.length > 0 ? { [name]: json } : {};
    };
    const transaction = { ...part(this.#guards, 'guards'), ...part(this.#then, 'then'), ...part(this.#else, 'else') };
    if (this.#precedence.value !== '0') transaction.precedence = BigInt(this.#precedence.value || 0);
    if (this.#timeout.value !== '0') transaction.wait_timeout_ms = BigInt(this.#timeout.value || 0);
    if (this.#runsElse.checked) transaction.expire_runs_else = true;
    return transaction;
  }

  #transaction() {
    return this.#isForm ? this.#fromForm() : parseJson(this.#text.value);
  }

  // The other way to write it shows the same transaction.
  #switchTo(mode) {
    try {
      const transaction = this.#transaction();
      if (mode === 'form') requestOf(transaction);
      this.#fill(transaction);
      this.#form.hidden = mode !== 'form';
      this.#json.hidden = mode !== 'json';
    } catch (error) {
      this.#say(error.message);
      this.#modes.querySelector(`[value=${this.#isForm ? 'form' : 'json'}]`).checked = true;
    }
  }

  async #submit(event) {
    event.preventDefault();
    if (this.#aborter) return;
    this.#say('');
    this.clearProblem();
    this.#mark({});
    replace(this.#result);
    let request;
    try {
      request = requestOf(this.#transaction());
      checkSize(request);
    } catch (error) {
      this.#say(error.message);
      return;
    }
    await this.#execute(request);
  }

  async #execute(request) {
    this.#aborter = new AbortController();
    const began = performance.now();
    const timer = setInterval(() => this.#tick(began), 100);
    this.#run.disabled = true;
    try {
      const { result } = await api.call('Execute', request, { signal: this.#aborter.signal, timeoutMs: 0 });
      if (!result?.outcome) throw new ApiError('refused', 'The answer has no result.');
      this.#show(request, result, performance.now() - began);
    } catch (error) {
      this.#failed(error);
    } finally {
      clearInterval(timer);
      this.#aborter = undefined;
      this.#run.disabled = false;
      this.#giveUp.hidden = true;
      this.#progress.textContent = '';
    }
  }

  // A transaction that takes long is one that waits, or the server is away.
  #tick(began) {
    const ms = performance.now() - began;
    if (ms < 300) return;
    this.#giveUp.hidden = false;
    this.#progress.textContent = `Waiting for ${(ms / 1000).toFixed(1)} s`;
  }

  #failed(error) {
    if (error.name === 'AbortError') {
      const why = this.connection.state === 'login' ? 'The login has ended.' : 'You gave up.';
      const text = `${why} The server cancels a transaction that waits when its caller goes away. If it was decided at that moment, it may have run.`;
      replace(this.#result, element('p', { className: 'note' }, text));
      return;
    }
    if (!(error instanceof ApiError)) throw error;
    const isTooLarge = reasonOf(error.details) === 'ANSWER_TOO_LARGE'; // not refused: it has run
    if (!isTooLarge && !this.connection.report(error)) this.showProblem(error);
    replace(this.#result, element('p', { className: 'problem' }, fateOf(error)));
  }

  #show(request, result, ms) {
    replace(this.#result, new TransactionResult(request.transaction, result, numbers.duration(ms * 1000)).node);
    this.#mark(result);
  }

  #mark(result) {
    const lists = { FAILED_IN_GUARDS: this.#guards, FAILED_IN_THEN: this.#then, FAILED_IN_ELSE: this.#else };
    for (const [name, list] of Object.entries(lists)) {
      list.mark(
        result.failed_in === name ? result.failed_index : -1,
        result.failed_in === name ? explainFailure(result) : '',
      );
    }
  }

  reset() {
    this.#aborter?.abort();
    replace(this.#result);
  }
}
