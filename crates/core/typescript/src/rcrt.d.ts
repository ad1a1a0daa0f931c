// Written by `rcrt tool new`, which replaces it. Do not edit it.
//
// The globals of tool code, and the context that `execute` gets. What is part of the language comes
// from TypeScript's lib.esnext. A test compares the names with those in the sandbox.

/** What `execute` gets as its second argument. `Secrets` are the names in `required_secrets`. */
interface RcrtContext<Secrets extends string = string> {
  /** Handles of the granted secrets. The value is put in place of the handle in a request. */
  readonly secrets: { readonly [Name in Secrets]: string };
  /** Records, with the rights of the caller. */
  readonly api: RcrtApi;
  readonly request: RcrtRequest;
  /** Reports progress to the caller: a fraction from 0 to 1, or null, and one line. */
  readonly progress: (fraction?: number | null, message?: string | null) => void;
  readonly utils: { readonly waitForEventSupported: false };
}

interface RcrtRequest {
  readonly id: string;
  readonly workspace?: string;
  readonly agentId?: string;
  /** The event that triggered the call, or else the event of the request itself. */
  readonly trigger_event?: { readonly breadcrumb_id: string; readonly schema_name?: string; readonly [key: string]: any };
}

interface RcrtApi {
  getBreadcrumb(id: string): Promise<RcrtRecord>;
  createBreadcrumb(record: RcrtNewRecord): Promise<{ id: string; version: number }>;
  /** `version` is the version that was read; an update of another version fails. */
  updateBreadcrumb(id: string, version: number, changes: Partial<RcrtNewRecord>): Promise<RcrtRecord>;
  deleteBreadcrumb(id: string): Promise<{ id: string; deleted: true }>;
  searchBreadcrumbs(query?: RcrtSelector & { limit?: number; offset?: number; include_context?: boolean }): Promise<RcrtFound[]>;
  vectorSearch(query: RcrtSelector & RcrtSearch): Promise<RcrtFound[]>;
  /** Calls a tool that `permissions.tools` names, waits for it and returns its output. */
  callTool<Name extends string>(
    tool: Name,
    input?: RcrtToolInput<Name>,
    options?: RcrtCallOptions,
  ): Promise<RcrtToolOutput<Name>>;
  /** A secret by name or id. The reason is in the audit log. */
  getSecret(id: string, reason?: string): Promise<String & { readonly value: string }>;
  decryptSecret(id: string, reason?: string): Promise<String & { readonly value: string }>;
}

/** The tools whose types are known. What `rcrt tool types` prints adds some. */
interface RcrtTools {}

type RcrtToolInput<Name> = Name extends keyof RcrtTools ? (RcrtTools[Name] extends { input: infer Input } ? Input : any) : any;
type RcrtToolOutput<Name> = Name extends keyof RcrtTools ? (RcrtTools[Name] extends { output: infer Output } ? Output : any) : any;

interface RcrtCallOptions {
  /** The most time for the call. It never has more than its caller has left. */
  timeout_ms?: number;
  /** The most characters of the output. A longer one is stored in parts, and an index is returned. */
  max_result_chars?: number;
  /** The version that must run, as in a request. */
  version?: number;
  definition_hash?: string;
}

/** What `callTool` throws if the other tool fails. */
interface RcrtCallError extends Error {
  readonly code: string;
  /** The message of the other tool's failure. */
  readonly reason: string;
  readonly tool: string;
  readonly requestId: string;
  readonly details?: any;
  readonly retryable: boolean;
}

interface RcrtRecord {
  id: string;
  title: string;
  description?: string;
  semantic_version?: string;
  context: Record<string, any>;
  tags: string[];
  schema_name?: string;
  llm_hints?: unknown;
  version: number;
  checksum: string;
  updated_at: string;
}

interface RcrtFound {
  id: string;
  owner_id?: string;
  title: string;
  tags: string[];
  schema_name: string | null;
  version: number;
  updated_at: string;
  /** With `include_context`. */
  context?: Record<string, any>;
  redacted?: boolean;
  score?: number;
}

