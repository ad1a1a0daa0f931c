// fetch as in the standard, on top of ops that the parent performs: it resolves, checks, connects
// and follows redirects.
import { core, primordials } from "ext:core/mod.js";
import {
  op_sandbox_fetch_abort,
  op_sandbox_fetch_body,
  op_sandbox_fetch_head,
  op_sandbox_fetch_start,
} from "ext:core/ops";
import { opError } from "ext:sandbox/op_error.js";
import { mustRun } from "ext:sandbox/running.js";

const {
  JSONParse,
  ObjectDefineProperty,
  ObjectHasOwn,
  ObjectPrototypeIsPrototypeOf,
  ReflectGetOwnPropertyDescriptor,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  StringPrototypeToLowerCase,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypeError,
  uncurryThis,
} = primordials;
const load = core.loadExtScript;
const abortSignal = load("ext:deno_web/03_abort_signal.js");
const { InnerBody } = load("ext:deno_fetch/22_body.js");
const { Request, toInnerRequest } = load("ext:deno_fetch/23_request.js");
const { fromInnerResponse, newInnerResponse, nullBodyStatus } = load("ext:deno_fetch/23_response.js");
const {
  errorReadableStream,
  ReadableStreamPrototype,
  readableStreamForRid,
  resourceForReadableStream,
} = load("ext:deno_web/06_streams.js");

const NO_RESOURCE = -1;

// The platform's own getters, even if a tool changes the prototypes.
const getterOf = (prototype, name) => uncurryThis(ReflectGetOwnPropertyDescriptor(prototype, name).get);
const signalOf = getterOf(Request.prototype, "signal");
const isAborted = getterOf(abortSignal.AbortSignal.prototype, "aborted");
const reasonOf = getterOf(abortSignal.AbortSignal.prototype, "reason");

function hasHeader(headers, name) {
  for (let i = 0; i < headers.length; i++) if (StringPrototypeToLowerCase(headers[i][0]) === name) return true;
  return false;
}

/** The request's body as bytes that are sent at once, or as a stream that the op reads. */
function requestBody(inner) {
  if (!inner.body) return { bytes: null, rid: NO_RESOURCE };
  const stream = inner.body.streamOrStatic;
  const body = stream.body;
  if (TypedArrayPrototypeGetSymbolToStringTag(body) === "Uint8Array") return { bytes: body, rid: NO_RESOURCE };
  if (typeof body === "string") return { bytes: core.encode(body), rid: NO_RESOURCE };
  if (ObjectPrototypeIsPrototypeOf(ReadableStreamPrototype, stream)) {
    return { bytes: null, rid: resourceForReadableStream(stream, inner.body.length) };
  }
  throw new TypeError("The request's body cannot be sent");
}

function withoutFragment(url) {
  const at = StringPrototypeIndexOf(url, "#");
  return at === -1 ? url : StringPrototypeSlice(url, 0, at);
}

function fromBlob(inner) {
  if (inner.method !== "GET") throw new TypeError("A blob URL can only be fetched with GET");
  const blob = inner.blobUrlEntry;
  const response = newInnerResponse(200, "OK");
  response.type = "basic";
  response.headerList = [["content-length", `${blob.size}`], ["content-type", blob.type]];
  response.urlList = [inner.currentUrl()];
  response.body = new InnerBody(blob.stream());
  return fromInnerResponse(response, "immutable");
}

async function fetch(input, init = undefined) {
  if (arguments.length === 0) throw new TypeError("Failed to execute 'fetch': 1 argument required");
  const request = new Request(input, init);
  const inner = toInnerRequest(request);
  const signal = signalOf(request);
  if (isAborted(signal)) throw reasonOf(signal);
  if (inner.blobUrlEntry !== null) return fromBlob(inner);
  mustRun();

  const url = inner.currentUrl();
  if (!StringPrototypeStartsWith(url, "http:") && !StringPrototypeStartsWith(url, "https:")) {
    throw new TypeError(`fetch supports http and https, not ${url}`);
  }
  const headers = inner.headerList;
  if (!hasHeader(headers, "accept")) {
    // Not by assignment: a tool may have defined setters for array elements.
    ObjectDefineProperty(headers, headers.length, {
      __proto__: null,
      value: ["accept", "*/*"],
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }

  const { bytes, rid } = requestBody(inner);
  const target = withoutFragment(url);
  const started = JSONParse(op_sandbox_fetch_start(inner.method, target, inner.redirectMode, headers, bytes, rid));
  if (ObjectHasOwn(started, "err")) throw opError(started.err);
  const op = started.ok;

  // Before the response's head an abort ends the op; after it, the body's stream.
  let body = null;
  let bodyRid = NO_RESOURCE;
  signal[abortSignal.add](() => {
    if (body !== null) errorReadableStream(body, reasonOf(signal));
    if (bodyRid !== NO_RESOURCE) core.tryClose(bodyRid);
    op_sandbox_fetch_abort(op);
  });

  const reply = JSONParse(await op_sandbox_fetch_head(op));
  if (isAborted(signal)) throw reasonOf(signal);
  if (ObjectHasOwn(reply, "err")) {
    op_sandbox_fetch_abort(op);
    throw opError(reply.err);
  }

  const { status, status_text, headers: responseHeaders, url: finalUrl, redirected } = reply.ok;
  const response = newInnerResponse(status, status_text);
  response.type = "basic";
  response.headerList = responseHeaders;
  response.urlList = redirected ? [url, finalUrl] : [finalUrl];
  if (nullBodyStatus(status) || inner.method === "HEAD") {
    op_sandbox_fetch_abort(op);
  } else {
    bodyRid = op_sandbox_fetch_body(op);
    body = readableStreamForRid(bodyRid);
    response.body = new InnerBody(body);
  }
  return fromInnerResponse(response, "immutable");
}

export { fetch };
