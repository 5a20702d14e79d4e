// The types of the package kilokv. docs/node.md is the manual.
//
// 64-bit numbers of answers are bigint. Where a program gives one, a number is accepted, too, if it is a safe integer.
// Keys and bytes of answers are Buffers of their own. Where a program gives bytes, a string stands for its UTF-8.
// Every function that takes options refuses names that it does not know.

export type Integer = bigint | number;
export type Bytes = Uint8Array | string;
/** The value of a key: an integer, bytes, or null if the key is absent. */
export type Value = bigint | Buffer | null;

// Connections

export interface TlsOptions {
  /** PEM file of the authorities that the server's certificate may come from. Default: those of the system. The
   * variables are KILOKV_CLIENT_TLS_CA, _CERT, _KEY and _SERVER_NAME. */
  caFile?: string;
  /** PEM files of the client's own certificate and its key, if the server asks for one. */
  certFile?: string;
  keyFile?: string;
  /** The name that the server's certificate must have. Default: the host of the endpoint. */
  serverName?: string;
}

/** An option that is missing comes from its variable of the environment, if it has one. */
export interface ClientOptions {
  /** HOST:PORT. Variable: KILOKV_ENDPOINT. Default: 127.0.0.1:7070. */
  endpoint?: string;
  /** The longest time that connect() takes, in milliseconds. Default: 10,000. */
  connectTimeoutMs?: number;
  /**
   * Milliseconds for which connect() waits until the server listens and has recovered. Default: 0. Then it fails at
   * once if no KiloKV server can be at the endpoint, and accepts a server that still recovers.
   */
  waitForServerMs?: number;
  /** The default timeout of a call with its retries and without its waits, in milliseconds. Default: 30,000. */
  requestTimeoutMs?: number;
  /** The delays before retries, in milliseconds. They double from the first to the second. Default: 10 and 1,000. */
  backoffMinMs?: number;
  backoffMaxMs?: number;
  /** `true`: TLS with the authorities of the system. `false`: no TLS. Variable: KILOKV_CLIENT_TLS. */
  tls?: boolean | TlsOptions;
  /** The token for a server with logins. Without TLS it is sent to this machine only. Variable: KILOKV_CLIENT_TOKEN. */
  token?: string;
  /** A file with the token. Variable: KILOKV_CLIENT_TOKEN_FILE. */
  tokenFile?: string;
}

/**
 * Connects to a server.
 * @throws MisuseError for wrong options; UnavailableError: there is no server; UnauthenticatedError: it does not accept
 * this client, or the client does not accept its certificate.
 */
export function connect(options?: ClientOptions): Promise<Client>;

export interface CallOptions {
  /** Milliseconds for the call with its retries and waits. Default: requestTimeoutMs plus the longest waitTimeoutMs. */
  timeoutMs?: number;
  /** Ends the call with an AbortError. What was sent is cancelled on the server, if it is not decided yet. */
  signal?: AbortSignal;
  /** The trace that the call belongs to, as in the header of W3C Trace Context. */
  traceparent?: string;
}

export interface SessionOptions {
  /** How long the session lives without its client, in milliseconds. Default: that of the server (60,000). */
  leaseMs?: number;
  /** Requests that are sent and not answered. More wait in the client. Default: 1,024. */
  requestsInFlightMax?: number;
}

export interface AttachOptions {
  /** The highest number that the program before may have used, if it is known. New requests get higher numbers. */
  numbersUsed?: Integer;
  requestsInFlightMax?: number;
}

/** What a program sends: one transaction, a list of them as one request, or columns. */
export type Content = Transaction | readonly Transaction[] | TransactionColumns;
/** What it gets: a Result, a list in the order of the transactions, or results in columns. */
export type Answer<C extends Content> = C extends Transaction
  ? Result
  : C extends TransactionColumns
    ? ColumnResults
    : Result[];

/** A client of one server, from connect(). */
export class Client {
  private constructor();
  readonly endpoint: string;
  /** Closes the sessions, the watches and the connection. Without it, a session keeps the program running. */
  close(): Promise<void>;

  openSession(options?: SessionOptions): Promise<Session>;
  /**
   * Takes over the session of a program that has gone, by its id. The other program can send nothing more in it.
   * @throws SessionUnknownError: the session has ended; SessionFencedError: another client attaches at the same time.
   */
  attachSession(id: string, options?: AttachOptions): Promise<AttachedSession>;