interface RcrtNewRecord {
  title: string;
  description?: string;
  semantic_version?: string;
  context?: Record<string, unknown>;
  tags?: string[];
  schema_name?: string;
  llm_hints?: unknown;
  visibility?: "public" | "team" | "private";
  sensitivity?: "low" | "pii" | "secret";
  ttl?: string;
  ttl_type?: string;
  ttl_config?: unknown;
}

interface RcrtSelector {
  /** One more required tag. */
  tag?: string;
  any_tags?: string[];
  all_tags?: string[];
  schema_name?: string;
  context_match?: { path: string; op: string; value?: unknown }[];
  /** Not a record of the runtime: a tool, a guide, a call, working memory, a schedule, a schema. */
  exclude_runtime?: boolean;
}

interface RcrtSearch {
  q?: string;
  qvec?: number[];
  mode?: "text" | "vector" | "hybrid";
  nn?: number;
  include_context?: boolean;
}

// Timers, text and cloning

declare function atob(data: string): string;
declare function btoa(data: string): string;
declare function clearInterval(id?: number): void;
declare function clearTimeout(id?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare function setInterval(callback: (...args: any[]) => void, delay?: number, ...args: any[]): number;
declare function setTimeout(callback: (...args: any[]) => void, delay?: number, ...args: any[]): number;
declare function structuredClone<T>(value: T, options?: { transfer?: unknown[] }): T;
declare const console: {
  assert(condition?: boolean, ...data: any[]): void;
  clear(): void;
  count(label?: string): void;
  countReset(label?: string): void;
  debug(...data: any[]): void;
  dir(item?: any): void;
  dirxml(...data: any[]): void;
  error(...data: any[]): void;
  group(...data: any[]): void;
  groupCollapsed(...data: any[]): void;
  groupEnd(): void;
  info(...data: any[]): void;
  log(...data: any[]): void;
  table(data?: any, columns?: string[]): void;
  time(label?: string): void;
  timeEnd(label?: string): void;
  timeLog(label?: string, ...data: any[]): void;
  trace(...data: any[]): void;
  warn(...data: any[]): void;
};

// Fetch

type BodyInit = ReadableStream<Uint8Array> | Blob | ArrayBuffer | ArrayBufferView | FormData | URLSearchParams | string;
type HeadersInit = Headers | [string, string][] | Record<string, string>;
type RequestInfo = Request | URL | string;

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
  redirect?: "follow" | "error" | "manual";
  signal?: AbortSignal | null;
}

interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}

/** Reaches the hosts in the tool's `permissions.net`. */
declare function fetch(input: RequestInfo, init?: RequestInit): Promise<Response>;

declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  entries(): IterableIterator<[string, string]>;
  forEach(callback: (value: string, key: string, parent: Headers) => void): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  keys(): IterableIterator<string>;
  set(name: string, value: string): void;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

declare class Request {
  constructor(input: RequestInfo, init?: RequestInit);
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  readonly headers: Headers;
  readonly method: string;
  readonly redirect: string;
  readonly signal: AbortSignal;
  readonly url: string;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  clone(): Request;
  formData(): Promise<FormData>;
  json(): Promise<any>;
  text(): Promise<string>;
}

declare class Response {
  constructor(body?: BodyInit | null, init?: ResponseInit);
  static error(): Response;
  static json(data: any, init?: ResponseInit): Response;
  static redirect(url: string | URL, status?: number): Response;
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  readonly headers: Headers;
  readonly ok: boolean;
  readonly redirected: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly type: string;
  readonly url: string;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  clone(): Response;
  formData(): Promise<FormData>;
  json(): Promise<any>;
  text(): Promise<string>;
}

declare class FormData {
  append(name: string, value: string | Blob, fileName?: string): void;
  delete(name: string): void;
  entries(): IterableIterator<[string, File | string]>;
  forEach(callback: (value: File | string, key: string, parent: FormData) => void): void;
  get(name: string): File | string | null;
  getAll(name: string): (File | string)[];
  has(name: string): boolean;
  keys(): IterableIterator<string>;
  set(name: string, value: string | Blob, fileName?: string): void;
  values(): IterableIterator<File | string>;
  [Symbol.iterator](): IterableIterator<[string, File | string]>;
}

