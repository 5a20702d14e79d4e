// Role: puts the page together.
import { ApiError } from './api.js';
import { BankAccounts, BankMovements, hasBank } from './bank.js';
import { Banner } from './banner.js';
import { Browser } from './browser.js';
import { Connections, Sessions } from './clients.js';
import { Connection } from './connection.js';
import { element, setText } from './dom.js';
import { Editor } from './editor.js';
import { HotKeys } from './hot_keys.js';
import { showText } from './keys.js';
import { Login } from './login.js';
import { Overview } from './overview.js';
import { Parked } from './parked.js';
import { Slow } from './slow.js';
import { Tabs } from './tabs.js';
import { themeButton } from './theme.js';

const LOOK_FOR_BANK_MS = 5000;

const connection = new Connection();
const overview = new Overview(connection);
const tabs = new Tabs();
const banner = new Banner(connection);
const login = new Login(connection);

function addViews() {
  const accounts = new BankAccounts(connection);
  tabs.add('overview', 'Overview', [overview]);
  tabs.add('hot', 'Hot keys', [new HotKeys(connection)]);
  tabs.add('waiting', 'Waiting', [new Parked(connection)]);
  tabs.add('slow', 'Slow', [new Slow(connection)]);
  tabs.add('clients', 'Clients', [new Sessions(connection), new Connections(connection)]);
  tabs.add('keys', 'Keys', [new Browser(connection)]);
  tabs.add('transaction', 'Transaction', [new Editor(connection)]);
  tabs.add('bank', 'Bank', [accounts, new BankMovements(connection, accounts)], { className: 'beside', hidden: true });
}

// The state of the server beside its name. Only a user with the metrics right sees more than that it answers.
function stateText() {
  if (connection.state === 'unreachable') return ['no answer', 'bad'];
  if (connection.state === 'away') return ['not ready', 'warn'];
  if (connection.state === 'busy') return ['busy', 'warn'];
  if (connection.state === 'refused') return ['refused', 'bad'];
  if (connection.state !== 'ok') return ['', ''];
  const { server } = overview.status;
  if (!server) return ['connected', 'good'];
  const state = server.state.replace('STATE_', '').toLowerCase();
  const words = [state, server.read_only && 'read-only', server.insecure && 'insecure'].filter(Boolean);
  return [words.join(', '), state === 'ready' && !server.insecure ? 'good' : 'warn'];
}

function header() {
  const version = element('span', { className: 'version' });
  const state = element('span', { className: 'state', hidden: true });
  const user = element('span', { className: 'user' });
  const logout = element('button', { type: 'button', className: 'quiet', hidden: true, onclick: logOut }, 'Log out');
  const update = () => {
    const { session } = connection;
    const [text, mood] = stateText();
    setText(version, session.version);
    setText(state, text);
    state.className = `state ${mood}`;
    state.hidden = !text;
    setText(user, session.user ? showText(session.user) : '');
    logout.hidden = !session.user;
  };
  connection.addEventListener('change', update);
  overview.statusChanged = update;
  return element(
    'header',
    { className: 'top' },
    element('img', { src: 'logo.svg', alt: '', width: '26', height: '26' }),
    element('h1', {}, 'KiloKV'),
    version,
    state,
    element('span', { className: 'space' }),
    user,
    logout,
    themeButton(() => overview.redraw()),
  );
}

async function logOut() {
  try {
    await connection.logout();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    connection.report(error);
  }
}

// The view of the bank appears with the first account.
async function lookForBank() {
  if (connection.state === 'ok') {
    try {
      tabs.setHidden('bank', !(await hasBank()));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (!connection.report(error) && error.kind === 'right') tabs.setHidden('bank', true);
    }
  }
  setTimeout(lookForBank, LOOK_FOR_BANK_MS);
}

function showState() {
  const { state } = connection;
  login.hidden = !connection.needsLogin; // the form stays while the server is away
  tabs.list.hidden = connection.needsLogin || state === 'starting';
  tabs.content.hidden = tabs.list.hidden;
}

async function start() {
  const wanted = location.hash.slice(1);
  addViews();
  const skip = element(
    'a',
    {
      href: '#views',
      className: 'skip',
      onclick: (event) => {
        event.preventDefault();
        tabs.content.focus();
      },
    },
    'To the content',
  );
  tabs.content.tabIndex = -1;
  document.body.append(skip, header(), banner.node, tabs.list, login.node, tabs.content);
  connection.addEventListener('change', showState);
  showState();
  tabs.select(wanted);
  overview.show();
  await connection.start();
  await lookForBank();
  if (wanted === 'bank') tabs.select('bank');
}

void start();
