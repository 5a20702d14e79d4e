// The status of a server. Counters have the names of the fields of StatusResponse.
import { ScalarType } from '@bufbuild/protobuf';

import { toHex } from './arguments.js';
import { fieldsOf, numbers } from './protocol.js';

const STATES = numbers('ServerSection.State', {
  recovering: 'STATE_RECOVERING',
  ready: 'STATE_READY',
  draining: 'STATE_DRAINING',
  stopped: 'STATE_STOPPED',
});
const stateNames = new Map(Object.entries(STATES).map(([name, number]) => [number, name]));

export function stateOf(answer) {
  return stateNames.get(answer.server?.state) ?? 'unknown';
}

const texts = (list) => Object.fromEntries(list.map(({ name, text }) => [name, text]));

// All numbers of all sections. A section that the server has not sent has none.
function countersOf(answer) {
  const counters = {};
  for (const section of fieldsOf('StatusResponse')) {
    if (section.fieldKind !== 'message' || !answer[section.localName]) continue;
    for (const field of fieldsOf(section.message.name)) {
      const isCounter = field.fieldKind === 'scalar' && field.scalar === ScalarType.UINT64;
      if (isCounter) counters[field.name] = answer[section.localName][field.localName];
    }
  }
  return counters;
}

export function statusOf(answer) {
  const { server, position, device, checks, memory } = answer;
  return {
    state: stateOf(answer),
    version: server?.serverVersion ?? '',
    strategy: server?.strategy ?? '',
    threads: server?.threads ?? 0,
    insecure: server?.insecure ?? false,
    readOnly: server?.readOnly ?? false,
    incarnation: toHex(server?.incarnation ?? []),
    uptimeSeconds: server?.uptimeSeconds ?? 0,
    recoverySeconds: server?.recoverySeconds ?? 0,
    stateHash: toHex(position?.stateHash ?? []),
    device: device?.device ?? '',
    deviceModel: device?.deviceModel ?? '',
    deviceReason: device?.deviceReason ?? '',
    shadowRate: checks?.shadowRate ?? 0,
    settings: texts(answer.settings),
    details: texts(answer.details),
    memory: (memory?.owners ?? []).map(({ name, bytes, boundBytes }) => ({ name, bytes, boundBytes })),
    counters: countersOf(answer),
  };
}