// URLs

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static createObjectURL(blob: Blob): string;
  static parse(url: string | URL, base?: string | URL): URL | null;
  static revokeObjectURL(url: string): void;
  hash: string;
  host: string;
  hostname: string;
  href: string;
  readonly origin: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  readonly searchParams: URLSearchParams;
  username: string;
  toJSON(): string;
  toString(): string;
}

declare class URLSearchParams {
  constructor(init?: string[][] | Record<string, string> | string | URLSearchParams);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  entries(): IterableIterator<[string, string]>;
  forEach(callback: (value: string, key: string, parent: URLSearchParams) => void): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  keys(): IterableIterator<string>;
  set(name: string, value: string): void;
  sort(): void;
  toString(): string;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

declare class URLPattern {
  constructor(init?: string | Record<string, string>, base?: string);
  readonly hasRegExpGroups: boolean;
  readonly hash: string;
  readonly hostname: string;
  readonly password: string;
  readonly pathname: string;
  readonly port: string;
  readonly protocol: string;
  readonly search: string;
  readonly username: string;
  exec(input?: string | Record<string, string>, base?: string): any;
  test(input?: string | Record<string, string>, base?: string): boolean;
}

// Texts and bytes

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(input?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

declare class TextEncoder {
  readonly encoding: string;
  encode(input?: string): Uint8Array<ArrayBuffer>;
  encodeInto(source: string, destination: Uint8Array): { read: number; written: number };
}

declare class Blob {
  constructor(parts?: (ArrayBuffer | ArrayBufferView | Blob | string)[], options?: { type?: string });
  readonly size: number;
  readonly type: string;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
  slice(start?: number, end?: number, type?: string): Blob;
  stream(): ReadableStream<Uint8Array>;
  text(): Promise<string>;
}

declare class File extends Blob {
  constructor(parts: (ArrayBuffer | ArrayBufferView | Blob | string)[], name: string, options?: { type?: string; lastModified?: number });
  readonly lastModified: number;
  readonly name: string;
}

declare class FileReader extends EventTarget {
  readonly error: DOMException | null;
  onabort: ((event: ProgressEvent) => void) | null;
  onerror: ((event: ProgressEvent) => void) | null;
  onload: ((event: ProgressEvent) => void) | null;
  onloadend: ((event: ProgressEvent) => void) | null;
  onloadstart: ((event: ProgressEvent) => void) | null;
  onprogress: ((event: ProgressEvent) => void) | null;
  readonly readyState: number;
  readonly result: string | ArrayBuffer | null;
  abort(): void;
  readAsArrayBuffer(blob: Blob): void;
  readAsBinaryString(blob: Blob): void;
  readAsDataURL(blob: Blob): void;
  readAsText(blob: Blob, encoding?: string): void;
}

// Streams

interface QueuingStrategy<T = any> {
  highWaterMark?: number;
  size?: (chunk: T) => number;
}

interface UnderlyingSource<R = any> {
  start?(controller: ReadableStreamDefaultController<R>): any;
  pull?(controller: ReadableStreamDefaultController<R>): void | PromiseLike<void>;
  cancel?(reason?: any): void | PromiseLike<void>;
}

interface UnderlyingSink<W = any> {
  start?(controller: WritableStreamDefaultController): any;
  write?(chunk: W, controller: WritableStreamDefaultController): void | PromiseLike<void>;
  close?(): void | PromiseLike<void>;
  abort?(reason?: any): void | PromiseLike<void>;
}

interface Transformer<I = any, O = any> {
  start?(controller: TransformStreamDefaultController<O>): any;
  transform?(chunk: I, controller: TransformStreamDefaultController<O>): void | PromiseLike<void>;
  flush?(controller: TransformStreamDefaultController<O>): void | PromiseLike<void>;
}

type ReadResult<T> = { done: false; value: T } | { done: true; value: T | undefined };

interface StreamPipeOptions {
  preventAbort?: boolean;
  preventCancel?: boolean;
  preventClose?: boolean;
  signal?: AbortSignal;
}

declare class ReadableStream<R = any> {
  constructor(source?: UnderlyingSource<R>, strategy?: QueuingStrategy<R>);
  static from<T>(items: AsyncIterable<T> | Iterable<T>): ReadableStream<T>;
  readonly locked: boolean;
  cancel(reason?: any): Promise<void>;
  getReader(): ReadableStreamDefaultReader<R>;
  getReader(options: { mode: "byob" }): ReadableStreamBYOBReader;
  pipeThrough<T>(pair: { readable: ReadableStream<T>; writable: WritableStream<R> }, options?: StreamPipeOptions): ReadableStream<T>;
  pipeTo(destination: WritableStream<R>, options?: StreamPipeOptions): Promise<void>;
  tee(): [ReadableStream<R>, ReadableStream<R>];
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<R>;
  [Symbol.asyncIterator](): AsyncIterableIterator<R>;
}

declare class ReadableStreamDefaultReader<R = any> {
  constructor(stream: ReadableStream<R>);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  read(): Promise<ReadResult<R>>;
  releaseLock(): void;
}

declare class ReadableStreamBYOBReader {
  constructor(stream: ReadableStream<Uint8Array>);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  read<T extends ArrayBufferView>(view: T): Promise<ReadResult<T>>;
  releaseLock(): void;
}

declare class ReadableStreamBYOBRequest {
  private constructor();
  readonly view: ArrayBufferView | null;
  respond(bytesWritten: number): void;
  respondWithNewView(view: ArrayBufferView): void;
}

declare class ReadableByteStreamController {
  private constructor();
  readonly byobRequest: ReadableStreamBYOBRequest | null;
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk: ArrayBufferView): void;
  error(reason?: any): void;
}

declare class ReadableStreamDefaultController<R = any> {
  private constructor();
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk?: R): void;
  error(reason?: any): void;
}

