// What can be transferred. The host marks such objects with a symbol that tools can obtain, so a
// marked object may be forged. Only the platform's own objects reach the code that transfers them.
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

/**
 * Getters that throw unless they are called on the interface's own objects; ports are checked by
 * their number anyway.
 */
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
  // For an unknown kind the host's table would look in `Object.prototype`.
  const unknown = "an unregistered kind of objects";
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
  // Keys are never cloned, see `globals.js`: what arrives as one is forged.
  core.getCloneableDeserializers().CryptoKey = refuse;
}

export { closeTransfers };