  /**
   * Executes without a session. What may have run is never sent again: a lost answer is an UnavailableError, and then
   * nobody knows the outcome. `detached`: the transactions go on if the call ends early.
   */
  execute<C extends Content>(content: C, options?: CallOptions & { detached?: boolean }): Promise<Answer<C>>;
  /** Reads a key. `version` is 0n if it was never written. */
  get(key: Bytes, options?: CallOptions): Promise<Read>;
  /** Reads 1 to 1,024 keys at one moment. The reads of the Result are in the order of the keys. */
  getMany(keys: readonly Bytes[], options?: CallOptions): Promise<Result>;
  /** A scan of the keys of a range. Nothing is sent before it is read. The timeout is for each page. */
  scan(options?: ScanOptions): Scan;
  /** A watch of the writes of a range. Nothing is sent before it is read. */
  watch(options?: WatchOptions): Watch;

  /** An interactive transaction for one attempt. Without `session`, the client uses one of its own. */
  begin(options?: CallOptions & { session?: Session }): InteractiveTransaction;
  /**
   * Runs `body` in an interactive transaction, and commits it, until there is no conflict. Returns what the last body
   * returned. An error of the body ends it. `timeoutMs` is for each call.
   * @throws ConflictError after `attemptsMax` conflicts (default: 100).
   */
  run<T>(
    body: (transaction: InteractiveTransaction) => Promise<T>,
    options?: CallOptions & { session?: Session; attemptsMax?: number },
  ): Promise<T>;

  /** All parked transactions, in the order in which they were parked. Needs the admin right. */
  listParked(options?: CallOptions): Promise<ParkedTransaction[]>;
  /** Cancels one parked transaction by its id, or all that a filter lets pass. Returns how many. */
  cancelParked(which: Integer | ParkedFilter, options?: CallOptions): Promise<bigint>;
  /** Cancels what is not decided of a request of a session, or one of its transactions. Returns how many. */
  cancel(
    which: { session: string; holder?: Integer; request: Integer; index?: number },
    options?: CallOptions,
  ): Promise<bigint>;
  status(options?: CallOptions): Promise<ServerStatus>;
  /** The open sessions: those with the most bytes first. `limit`: 1 to 10,000, default 100. Needs the metrics right. */
  listSessions(options?: CallOptions & { limit?: number }): Promise<{ count: bigint; sessions: SessionInfo[] }>;
}

// Sessions

export interface RequestOptions extends CallOptions {
  /** Called with each result as its transaction finishes, and with its index in the request. */
  onResult?: (result: Result, index: number) => void;
}

/** A session: each of its requests is applied once, however often it is sent. */
export class Session {
  private constructor();
  /** 32 hexadecimal digits. It is a secret: a client that has it can attach to the session. */
  readonly id: string;
  /** 0n: this client has opened the session. n: the n-th attach was its own. */
  readonly holder: bigint;
  /** Whether nothing can be sent in this session any more. */
  readonly ended: boolean;

  /**
   * Sends a request and waits for its results. It is sent again over lost connections and restarts of the server.
   * @throws KiloKVError with `request`, `attempts` and `results`. If `neverRan` is false, resume() tells the outcome.
   */
  execute<C extends Content>(content: C, options?: RequestOptions): Promise<Answer<C>>;
  /** The same, and returns at once what was sent. */
  submit<C extends Content>(content: C, options?: RequestOptions): Request<Answer<C>>;
  /**
   * Asks again for the results of one of the last 1,024 requests whose outcome is not known, with the same content. In
   * an attached session, also for one of the program before.
   */
  resume<C extends Content>(number: Integer, content: C, options?: RequestOptions): Request<Answer<C>>;
  /** Cancels what is not decided of a request, or one of its transactions. Returns how many. */
  cancel(number: Integer, index?: number, options?: CallOptions): Promise<bigint>;
  /** Only in an attached session: what has become of the requests that nobody has acknowledged. */
  knownRequests(options?: CallOptions): Promise<KnownRequest[]>;
  /** Only in an attached session: nothing more is needed of the requests of the program before, up to this number. */
  acknowledgeThrough(number: Integer): void;
  /** Ends the session. Requests in flight end as CANCELLED here. `keepOpen`: another client can attach to it. */
  close(options?: { keepOpen?: boolean }): Promise<void>;
}

