// What a request carries: transactions as rows or as columns.
//
// A work has its size, the longest time that it may wait on the server (waitMs), its bytes in a request (payload()),
// and a collector for its results. A collector takes the answers of the server (add() returns the indices of
// transactions that have a result now), knows whether all are there (complete), and returns what the program gets
// (value()).
import { encodeTransactionColumns, payloadOf } from './column_codec.js';
import { ColumnResults, TransactionColumns, longestWaitOfColumns } from './columns.js';
import { misuse } from './make_errors.js';
import { decode } from './protocol.js';
import { RowResults } from './results.js';
import { encodeRows, longestWaitMs, messageOf } from './transaction.js';

class RowWork {
  #bytes;

  constructor(transactions, single) {
    this.messages = transactions.map(messageOf);
    if (this.messages.length === 0) throw misuse('the request has no transaction');
    this.single = single;
    this.size = this.messages.length;
    this.waitMs = longestWaitMs(this.messages);
  }

  // The field `rows` of a request of this type.
  payload(request) {
    this.#bytes ??= encodeRows(this.messages);
    return payloadOf(request, 'rows', this.#bytes);
  }

  collector() {
    const results = new RowResults(this.size);
    return {
      get complete() {
        return results.complete;
      },
      add: (answer) => (answer.rows ? results.add(decode('ResultRows', answer.rows).results) : []),
      addRows: (rows) => results.add(rows),
      at: (index) => results.at(index),
      value: () => (this.single ? results.at(0) : results.list()),
      list: () => results.list(),
    };
  }
}

class ColumnWork {
  constructor(columns) {
    this.columns = columns;
    this.single = false;
    this.size = columns.size;
    this.waitMs = longestWaitOfColumns(columns);
  }

  payload(request) {
    return payloadOf(request, 'columns', encodeTransactionColumns(this.columns));
  }

  collector() {
    const results = new ColumnResults(this.size);
    return {
      get complete() {
        return results.complete;
      },
      add: (answer) => (answer.columns ? results.add(answer.columns) : []),
      at: (index) => results.at(index),
      value: () => results,
      list: () => Array.from({ length: results.size }, (_, index) => results.at(index)),
    };
  }
}

// `given`: a Transaction, a list of them, or TransactionColumns. Throws a MisuseError if it is something else.
export function workOf(given) {
  if (given instanceof TransactionColumns) return new ColumnWork(given);
  return Array.isArray(given) ? new RowWork(given, false) : new RowWork([given], true);
}
