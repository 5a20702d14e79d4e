// The options of a client. Where an option is missing, a variable of the environment gives it, as for the programs of
// KiloKV (docs/security.md). An empty variable counts as unset.
import { readFileSync } from 'node:fs';

import { checkOptions, toMicroseconds, toText } from './arguments.js';
import { misuse } from './make_errors.js';

const NAMES = [
  'endpoint',
  'connectTimeoutMs',
  'waitForServerMs',
  'requestTimeoutMs',
  'backoffMinMs',
  'backoffMaxMs',
  'tls',
  'token',
  'tokenFile',
];
const TLS_VARIABLES = {
  caFile: 'KILOKV_CLIENT_TLS_CA',
  certFile: 'KILOKV_CLIENT_TLS_CERT',
  keyFile: 'KILOKV_CLIENT_TLS_KEY',
  serverName: 'KILOKV_CLIENT_TLS_SERVER_NAME',
};
const TOKEN = /^kilokv_[0-9a-f]{16}_[0-9a-f]{64}$/;

function checkEndpoint(endpoint, where) {
  const url = /^(\w+:\/\/)(.*?)\/*$/.exec(toText(endpoint, 'endpoint'));
  if (url) {
    const hint = `write ${url[2]}, without ${url[1]}`;
    throw misuse(`${where}"${endpoint}" is not HOST:PORT: ${hint}`, { field: 'endpoint' });
  }
  const parts = /^(.+):(\d{1,5})$/.exec(endpoint);
  const port = parts ? Number(parts[2]) : 0;
  if (port >= 1 && port <= 65535) return { endpoint, host: parts[1], port };
  throw misuse(`${where}"${endpoint}" is not HOST:PORT with a port from 1 to 65535, such as 127.0.0.1:7070`, {
    field: 'endpoint',
  });
}

// Returns null (no TLS), or the names of the files and of the server.
function tlsOf(given, environment) {
  if (given === false) return null;
  const wanted = environment.KILOKV_CLIENT_TLS ?? '';
  if (!['', '0', '1'].includes(wanted)) throw misuse(`the variable KILOKV_CLIENT_TLS: "${wanted}" is not 0 or 1`);
  if (given !== undefined && given !== true) checkOptions(given, Object.keys(TLS_VARIABLES), 'the option tls');
  const tls = {};
  for (const [name, variable] of Object.entries(TLS_VARIABLES))
    tls[name] = toText(given?.[name] ?? '', `tls.${name}`) || environment[variable] || '';
  const named = Object.values(tls).some((value) => value !== '');
  return given !== undefined || wanted === '1' || named ? tls : null;
}

function readToken(file, where) {
  let text;
  try {
    text = readFileSync(file, 'utf8').replace(/[ \r\n]+$/, '');
  } catch (error) {
    throw misuse(`${where}: cannot read ${file}: ${error.message}`, { field: 'tokenFile', cause: error });
  }
  if (text === '') throw misuse(`${where}: ${file} is empty, and should hold a token`, { field: 'tokenFile' });
  return text;
}

function tokenOf(options, environment) {
  if (options.token !== undefined && options.tokenFile !== undefined) throw misuse('give token or tokenFile, not both');
  if (options.token !== undefined) return toText(options.token, 'token');
  if (options.tokenFile !== undefined) return readToken(toText(options.tokenFile, 'tokenFile'), 'the option tokenFile');
  const file = environment.KILOKV_CLIENT_TOKEN_FILE;
  if (file) return readToken(file, 'the variable KILOKV_CLIENT_TOKEN_FILE');
  return environment.KILOKV_CLIENT_TOKEN ?? '';
}

// A client without TLS sends its token to this machine only.
function checkToken(token, tls, { endpoint, host }) {
  if (token === '') return;
  if (!TOKEN.test(token))
    throw misuse('the token is malformed: a token is kilokv_, 16 hex digits, _ and 64 hex digits');
  const here = host === 'localhost' || host === '[::1]' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
  if (!tls && !here) throw misuse(`no token is sent to ${endpoint} without TLS: use TLS, or no token`);
}

const milliseconds = (options, name, absent) =>
  options[name] === undefined ? absent : Number(toMicroseconds(options[name], name)) / 1000;

// Returns all options, checked. `environment`: process.env.
export function resolveOptions(options, environment) {
  checkOptions(options, NAMES, 'the options of connect()');
  const named = environment.KILOKV_ENDPOINT;
  const place =
    options.endpoint === undefined && named
      ? checkEndpoint(named, 'the variable KILOKV_ENDPOINT: ')
      : checkEndpoint(options.endpoint === undefined ? '127.0.0.1:7070' : options.endpoint, '');
  const tls = tlsOf(options.tls, environment);
  const token = tokenOf(options, environment);
  checkToken(token, tls, place);
  return Object.freeze({
    ...place,
    tls,
    token,
    connectTimeoutMs: milliseconds(options, 'connectTimeoutMs', 10_000),
    waitForServerMs: milliseconds(options, 'waitForServerMs', 0),
    requestTimeoutMs: milliseconds(options, 'requestTimeoutMs', 30_000),
    backoffMinMs: milliseconds(options, 'backoffMinMs', 10),
    backoffMaxMs: milliseconds(options, 'backoffMaxMs', 1000),
  });
}
