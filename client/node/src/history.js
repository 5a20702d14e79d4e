// Lines of a history, which any checker can read to judge the answers of a server. docs/history.md explains the fields.
// Each function returns a whole line, with its newline.
//
// The lines are put together as text, because JSON.stringify() cannot write a BigInt as a number.
import { checkOptions, toBytes, toInt64 } from './arguments.js';
import { misuse } from './make_errors.js';
import { OnFalse, OperationKind, guardNames, operationNames } from './kinds.js';
import { messageOf } from './transaction.js';

const isPrintable = (bytes) => bytes.every((byte) => byte >= 0x20 && byte <= 0x7e);

const bytesText = (bytes) => `{"b64": "${Buffer.from(bytes).toString('base64')}"}`;
const keyText = (key) => (isPrintable(key) ? JSON.stringify(Buffer.from(key).toString('latin1')) : bytesText(key));

function valueText(value) {
  if (value === null) return 'null';
  return typeof value === 'bigint' ? String(value) : bytesText(value);
}

const orNull = (number) => (number === null ? 'null' : String(number));

// Fields are pairs of a name and a text of JSON; a field without a text is left out.
function objectText(fields) {
  const shown = fields.filter(([, text]) => text !== undefined);
  return `{${shown.map(([name, text]) => `"${name}": ${text}`).join(', ')}}`;
}

const listText = (list, text) => `[${list.map(text).join(', ')}]`;

function guardText({ kind, onFalse, key, range, operand }) {
  const texts = {
    integer: ['value', String],
    otherKey: ['other', keyText],
    version: ['version', String],
    bytes: ['value', bytesText],
    timeUs: ['time_us', String],
  };
  const [name, text] = texts[operand.case] ?? [];
  return objectText([
    ['is', `"${guardNames.get(kind)}"`],
    ['from', range && keyText(range.from)],
    ['to', range && keyText(range.to)],
    ['key', range || operand.case === 'timeUs' ? undefined : keyText(key)],
    ...(name ? [[name, text(operand.value)]] : []),
    ['when_false', onFalse === OnFalse.WAIT ? '"wait"' : '"fail"'],
  ]);
}

function operandText({ kind }) {
  switch (kind.case) {
    case 'bytes':
      return bytesText(kind.value);
    case 'get':
      return `{"get": ${kind.value}}`;
    case 'getNegated':
      return `{"get": ${kind.value}, "negate": true}`;
    case 'commitVersion':
      return '{"commit_version": true}';
    case 'batchTime':
      return '{"batch_time": true}';
    default:
      return String(kind.value);
  }
}

function operationText({ kind, key, range, limit, operand, expiry }) {
  const reverse = kind === OperationKind.range_get_reverse;
  return objectText([
    ['op', `"${reverse ? 'range_get' : operationNames.get(kind)}"`],
    ['from', range && keyText(range.from)],
    ['to', range && keyText(range.to)],
    ['limit', range && String(limit)],
    ['reverse', reverse ? 'true' : undefined],
    ['key', range ? undefined : keyText(key)],
    [kind === OperationKind.add ? 'delta' : 'value', operand && operandText(operand)],
    ['ttl_us', expiry.case === 'ttlUs' ? String(expiry.value) : undefined],
    ['expires_at_us', expiry.case === 'expiresAtUs' ? String(expiry.value) : undefined],
  ]);
}

function transactionFields({ precedence, waitTimeoutUs, expireRunsElse, guards, then, else: otherwise }) {
  return [
    ['precedence', String(precedence)],
    ['wait_timeout_ms', String(Number(waitTimeoutUs) / 1000)],
    ['expire_runs_else', expireRunsElse ? 'true' : undefined],
    ['guards', listText(guards, guardText)],
    ['then', listText(then, operationText)],
    ['else', listText(otherwise, operationText)],
  ];
}

// A read of a transaction, or a pair of a scan, which has an expiry.
const readText = ({ key, value, version, expiresAtUs = null }) =>
  objectText([
    ['key', keyText(toBytes(key, 'key'))],
    ['value', valueText(value)],
    ['version', orNull(version)],
    ['expires_at_us', expiresAtUs === null ? undefined : String(expiresAtUs)],
  ]);

