// The public surface of the package. index.d.ts describes it.
export { Client, connect } from './client.js';
export { ColumnResults, TransactionColumns } from './columns.js';
export * from './errors.js';
export { historyHeader, historyLine, historyScanLine } from './history.js';
export { InteractiveTransaction } from './interactive.js';
export { Read, Result } from './results.js';
export { Scan } from './scan.js';
export { Request, Session } from './session.js';
export { FAIL, Transaction, WAIT, batchTime, commitVersion, fromGet, keyNamed } from './transaction.js';
export { AttachedSession } from './attach.js';
export { Watch } from './watch.js';
