// WebAssembly without shared memory, and its two functions that take a Response, which the engine
// leaves to its host.
import { core, primordials } from "ext:core/mod.js";

const {
  ObjectDefineProperty,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototypeThen,
  PromiseReject,
  PromiseResolve,
  ReflectApply,
  ReflectGetOwnPropertyDescriptor,
  StringPrototypeSplit,
  StringPrototypeToLowerCase,
  StringPrototypeTrim,
  TypeError,
  uncurryThis,
} = primordials;
const { ResponsePrototype, toInnerResponse } = core.loadExtScript("ext:deno_fetch/23_response.js");
const readAll = uncurryThis(ResponsePrototype.arrayBuffer);
const isOk = uncurryThis(ReflectGetOwnPropertyDescriptor(ResponsePrototype, "ok").get);

function unshared(buffer) {
  if (core.isSharedArrayBuffer(buffer)) throw new TypeError("SharedArrayBuffer is not available: create the memory without shared");
  return buffer;
}

function replace(object, name, descriptor) {
  ObjectDefineProperty(object, name, { __proto__: null, ...descriptor });
}

/** Guards the ways from a memory, which can be shared, to its buffer. */
function closeSharedMemories(memory) {
  const read = ReflectGetOwnPropertyDescriptor(memory, "buffer").get;
  const buffer = {
    get buffer() {
      return unshared(ReflectApply(read, this, []));
    },
  };
  replace(memory, "buffer", { get: ReflectGetOwnPropertyDescriptor(buffer, "buffer").get });
  const names = ["toFixedLengthBuffer", "toResizableBuffer"];
  for (let i = 0; i < names.length; i++) {
    const make = ReflectGetOwnPropertyDescriptor(memory, names[i])?.value;
    if (make === undefined) continue;
    const guarded = {
      [names[i]]() {
        return unshared(ReflectApply(make, this, []));
      },
    };
    replace(memory, names[i], { value: guarded[names[i]] });
  }
}

function contentType(response) {
  const headers = toInnerResponse(response).headerList;
  for (let i = 0; i < headers.length; i++) {
    if (StringPrototypeToLowerCase(headers[i][0]) === "content-type") {
      return StringPrototypeToLowerCase(StringPrototypeTrim(StringPrototypeSplit(headers[i][1], ";")[0]));
    }
  }
  return "";
}

function bytesOf(response) {
  if (!ObjectPrototypeIsPrototypeOf(ResponsePrototype, response)) throw new TypeError("expected a Response or a promise of one");
  if (!isOk(response)) throw new TypeError("the response does not have a status of success (2xx)");
  const type = contentType(response);
  if (type !== "application/wasm") throw new TypeError(`the response is of type "${type}", not application/wasm`);
  return readAll(response);
}

function fromResponse(name, make) {
  const functions = {
    [name](source, ...rest) {
      let response;
      try {
        response = PromiseResolve(source);
      } catch (error) {
        return PromiseReject(error);
      }
      const bytes = PromisePrototypeThen(response, bytesOf);
      return PromisePrototypeThen(bytes, (bytes) => make(bytes, rest[0], rest[1]));
    },
  };
  ObjectDefineProperty(functions[name], "length", { __proto__: null, value: 1 });
  return functions[name];
}

function closeWebAssembly() {
  const { WebAssembly } = globalThis;
  if (WebAssembly?.Memory === undefined) return;
  closeSharedMemories(WebAssembly.Memory.prototype);
  // Without a handler the engine's host would end the process.
  const { compile, instantiate } = WebAssembly;
  replace(WebAssembly, "compileStreaming", {
    value: fromResponse("compileStreaming", (bytes, options) => ReflectApply(compile, WebAssembly, [bytes, options])),
  });
  replace(WebAssembly, "instantiateStreaming", {
    value: fromResponse(
      "instantiateStreaming",
      (bytes, imports, options) => ReflectApply(instantiate, WebAssembly, [bytes, imports, options]),
    ),
  });
}

export { closeWebAssembly };
