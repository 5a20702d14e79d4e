// Role: who uses the server: the open sessions and the open connections.
import { callForFewer } from './fewer.js';
import { showText } from './keys.js';
import * as numbers from './numbers.js';
import { Panel } from './panel.js';
import { Table } from './table.js';

const LIMIT = 200;

const user = ({ user: name }) => (name ? showText(name) : 'no login');

function countOf(shown, all) {
  const count = numbers.whole(all);
  return BigInt(all) > BigInt(shown) ? `${count}, the first ${shown} are shown` : count;
}

// A list that one call answers. `field`: where the answer has it.
class List extends Panel {
  #table;
  #method;
  #field;

  constructor(connection, { method, field, caption, empty, keyOf, columns, ...options }) {
    super(connection, { right: 'the metrics right', ...options });
    this.#method = method;
    this.#field = field;
    this.#table = new Table({ caption, empty, keyOf, columns });
    this.body.append(this.#table.node);
  }

  async refresh() {
    const { answer } = await callForFewer(this.#method, {}, LIMIT);
    const list = answer[this.#field];
    this.setCount(countOf(list.length, answer.count));
    this.#table.update(list);
  }

  reset() {
    this.#table.update([]);
  }
}

export class Sessions extends List {
  constructor(connection) {
    super(connection, {
      title: 'Sessions',
      note: 'A session makes retries safe: each request is applied once. Only the beginning of its id is shown, because the id is a secret.',
      method: 'ListSessions',
      field: 'sessions',
      caption: 'Open sessions',
      empty: 'No session is open.',
      keyOf: ({ id }) => id,
      columns: [
        { title: 'session', className: 'mono', text: ({ id }) => showText(id) },
        { title: 'user', text: user },
        {
          title: 'lease left',
          number: true,
          text: ({ lease_left_us: us }) => numbers.duration(us),
          hint: ({ lease_us: us }) => `of ${numbers.duration(us)}`,
        },
        { title: 'holder', number: true, text: ({ holder }) => numbers.whole(holder) },
        { title: 'acked to', number: true, text: ({ acknowledged_through: through }) => numbers.whole(through) },
        {
          title: 'kept',
          number: true,
          text: ({ requests }) => numbers.whole(requests),
          hint: () => 'Requests that are not acknowledged',
        },
        { title: 'in flight', number: true, text: ({ requests_in_flight: inFlight }) => numbers.whole(inFlight) },
        { title: 'uploads', number: true, text: ({ uploads }) => numbers.whole(uploads) },
        { title: 'stored', number: true, text: ({ stored_bytes: size }) => numbers.bytes(size) },
        { title: 'reserved', number: true, text: ({ reserved_bytes: size }) => numbers.bytes(size) },
      ],
    });
  }
}

export class Connections extends List {
  constructor(connection) {
    super(connection, {
      title: 'Connections',
      note: 'Open connections of gRPC. Those that have sent the most bytes come first.',
      method: 'ListConnections',
      field: 'connections',
      caption: 'Open connections',
      empty: 'No connection is open.',
      keyOf: ({ peer }) => peer,
      columns: [
        { title: 'peer', className: 'mono', text: ({ peer }) => showText(peer) },
        { title: 'user', text: user },
        { title: 'age', number: true, text: ({ age_us: us }) => numbers.duration(us) },
        { title: 'received', number: true, text: ({ received_bytes: size }) => numbers.bytes(size) },
        { title: 'open calls', number: true, text: ({ open_calls: calls }) => numbers.whole(calls) },
        { title: 'unfinished', number: true, text: ({ unfinished_bytes: size }) => numbers.bytes(size) },
      ],
    });
  }
}