/** A request that was sent. */
export class Request<A = Result | Result[] | ColumnResults> {
  private constructor();
  /** Its number in the session, from 1n. */
  readonly number: bigint;
  /** How often it was sent. */
  readonly attempts: number;
  /** What execute() would return. A program that does not await it must still handle its rejection. */
  readonly results: Promise<A>;
  /** The monotonic clock of this process in microseconds: when it was submitted, and when the last answer came. */
  readonly invokeUs: bigint;
  readonly returnUs: bigint | null;
  /** How often the server refused it for the moment; null: it was sent with an upload. */
  readonly refusals: { count: number; early: number; askedUs: bigint; waitedUs: bigint } | null;
  cancel(index?: number): Promise<bigint>;
}

export type RequestState = 'acknowledged' | 'not_known' | 'queued' | 'parked' | 'partly_decided' | 'decided';

/** `decided`, `parked` and `queued` count transactions. The rest of them does not run unless it is sent again. */
export interface KnownRequest {
  number: bigint;
  state: RequestState;
  transactions: number;
  decided: number;
  parked: number;
  queued: number;
  /** By the index of the transaction; undefined: it has no result. */
  results: (Result | undefined)[];
}

export class AttachedSession {
  private constructor();
  readonly session: Session;
  readonly requests: KnownRequest[];
  readonly acknowledgedThrough: bigint;
  /** The database was restored from a backup, and the session is from before. Nothing new runs in it. */
  readonly frozen: boolean;
  /** The incarnation of the database: 32 hexadecimal digits. */
  readonly incarnation: string;
  /** The state of any number. It is final if it is decided or not_known. */
  stateOf(number: Integer): RequestState;
}

// Transactions

export const FAIL: 'FAIL';
export const WAIT: 'WAIT';
export type OnFalse = 'FAIL' | 'WAIT';
export type Compare = '==' | '!=' | '<' | '<=' | '>' | '>=';

declare const operand: unique symbol;
/** A value that the server computes. */
export interface Operand {
  readonly [operand]: true;
}
declare const keyName: unique symbol;
/** A key where a value is expected. */
export interface KeyName {
  readonly [keyName]: true;
}
/** The value that the get at this index of the same list has read; `negate`: with the other sign. */
export function fromGet(index: number, options?: { negate?: boolean }): Operand;
/** The commit version of the transaction. */
export const commitVersion: Operand;
/** The time of the batch, in microseconds since the Unix epoch. */
export const batchTime: Operand;
/** The integer value of another key, in a guard. */
export function keyNamed(key: Bytes): KeyName;

/** When the key expires. The server deletes it some time after that. Give one of the two. */
export interface ExpiryOptions {
  /** Milliseconds after the time of the batch. */
  ttlMs?: number;
  /** Microseconds since the Unix epoch. */
  expiresAtUs?: Integer;
}

export interface TransactionOptions {
  /** 0 to 255. Within a pass of a batch, lower numbers come first. Default: 0. */
  precedence?: number;
  /** How long guards with WAIT may wait, in milliseconds. Default: 0, which waits only within the batch. */
  waitTimeoutMs?: number;
  /** If it waits in vain, the else-operations run. The outcome is still WAIT_EXPIRED. */
  expireRunsElse?: boolean;
}

/**
 * A transaction: guards, operations, and operations that run otherwise. The methods return the transaction.
 * @throws MisuseError, from each method, for arguments that the protocol cannot hold.
 */
export class Transaction {
  constructor(options?: TransactionOptions);
  guardExists(key: Bytes, onFalse?: OnFalse): this;
  guardAbsent(key: Bytes, onFalse?: OnFalse): this;
  /** Compares the integer of a key with a constant, or with another key. An absent key counts as 0. */
  guard(key: Bytes, compare: Compare, value: Integer | KeyName, onFalse?: OnFalse): this;
  /** The version of the key is exactly this one; 0: it was never written. */
  guardVersion(key: Bytes, version: Integer, onFalse?: OnFalse): this;
  /** The key was not written after this version. */
  guardUnchanged(key: Bytes, sinceVersion: Integer, onFalse?: OnFalse): this;
  guardBytes(key: Bytes, bytes: Bytes, onFalse?: OnFalse): this;
  /** No key of [from, to) was written after this version. An empty `to`: no upper bound. */
  guardRangeUnchanged(from: Bytes, to: Bytes, sinceVersion: Integer, onFalse?: OnFalse): this;
  /** The time of the batch is less than a time in microseconds, or than that in a key. It cannot wait. */
  guardTimeBefore(time: Integer | KeyName, onFalse?: 'FAIL'): this;
  /** The time of the batch is a time in microseconds, or that in a key, or later. */
  guardTimeAfter(time: Integer | KeyName, onFalse?: OnFalse): this;

