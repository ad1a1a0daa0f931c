// What may be transferred. The host marks such objects with a symbol that tools can have, so what stands under it may be
// a stranger's: only the platform's own objects reach what takes them apart.
import { core, primordials } from "ext:core/mod.js";

const {
  ObjectDefineProperty,
  ObjectPrototype,
  ObjectPrototypeIsPrototypeOf,
  ObjectSetPrototypeOf,
  Proxy,
  ReflectApply,
  ReflectDeleteProperty,
  ReflectGetOwnPropertyDescriptor,
} = primordials;
const { DOMException } = core.loadExtScript("ext:deno_web/01_dom_exception.js");
const { ReadableStream, TransformStream, WritableStream } = core.loadExtScript("ext:deno_web/06_streams.js");

function refuse() {
  throw new DOMException("Value not transferable", "DataCloneError");
}

/** Getters that throw unless they are asked of the interface's own objects; ports are asked for their number anyway. */
const OWN = [
  ["MessagePort", undefined],
  ["ReadableStream", ReflectGetOwnPropertyDescriptor(ReadableStream.prototype, "locked").get],
  ["TransformStream", ReflectGetOwnPropertyDescriptor(TransformStream.prototype, "readable").get],
  ["WritableStream", ReflectGetOwnPropertyDescriptor(WritableStream.prototype, "locked").get],
];

function closeTransfers() {
  for (let i = 0; i < OWN.length; i++) {
    const { 0: name, 1: ask } = OWN[i];
    const resource = core.getTransferableResource(name);
    const { send } = resource;
    resource.send = (object) => {
      try {
        if (ask !== undefined) ReflectApply(ask, object, []);
        return send(object);
      } catch (error) {
        if (ObjectPrototypeIsPrototypeOf(DOMException.prototype, error)) throw error;
        return refuse();
      }
    };
  }
  // The host's table would look into `Object.prototype` for what it does not have.
  const unknown = "a kind of objects that nobody registered";
  let table;
  ObjectDefineProperty(ObjectPrototype, unknown, {
    __proto__: null,
    get() {
      table = this;
      return undefined;
    },
    configurable: true,
  });
  core.getTransferableResource(unknown);
  ReflectDeleteProperty(ObjectPrototype, unknown);
  const other = { __proto__: null, send: refuse, receive: refuse };
  ObjectSetPrototypeOf(table, new Proxy({ __proto__: null }, { __proto__: null, get: () => other }));
  // Keys are not cloned at all, see `globals.js`: what comes as one is forged.
  core.getCloneableDeserializers().CryptoKey = refuse;
}

export { closeTransfers };