declare class WritableStream<W = any> {
  constructor(sink?: UnderlyingSink<W>, strategy?: QueuingStrategy<W>);
  readonly locked: boolean;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  getWriter(): WritableStreamDefaultWriter<W>;
}

declare class WritableStreamDefaultWriter<W = any> {
  constructor(stream: WritableStream<W>);
  readonly closed: Promise<void>;
  readonly desiredSize: number | null;
  readonly ready: Promise<void>;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  releaseLock(): void;
  write(chunk?: W): Promise<void>;
}

declare class WritableStreamDefaultController {
  private constructor();
  readonly signal: AbortSignal;
  error(reason?: any): void;
}

declare class TransformStream<I = any, O = any> {
  constructor(transformer?: Transformer<I, O>, writable?: QueuingStrategy<I>, readable?: QueuingStrategy<O>);
  readonly readable: ReadableStream<O>;
  readonly writable: WritableStream<I>;
}

declare class TransformStreamDefaultController<O = any> {
  private constructor();
  readonly desiredSize: number | null;
  enqueue(chunk?: O): void;
  error(reason?: any): void;
  terminate(): void;
}

declare class ByteLengthQueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk?: any) => number;
}

declare class CountQueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk?: any) => number;
}

declare class CompressionStream {
  constructor(format: "deflate" | "deflate-raw" | "gzip");
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
}

declare class DecompressionStream {
  constructor(format: "deflate" | "deflate-raw" | "gzip");
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
}

declare class TextDecoderStream {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
}

declare class TextEncoderStream {
  readonly encoding: string;
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<string>;
}

// Events and cancellation

type EventListenerOrObject = ((event: any) => void) | { handleEvent(event: any): void };

interface EventInit {
  bubbles?: boolean;
  cancelable?: boolean;
  composed?: boolean;
}

declare class EventTarget {
  addEventListener(type: string, listener: EventListenerOrObject | null, options?: boolean | { once?: boolean; signal?: AbortSignal }): void;
  dispatchEvent(event: Event): boolean;
  removeEventListener(type: string, listener: EventListenerOrObject | null, options?: boolean | { capture?: boolean }): void;
}

declare class Event {
  constructor(type: string, init?: EventInit);
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly composed: boolean;
  readonly currentTarget: EventTarget | null;
  readonly defaultPrevented: boolean;
  readonly eventPhase: number;
  readonly isTrusted: boolean;
  readonly target: EventTarget | null;
  readonly timeStamp: number;
  readonly type: string;
  composedPath(): EventTarget[];
  preventDefault(): void;
  stopImmediatePropagation(): void;
  stopPropagation(): void;
}