  get(key: Bytes): this;
  /** Without an expiry, the key never expires. */
  put(key: Bytes, value: Integer | Bytes | Operand, options?: ExpiryOptions): this;
  delete(key: Bytes): this;
  /** Without an expiry, that of the key stays. */
  add(key: Bytes, delta: Integer | Operand, options?: ExpiryOptions): this;
  /** The first `limit` pairs of [from, to). */
  rangeGet(from: Bytes, to: Bytes, limit: number): this;
  /** The last `limit` pairs of [from, to), from the last key to the first. */
  rangeGetReverse(from: Bytes, to: Bytes, limit: number): this;
  /** Deletes the first `limit` keys of [from, to). */
  deleteRange(from: Bytes, to: Bytes, limit: number): this;
  /** The operations after it run if a guard fails. */
  otherwise(): this;
}

export type Outcome = 'COMMITTED' | 'GUARD_FAILED' | 'WAIT_EXPIRED' | 'OVERFLOW' | 'TYPE_MISMATCH' | 'CANCELLED';

export class Read {
  private constructor();
  /** The index of its operation in the list that ran. */
  readonly operation: number;
  readonly key: Buffer;
  readonly value: Value;
  /** null: the transaction's own earlier write; 0n: never written. */
  readonly version: bigint | null;
}

export class Result {
  private constructor();
  /** The index of the transaction in its request. */
  readonly index: number;
  readonly outcome: Outcome;
  readonly committed: boolean;
  /** The list that `failedIndex` refers to: the guard or operation that decided. */
  readonly failedIn: 'guards' | 'then' | 'else' | null;
  readonly failedIndex: number | null;
  /** Key, value and version of the guard that decided, if it has a key. */
  readonly guardValue: Read | null;
  readonly reads: Read[];
  /** The commit version; null: the transaction wrote nothing. */
  readonly version: bigint | null;
  /** The place in the one serial order, and the first batch that the transaction was part of. */
  readonly batch: bigint;
  readonly rank: number;
  readonly admittedBatch: bigint;
  /** Microseconds since the Unix epoch. */
  readonly batchTimeUs: bigint;
  /** The result was too large to be kept as a whole: its reads are missing, or the last of them. */
  readonly readsDropped: boolean;
}

// Columns

/** The columns of docs/columnar-layout.md, with names in camel case. Those of one byte are Uint8Arrays. */
export interface ColumnsOptions {
  thenEnds: Uint32Array;
  guardEnds?: Uint32Array;
  elseEnds?: Uint32Array;
  precedence?: Uint8Array;
  waitTimeoutUs?: BigUint64Array;
  expireRunsElse?: Uint8Array;
  keyEnds?: Uint32Array;
  keyLength?: number;
  keyBytes?: Uint8Array;
  guardKind?: Uint8Array;
  guardOnFalse?: Uint8Array;
  guardKey?: Uint32Array;
  guardOtherKey?: Uint32Array;
  guardOperand?: BigInt64Array;
  operationKind?: Uint8Array;
  operationOperand?: Uint8Array;
  operationKey?: Uint32Array;
  operationValue?: BigInt64Array;
  rangeFromEnds?: Uint32Array;
  rangeToEnds?: Uint32Array;
  rangeLimit?: Uint32Array;
  rangeBytes?: Uint8Array;
  valueEnds?: Uint32Array;
  valueBytes?: Uint8Array;
  expiryOperation?: Uint32Array;
  expiryKind?: Uint8Array;
  expiryUs?: BigInt64Array;
}

export interface KeysOptions {
  /** All keys one after the other, each of `keyLength` bytes. */
  keys: Bytes;
  keyLength: number;
  /** Default: 1. */
  operationsPerTransaction?: number;
}

