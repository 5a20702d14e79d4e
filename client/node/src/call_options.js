// The options that calls share: how long they may take, how the program ends them, and the trace that they belong to.
import { checkOptions, toMicroseconds } from './arguments.js';
import { abortError, misuse } from './make_errors.js';

export const CALL_OPTIONS = ['timeoutMs', 'signal', 'traceparent'];

// VERSION-TRACE-SPAN-FLAGS in lower-case hexadecimal digits, as in W3C Trace Context. A later version may add to it.
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]*)?$/;
const TRACEPARENT_BYTES_MAX = 256;

function checkTrace(text) {
  const match = typeof text === 'string' && text.length <= TRACEPARENT_BYTES_MAX ? TRACEPARENT.exec(text) : null;
  if (match && (match[2] === undefined || match[1] !== '00')) return;
  const example = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01';
  throw misuse(
    `traceparent is malformed: it must have the form of this header in W3C Trace Context, such as ${example}`,
    {
      field: 'traceparent',
    },
  );
}

// Checks the options of a call. `further`: names of options that it has besides. Returns timeoutMs (undefined: the
// default of the client), signal and traceparent. Throws an AbortError if the signal has aborted already.
export function callOptions(options, further = []) {
  checkOptions(options, [...CALL_OPTIONS, ...further], 'the options of the call');
  const { timeoutMs, signal, traceparent } = options;
  if (timeoutMs !== undefined && timeoutMs !== Infinity) toMicroseconds(timeoutMs, 'timeoutMs');
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw misuse('signal must be an AbortSignal', { field: 'signal' });
  if (traceparent !== undefined) checkTrace(traceparent);
  if (signal?.aborted) throw abortError(signal, { notRun: true });
  return { timeoutMs, signal, traceparent };
}