declare class CustomEvent<T = any> extends Event {
  constructor(type: string, init?: EventInit & { detail?: T });
  readonly detail: T;
}

declare class ErrorEvent extends Event {
  constructor(type: string, init?: EventInit & { message?: string; filename?: string; lineno?: number; colno?: number; error?: any });
  readonly colno: number;
  readonly error: any;
  readonly filename: string;
  readonly lineno: number;
  readonly message: string;
}

declare class CloseEvent extends Event {
  constructor(type: string, init?: EventInit & { code?: number; reason?: string; wasClean?: boolean });
  readonly code: number;
  readonly reason: string;
  readonly wasClean: boolean;
}

declare class MessageEvent<T = any> extends Event {
  constructor(type: string, init?: EventInit & { data?: T });
  readonly source: MessagePort | null;
}

declare class ProgressEvent extends Event {
  constructor(type: string, init?: EventInit & { lengthComputable?: boolean; loaded?: number; total?: number });
}

declare class PromiseRejectionEvent extends Event {
  constructor(type: string, init: EventInit & { promise: Promise<any>; reason?: any });
  readonly promise: Promise<any>;
  readonly reason: any;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}

declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: any): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  readonly aborted: boolean;
  onabort: ((event: Event) => void) | null;
  readonly reason: any;
  throwIfAborted(): void;
}

declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
  readonly message: string;
  readonly name: string;
}

declare class QuotaExceededError extends DOMException {
  constructor(message?: string, options?: { quota?: number; requested?: number });
  readonly quota: number | null;
  readonly requested: number | null;
}

declare class MessageChannel {
  readonly port1: MessagePort;
  readonly port2: MessagePort;
}