/** Many transactions in typed arrays, which are not copied before they are sent. */
export class TransactionColumns {
  constructor(columns: ColumnsOptions);
  static of(transactions: readonly Transaction[]): TransactionColumns;
  /** Key i gets value i. */
  static put(options: KeysOptions & { values: BigInt64Array }): TransactionColumns;
  /** Value i is added to key i. */
  static add(options: KeysOptions & { values: BigInt64Array }): TransactionColumns;
  static get(options: KeysOptions): TransactionColumns;
  static delete(options: KeysOptions): TransactionColumns;
  /** The number of transactions. */
  readonly size: number;
}

/** The results of TransactionColumns, by the index of a transaction. */
export class ColumnResults {
  private constructor();
  readonly size: number;
  /** Whether all transactions have a result. */
  readonly complete: boolean;
  /** Numbers of the protocol: 1 is COMMITTED; 0: no answer has come. */
  readonly outcomes: Uint8Array;
  outcome(index: number): Outcome | undefined;
  /** How many transactions have this outcome. */
  count(outcome: Outcome): number;
  /** The result as an object; undefined: no answer has come. */
  at(index: number): Result | undefined;
  version(index: number): bigint | null;
  /** Read number `read` (default 0) of each transaction; 0n where it has read no integer. */
  integers(read?: number): BigInt64Array;
}

// Scans and interactive transactions

export interface RangeOptions {
  /** The range [from, to). Empty: no bound. */
  from?: Bytes;
  to?: Bytes;
  /** Instead of from and to: all keys that begin with it. */
  prefix?: Bytes;
  /** From the last key to the first. */
  reverse?: boolean;
  /** Most pairs, 1 or more. */
  limit?: number;
}

export interface ScanOptions extends RangeOptions, CallOptions {
  /** Most pairs in a page. Default: as many as the server has in a page. */
  pagePairs?: number;
  /** The boundary of a scan that is still read. Default: the newest one. */
  boundary?: Integer;
}

export interface Pair {
  key: Buffer;
  value: bigint | Buffer;
  version: bigint;
  /** When the key expires, in microseconds since the Unix epoch; null: never. */
  expiresAtUs: bigint | null;
}

/** The pairs of a range, all at one batch boundary. It can be read once, by pairs or by pages. */
export class Scan implements AsyncIterable<Pair> {
  private constructor();
  /** null before the first page. The scan shows the state after this whole batch. */
  readonly boundary: bigint | null;
  /** No pair is newer. It can be the version of guardRangeUnchanged(). */
  readonly boundaryVersion: bigint | null;
  readonly batchTimeUs: bigint | null;
  /** @throws SnapshotTooOldError: the program was too slow, and the scan must start again. */
  [Symbol.asyncIterator](): AsyncIterator<Pair>;
  pages(): AsyncGenerator<Pair[], void, void>;
}

/** A place between two writes: after all writes up to `version`, or after so many of its `writes`, if this is not 0. */
export interface WatchPosition {
  version: bigint;
  writes: number;
}

export interface WatchOptions {
  /** The range, as in a scan. */
  from?: Bytes;
  to?: Bytes;
  prefix?: Bytes;
  /** Only what comes after it: a position, or the boundaryVersion of a scan. Default: what is written from now on. */
  after?: WatchPosition | Integer;
  /** That of the part whose position is `after`. Then a restored database is told from the old one. */
  incarnation?: string;
  /** For how long the watch tries to reach the server again, in milliseconds. Default: 60,000. */
  reconnectMs?: number;
  /** After how long without an answer the connection counts as lost, in milliseconds. Default: 10,000. */
  idleMs?: number;
  signal?: AbortSignal;
}

export interface WatchedWrite {
  key: Buffer;
  /** null: the key was deleted. */
  value: Value;
  version: bigint;
  batchTimeUs: bigint;
  expiresAtUs: bigint | null;
  /** The server deleted the key because it had expired. */
  expired: boolean;
  batch: bigint;
  rank: number;
}

export interface WatchedPart {
  /** May be empty: a part comes at least every second. */
  writes: WatchedWrite[];
  /** The place after these writes, for `after`. */
  position: WatchPosition;
  /** The transaction of the last write goes on in the next part. */
  unfinished: boolean;
  incarnation: string;
}