const SENDER = ['session', 'request', 'attempts', 'beganUs', 'invokeUs', 'returnUs'];

function senderFields(sender, index) {
  checkOptions(sender, SENDER, 'the sender');
  const { session = '', request = 0n, attempts = 1, beganUs = 0n, invokeUs, returnUs = null } = sender;
  const sinceBegin = (time, field) => String(toInt64(time, field) - toInt64(beganUs, 'beganUs'));
  return [
    ['session', session ? `"${session}"` : 'null'],
    ['request', String(request)],
    ['index', String(index)],
    ['attempts', String(attempts)],
    ['invoke_us', sinceBegin(invokeUs, 'invokeUs')],
    ['return_us', returnUs === null ? 'null' : sinceBegin(returnUs, 'returnUs')],
  ];
}

function outcomeFields(result, error) {
  if (!result) {
    if (!error) throw misuse('a history line needs a result or an error');
    const notRun = error.mayHaveRun ? 'false' : error.notRun ? 'true' : undefined;
    return [
      ['outcome', 'null'],
      ['error', `"${error.code}"`],
      ['not_run', notRun],
    ];
  }
  if (result.outcome === 'CANCELLED')
    return [
      ['outcome', 'null'],
      ['error', '"CANCELLED"'],
      ['cancelled', 'true'],
    ];
  const failed = result.failedIn === 'guards' ? 'failed_guard' : 'failed_operation';
  return [
    ['outcome', `"${result.outcome}"`],
    [failed, result.failedIn === null ? undefined : String(result.failedIndex)],
    ['version', orNull(result.version)],
    ['batch', String(result.batch)],
    ['rank', String(result.rank)],
    ['admitted_batch', String(result.admittedBatch)],
    ['batch_time_us', String(result.batchTimeUs)],
    ['reads_dropped', result.readsDropped ? 'true' : undefined],
    ['reads', listText(result.reads, readText)],
  ];
}

// The first line. `config`: what the run was, for people. `initial`: the pairs that were there before.
export function historyHeader(config = {}, initial = []) {
  const fields = [
    ['format', '"kilokv-history-2"'],
    ['config', JSON.stringify(config)],
    ['initial', listText(initial, readText)],
  ];
  return `${objectText(fields)}\n`;
}

// The line of a transaction. `sender`: session (hexadecimal; '': none), request, attempts, beganUs, invokeUs, returnUs
// (null: no answer). `answer`: its Result, or the error of its request.
export function historyLine(transaction, answer, sender, index = 0) {
  const isError = answer instanceof Error;
  const fields = outcomeFields(isError ? null : answer, isError ? answer : null);
  return `${objectText([...senderFields(sender, index), ...transactionFields(messageOf(transaction)), ...fields])}\n`;
}

// The line of a whole scan at one boundary. `scan`: a Scan that was read; `pairs`: its pairs; `limit` 0: none.
export function historyScanLine(options, scan, pairs, sender) {
  checkOptions(options, ['from', 'to', 'limit'], 'the range of the scan');
  if (typeof scan?.boundary !== 'bigint') throw misuse('scan must be a Scan that was read', { field: 'scan' });
  if (!Array.isArray(pairs)) throw misuse('pairs must be a list', { field: 'pairs' });
  const { from = '', to = '', limit = 0 } = options;
  const range = [
    ['from', keyText(Buffer.from(toBytes(from, 'from')))],
    ['to', keyText(Buffer.from(toBytes(to, 'to')))],
    ['limit', String(limit)],
  ];
  return `${objectText([
    ...senderFields(sender, 0),
    ['scan', objectText(range)],
    ['outcome', '"COMMITTED"'],
    ['version', 'null'],
    ['batch', String(scan.boundary)],
    ['rank', 'null'],
    ['admitted_batch', String(scan.boundary)],
    ['batch_time_us', String(scan.batchTimeUs)],
    ['reads', listText(pairs, readText)],
  ])}\n`;
}