declare class MessagePort extends EventTarget {
  private constructor();
  onmessage: ((event: MessageEvent) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  close(): void;
  postMessage(message: any, transfer?: any[]): void;
  start(): void;
}

// Cryptography

declare const crypto: Crypto;

type BufferSource = ArrayBuffer | ArrayBufferView;

declare class Crypto {
  private constructor();
  readonly subtle: SubtleCrypto;
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
}

declare class CryptoKey {
  private constructor();
  readonly algorithm: { name: string; [key: string]: any };
  readonly extractable: boolean;
  readonly type: string;
  readonly usages: string[];
}

interface CryptoKeyPair {
  privateKey: CryptoKey;
  publicKey: CryptoKey;
}

type CryptoAlgorithm = string | { name: string; [key: string]: any };

declare class SubtleCrypto {
  private constructor();
  static supports(operation: string, algorithm: CryptoAlgorithm, length?: number | null): boolean;
  decapsulateBits(algorithm: CryptoAlgorithm, key: CryptoKey, ciphertext: BufferSource): Promise<ArrayBuffer>;
  decapsulateKey(algorithm: CryptoAlgorithm, key: CryptoKey, ciphertext: BufferSource, type: CryptoAlgorithm, extractable: boolean, usages: string[]): Promise<CryptoKey>;
  decrypt(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  deriveBits(algorithm: CryptoAlgorithm, key: CryptoKey, length?: number | null): Promise<ArrayBuffer>;
  deriveKey(algorithm: CryptoAlgorithm, key: CryptoKey, type: CryptoAlgorithm, extractable: boolean, usages: string[]): Promise<CryptoKey>;
  digest(algorithm: CryptoAlgorithm, data: BufferSource): Promise<ArrayBuffer>;
  encapsulateBits(algorithm: CryptoAlgorithm, key: CryptoKey): Promise<any>;
  encapsulateKey(algorithm: CryptoAlgorithm, key: CryptoKey, type: CryptoAlgorithm, extractable: boolean, usages: string[]): Promise<any>;
  encrypt(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  exportKey(format: string, key: CryptoKey): Promise<any>;
  generateKey(algorithm: CryptoAlgorithm, extractable: boolean, usages: string[]): Promise<any>;
  getPublicKey(key: CryptoKey, usages: string[]): Promise<CryptoKey>;
  importKey(format: string, data: any, algorithm: CryptoAlgorithm, extractable: boolean, usages: string[]): Promise<CryptoKey>;
  sign(algorithm: CryptoAlgorithm, key: CryptoKey, data: BufferSource): Promise<ArrayBuffer>;
  unwrapKey(format: string, wrapped: BufferSource, key: CryptoKey, unwrapping: CryptoAlgorithm, type: CryptoAlgorithm, extractable: boolean, usages: string[]): Promise<CryptoKey>;
  verify(algorithm: CryptoAlgorithm, key: CryptoKey, signature: BufferSource, data: BufferSource): Promise<boolean>;
  wrapKey(format: string, key: CryptoKey, wrapping: CryptoKey, algorithm: CryptoAlgorithm): Promise<ArrayBuffer>;
}

// Performance

declare const performance: Performance;

declare class Performance extends EventTarget {
  private constructor();
  readonly timeOrigin: number;
  clearMarks(name?: string): void;
  clearMeasures(name?: string): void;
  getEntries(): PerformanceEntry[];
  getEntriesByName(name: string, type?: string): PerformanceEntry[];
  getEntriesByType(type: string): PerformanceEntry[];
  mark(name: string, options?: { detail?: any; startTime?: number }): PerformanceMark;
  measure(name: string, start?: any, end?: string): PerformanceMeasure;
  now(): number;
  toJSON(): any;
}

declare class PerformanceEntry {
  readonly duration: number;
  readonly entryType: string;
  readonly name: string;
  readonly startTime: number;
  toJSON(): any;
}

declare class PerformanceMark extends PerformanceEntry {
  constructor(name: string, options?: { detail?: any; startTime?: number });
  readonly detail: any;
}

declare class PerformanceMeasure extends PerformanceEntry {
  private constructor();
  readonly detail: any;
}

declare class PerformanceObserver {
  constructor(callback: (entries: PerformanceObserverEntryList, observer: PerformanceObserver) => void);
  disconnect(): void;
  observe(options: { entryTypes?: string[]; type?: string }): void;
  takeRecords(): PerformanceEntry[];
}

declare class PerformanceObserverEntryList {
  private constructor();
  getEntries(): PerformanceEntry[];
  getEntriesByName(name: string, type?: string): PerformanceEntry[];
  getEntriesByType(type: string): PerformanceEntry[];
}

// WebAssembly

declare namespace WebAssembly {
  type Imports = Record<string, Record<string, any>>;
  interface InstantiatedSource {
    instance: Instance;
    module: Module;
  }
  class CompileError extends Error {}
  class LinkError extends Error {}
  class RuntimeError extends Error {}
  class Module {
    constructor(bytes: BufferSource);
    static customSections(module: Module, name: string): ArrayBuffer[];
    static exports(module: Module): { name: string; kind: string }[];
    static imports(module: Module): { module: string; name: string; kind: string }[];
  }
  class Instance {
    constructor(module: Module, imports?: Imports);
    readonly exports: Record<string, any>;
  }
  class Memory {
    constructor(descriptor: { initial: number; maximum?: number; shared?: boolean });
    readonly buffer: ArrayBuffer;
    grow(delta: number): number;
  }
  class Table {
    constructor(descriptor: { element: string; initial: number; maximum?: number }, value?: any);
    readonly length: number;
    get(index: number): any;
    grow(delta: number, value?: any): number;
    set(index: number, value?: any): void;
  }
  class Global {
    constructor(descriptor: { value: string; mutable?: boolean }, value?: any);
    value: any;
    valueOf(): any;
  }
  function compile(bytes: BufferSource): Promise<Module>;
  function compileStreaming(source: Response | PromiseLike<Response>): Promise<Module>;
  function instantiate(bytes: BufferSource, imports?: Imports): Promise<InstantiatedSource>;
  function instantiate(module: Module, imports?: Imports): Promise<Instance>;
  function instantiateStreaming(source: Response | PromiseLike<Response>, imports?: Imports): Promise<InstantiatedSource>;
  function validate(bytes: BufferSource): boolean;
}