/** The durable writes of a range, in the one serial order, each once. It goes on after lost connections. */
export class Watch implements AsyncIterable<WatchedPart> {
  private constructor();
  /**
   * @throws WatchTooOldError: the log does not go back so far, or the database was restored: scan, and watch again;
   * UnavailableError: the server did not come back in time; AbortError.
   */
  [Symbol.asyncIterator](): AsyncGenerator<WatchedPart, void, void>;
}

/** Reads come from the server, writes are kept until commit(), which validates all that was read. */
export class InteractiveTransaction {
  private constructor();
  /** The commit version, after a commit that wrote. */
  readonly version: bigint | null;
  /** Shows own writes, too. A second read of a key gives the same value. */
  get(key: Bytes): Promise<Value>;
  getMany(keys: readonly Bytes[]): Promise<Value[]>;
  /** The pairs of a range with own writes. With a limit, only what was read must be unchanged at the commit. */
  scan(options?: RangeOptions): Promise<{ key: Buffer; value: bigint | Buffer }[]>;
  put(key: Bytes, value: Integer | Bytes, options?: ExpiryOptions): void;
  delete(key: Bytes): void;
  /**
   * Ends the transaction.
   * @throws ConflictError: something that was read has changed, and nothing was written.
   */
  commit(): Promise<void>;
}

// The server

export interface ParkedTransaction {
  id: bigint;
  /** The first 8 hexadecimal digits of its session; empty: none. */
  session: string;
  request: bigint;
  index: number;
  /** The guard that it waits for, and its key. */
  guard: number;
  guardKey: Buffer;
  admittedBatch: bigint;
  /** Microseconds since the Unix epoch. */
  deadlineUs: bigint;
  sinceUs: bigint;
  /** Who sent it, such as user:alice or ipv4:127.0.0.1:40000. */
  client: string;
}

/** All conditions that are given must hold. At least one must be given. */
export interface ParkedFilter {
  client?: string;
  keyPrefix?: Bytes;
  olderThanMs?: number;
}

export interface SessionInfo {
  /** The first 8 hexadecimal digits. */
  id: string;
  user: string;
  leaseUs: bigint;
  leaseLeftUs: bigint;
  holder: bigint;
  acknowledgedThrough: bigint;
  requests: bigint;
  requestsInFlight: number;
  uploads: bigint;
  storedBytes: bigint;
  reservedBytes: bigint;
}

export interface ServerStatus {
  state: 'recovering' | 'ready' | 'draining' | 'stopped' | 'unknown';
  version: string;
  strategy: string;
  /** 0: one for each core. */
  threads: number;
  insecure: boolean;
  readOnly: boolean;
  incarnation: string;
  uptimeSeconds: number;
  recoverySeconds: number;
  stateHash: string;
  device: string;
  deviceModel: string;
  deviceReason: string;
  shadowRate: number;
  settings: Record<string, string>;
  details: Record<string, string>;
  memory: { name: string; bytes: bigint; boundBytes: bigint }[];
  /** docs/server-status.md explains each. */
  counters: Record<string, bigint>;
}

// Histories

export interface HistorySender {
  /** The id of the session; missing: none. */
  session?: string;
  request?: Integer;
  attempts?: number;
  /** Microseconds of one clock. The line has the last two relative to the first. */
  beganUs?: bigint;
  invokeUs: bigint;
  returnUs?: bigint | null;
}
/** The first line of a history (docs/history.md). `config` must be JSON. */
export function historyHeader(config?: object, initial?: readonly Pair[]): string;
/** The line of a transaction with its result, or with the error of its request. */
export function historyLine(
  transaction: Transaction,
  answer: Result | KiloKVError,
  sender: HistorySender,
  index?: number,
): string;
/** The line of a scan that was read as a whole. */
export function historyScanLine(
  range: { from?: Bytes; to?: Bytes; limit?: number },
  scan: Scan,
  pairs: readonly Pair[],
  sender: HistorySender,
): string;

// Errors

