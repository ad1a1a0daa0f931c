// The web platform as globals of the tool.
import { core, primordials } from "ext:core/mod.js";
import { console } from "ext:sandbox/console.js";
import { fetch } from "ext:sandbox/fetch.js";

const { ObjectDefineProperties, ObjectKeys, Symbol } = primordials;
const load = core.loadExtScript;

function names(module, ...wanted) {
  const found = { __proto__: null };
  for (let i = 0; i < wanted.length; i++) found[wanted[i]] = module[wanted[i]];
  return found;
}

// Deno's crypto marks its keys with a symbol that its Node layer provides; there is no such layer here.
const { internals } = globalThis.__bootstrap;
internals.kKeyObject = Symbol("kKeyObject");

const abort = load("ext:deno_web/03_abort_signal.js");
const base64 = load("ext:deno_web/05_base64.js");
const compression = load("ext:deno_web/14_compression.js");
const crypto = load("ext:deno_crypto/00_crypto.js");
const encoding = load("ext:deno_web/08_text_encoding.js");
const event = load("ext:deno_web/02_event.js");
const exception = load("ext:deno_web/01_dom_exception.js");
const file = load("ext:deno_web/09_file.js");
const reader = load("ext:deno_web/10_filereader.js");
const ports = load("ext:deno_web/13_message_port.js");
const performance = load("ext:deno_web/15_performance.js");
const streams = load("ext:deno_web/06_streams.js");
const timers = load("ext:deno_web/02_timers.js");
const url = load("ext:deno_web/00_url.js");
const pattern = load("ext:deno_web/01_urlpattern.js");
const formData = load("ext:deno_fetch/21_formdata.js");
const headers = load("ext:deno_fetch/20_headers.js");
const request = load("ext:deno_fetch/23_request.js");
const response = load("ext:deno_fetch/23_response.js");

const interfaces = {
  __proto__: null,
  ...names(abort, "AbortController", "AbortSignal"),
  ...names(compression, "CompressionStream", "DecompressionStream"),
  ...names(crypto, "Crypto", "CryptoKey", "SubtleCrypto"),
  ...names(encoding, "TextDecoder", "TextDecoderStream", "TextEncoder", "TextEncoderStream"),
  ...names(event, "CloseEvent", "CustomEvent", "ErrorEvent", "Event", "EventTarget", "MessageEvent", "ProgressEvent"),
  ...names(event, "PromiseRejectionEvent"),
  ...names(exception, "DOMException", "QuotaExceededError"),
  ...names(file, "Blob", "File"),
  ...names(reader, "FileReader"),
  ...names(ports, "MessageChannel", "MessagePort"),
  ...names(performance, "Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure"),
  ...names(performance, "PerformanceObserver", "PerformanceObserverEntryList"),
  ...names(streams, "ByteLengthQueuingStrategy", "CountQueuingStrategy"),
  ...names(streams, "ReadableByteStreamController", "ReadableStream", "ReadableStreamBYOBReader"),
  ...names(streams, "ReadableStreamBYOBRequest", "ReadableStreamDefaultController", "ReadableStreamDefaultReader"),
  ...names(streams, "TransformStream", "TransformStreamDefaultController"),
  ...names(streams, "WritableStream", "WritableStreamDefaultController", "WritableStreamDefaultWriter"),
  ...names(url, "URL", "URLSearchParams"),
  ...names(pattern, "URLPattern"),
  ...names(formData, "FormData"),
  ...names(headers, "Headers"),
  ...names(request, "Request"),
  ...names(response, "Response"),
  console,
};

const functions = {
  __proto__: null,
  ...names(base64, "atob", "btoa"),
  ...names(timers, "clearInterval", "clearTimeout", "setInterval", "setTimeout"),
  ...names(ports, "structuredClone"),
  performance: performance.performance,
  fetch,
};

function descriptors(values, enumerable) {
  const found = { __proto__: null };
  const keys = ObjectKeys(values);
  for (let i = 0; i < keys.length; i++) {
    found[keys[i]] = { __proto__: null, value: values[keys[i]], writable: true, enumerable, configurable: true };
  }
  return found;
}

ObjectDefineProperties(globalThis, descriptors(interfaces, false));
ObjectDefineProperties(globalThis, descriptors(functions, true));
ObjectDefineProperties(globalThis, {
  __proto__: null,
  // Its object cannot stand in a snapshot; it is made when first asked for.
  crypto: { __proto__: null, get: () => crypto.crypto, enumerable: true, configurable: true },
});

/** What must be set anew in each isolate that comes from the snapshot. */
function refresh() {
  performance.setTimeOrigin();
}

export { refresh };
