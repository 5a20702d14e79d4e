// Role: the console in a real Chromium. What goes wrong in the page is kept in `problems`: errors of scripts, what
// the Content-Security-Policy forbids, dialogs, and requests to any other server. The last test of each file looks there.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import puppeteer from 'puppeteer-core';

import { SLOWER, until } from './server.js';

const CHROMIUM = process.env.KILOKV_CHROMIUM ?? '/usr/bin/chromium';
const SCREENSHOTS = process.env.KILOKV_SCREENSHOTS;

export const jsonAnswer = (status, error) => ({
  status,
  contentType: 'application/json',
  body: JSON.stringify({ error }),
});
export const textAnswer = (status, body) => ({ status, contentType: 'text/plain', body });

const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 360, height: 740 };
export const VIEWS = ['overview', 'hot', 'waiting', 'slow', 'clients', 'keys', 'transaction', 'bank'];

// A refused call is no fault of the page, but Chromium writes it to its console.
const isRefusedCall = (message) =>
  message.text().startsWith('Failed to load resource') && (message.location().url ?? '').includes('/console/api/');

export class ConsolePage {
  problems = [];

  static async open(server, { view = '', ready = true } = {}) {
    const self = new ConsolePage();
    self.server = server;
    // Neither root nor a container has what the sandbox needs, and the only pages here are those of the console.
    const args = ['--no-sandbox', '--disable-dev-shm-usage'];
    self.browser = await puppeteer.launch({
      executablePath: CHROMIUM,
      headless: true,
      args,
    });
    self.page = await self.browser.newPage();
    await self.page.setViewport(WIDE);
    self.#watch();
    await self.page.goto(`${server.url}#${view}`);
    if (ready) await self.waitFor('[role=tab][aria-selected=true]');
    return self;
  }

  #watch() {
    const { page, problems } = this;
    const origin = new URL(this.server.url).origin;
    page.on('pageerror', (error) => problems.push(`error: ${error.stack ?? error.message}`));
    page.on('dialog', (dialog) => {
      problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('console', (message) => {
      const isBad = message.type() === 'error' || message.type() === 'warn';
      if (isBad && !isRefusedCall(message)) problems.push(`console: ${message.text()} ${message.location().url ?? ''}`);
    });
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${origin}/console/`) && !url.startsWith('data:')) problems.push(`request: ${url}`);
    });
  }

  waitFor(selector) {
    return this.page.waitForSelector(selector, { visible: true, timeout: 20_000 * SLOWER });
  }

  // What a person sees of the elements.
  texts(selector) {
    return this.page.$$eval(selector, (nodes) =>
      nodes.filter((node) => node.checkVisibility()).map((node) => node.innerText),
    );
  }

  async text(selector) {
    return (await this.texts(selector)).join('\n');
  }

  // Waits until the visible text has this part, or matches it.
  async waitForText(selector, wanted, seconds = 20) {
    let text = '';
    const matches = async () => {
      text = await this.text(selector);
      return wanted instanceof RegExp ? wanted.test(text) : text.includes(wanted);
    };
    try {
      await until(matches, `"${wanted}" in ${selector}`, seconds);
    } catch (error) {
      throw new Error(`${error.message}; it has: ${text.slice(0, 2000)}`);
    }
    return text;
  }

  async view(name) {
    await this.waitFor(`#tab-${name}`);
    await this.page.click(`#tab-${name}`);
    await this.waitFor(`#view-${name}`);
  }

  // Presses the visible button with this text.
  async press(text, within = 'body') {
    const find = (scope, wanted) => {
      const buttons = [...document.querySelector(scope).querySelectorAll('button')];
      return buttons.find((button) => button.innerText === wanted && button.checkVisibility() && !button.disabled);
    };
    const handle = await until(async () => {
      const found = await this.page.evaluateHandle(find, within, text);
      return found.asElement();
    }, `a button "${text}"`);
    await handle.click();
  }

  // The field below the visible label with this text.
  async field(label, { within = 'body', at = 0 } = {}) {
    const find = (scope, wanted, index) => {
      const labels = [...document.querySelector(scope).querySelectorAll('label')];
      const fitting = labels.filter((one) => one.innerText === wanted && one.checkVisibility());
      return fitting[index]?.control ?? null;
    };
    const handle = await this.page.evaluateHandle(find, within, label, at);
    const element = handle.asElement();
    assert.ok(element, `a field "${label}"`);
    return element;
  }

  async fill(label, text, where) {
    const field = await this.field(label, where);
    await field.evaluate((node) => {
      node.value = '';
    });
    await field.type(text);
  }

  async choose(label, value, where) {
    await (await this.field(label, where)).select(value);
  }

  async colours(scheme) {
    await this.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  }

  async narrow() {
    await this.page.setViewport(NARROW);
  }

  // How many pixels the page is wider than its window.
  sidewaysScroll() {
    return this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  }

  // Answers requests in place of the server until the returned function is called. `answerOf(path)` gives an answer, or
  // nothing for the server's own, or 'never'.
  async intercept(answerOf) {
    const held = [];
    const handle = (request) => {
      const answer = answerOf(new URL(request.url()).pathname);
      if (answer === 'never') held.push(request);
      else void (answer ? request.respond(answer) : request.continue());
    };
    this.page.on('request', handle);
    await this.page.setRequestInterception(true);
    return async () => {
      await Promise.all(held.map((request) => request.continue()));
      this.page.off('request', handle);
      await this.page.setRequestInterception(false);
    };
  }

  async screenshot(name) {
    if (!SCREENSHOTS) return;
    mkdirSync(SCREENSHOTS, { recursive: true });
    await this.page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
  }
}