/** An error between the client and the server. Outcomes of transactions are not errors. */
export class KiloKVError extends Error {
  /** The name of the gRPC code, such as RESOURCE_EXHAUSTED. */
  readonly code: string;
  /** The reason, such as QUEUE_FULL (docs/errors.md); empty: none was given. */
  readonly reason: string;
  /** What exceeded which limit, and the flag of kilokvd that sets it; empty: not given. */
  readonly field: string;
  readonly limit: string;
  readonly actual: string;
  readonly setting: string;
  /** After what time a retry can succeed, in microseconds; 0n: waiting does not help, or it is not known. */
  readonly retryAfterUs: bigint;
  /** Nothing of the request ran or will run. */
  readonly notRun: boolean;
  /** A sending of the request may have run. */
  readonly mayHaveRun: boolean;
  /** Whether the request was refused each time that it was sent. If not, it is unknown whether it ran. */
  readonly neverRan: boolean;
  /** The number of the request in its session; null: it has none. */
  readonly request: bigint | null;
  readonly attempts: number;
  /** The results that came before the error, by index; undefined: none came. */
  readonly results: (Result | undefined)[];
}

export class CancelledError extends KiloKVError {}
export class UnknownError extends KiloKVError {}
export class InvalidArgumentError extends KiloKVError {}
export class DeadlineExceededError extends KiloKVError {}
export class NotFoundError extends KiloKVError {}
export class PermissionDeniedError extends KiloKVError {}
export class ResourceExhaustedError extends KiloKVError {}
export class FailedPreconditionError extends KiloKVError {}
export class AbortedError extends KiloKVError {}
export class UnimplementedError extends KiloKVError {}
export class InternalError extends KiloKVError {}
export class UnavailableError extends KiloKVError {}
export class DataLossError extends KiloKVError {}
export class UnauthenticatedError extends KiloKVError {}
/** An argument that no server could take. Nothing was sent. */
export class MisuseError extends InvalidArgumentError {}
/** The AbortSignal of the program has ended the call. `cause` is the reason of the signal. */
export class AbortError extends CancelledError {}
/** An interactive transaction has read something that has changed since then. Nothing was written. */
export class ConflictError extends AbortedError {
  /** The key that has changed; for a scan, the begin of the range. */
  readonly key: Buffer;
}
export class MalformedMessageError extends InvalidArgumentError {}
export class UnknownFieldError extends InvalidArgumentError {}
export class MissingFieldError extends InvalidArgumentError {}
export class NotAllowedError extends InvalidArgumentError {}
export class OutOfRangeError extends InvalidArgumentError {}
export class MessageTooLargeError extends InvalidArgumentError {}
export class AnswerTooLargeError extends InvalidArgumentError {}
export class ContentDiffersError extends InvalidArgumentError {}
export class UnknownMethodError extends UnimplementedError {}
export class QueueFullError extends ResourceExhaustedError {}
export class ParkedFullError extends ResourceExhaustedError {}
export class SessionFullError extends ResourceExhaustedError {}
export class SessionsFullError extends ResourceExhaustedError {}
export class UploadsFullError extends ResourceExhaustedError {}
export class TableFullError extends ResourceExhaustedError {}
export class DiskFullError extends ResourceExhaustedError {}
export class ArchiveLateError extends ResourceExhaustedError {}
export class CallsFullError extends ResourceExhaustedError {}
export class ScansFullError extends ResourceExhaustedError {}
export class SlowReaderError extends ResourceExhaustedError {}
export class MemoryFullError extends ResourceExhaustedError {}
export class SessionUnknownError extends FailedPreconditionError {}
export class SessionFencedError extends FailedPreconditionError {}
export class SessionFrozenError extends FailedPreconditionError {}
export class ReadOnlyError extends FailedPreconditionError {}
export class NumberAcknowledgedError extends FailedPreconditionError {}
export class UploadMissingError extends FailedPreconditionError {}
export class SnapshotTooOldError extends AbortedError {}
export class WatchTooOldError extends AbortedError {}
export class RecoveringError extends UnavailableError {}
export class DrainingError extends UnavailableError {}
export class FailedError extends InternalError {}
export class CorruptError extends DataLossError {}
export class LoginMissingError extends UnauthenticatedError {}
export class LoginWrongError extends UnauthenticatedError {}
export class RightMissingError extends PermissionDeniedError {}
export class AccessUnknownError extends NotFoundError {}
export class AccessFullError extends ResourceExhaustedError {}
export class AccessNeedsAdminError extends FailedPreconditionError {}
export class AccessOverlapsError extends FailedPreconditionError {}
