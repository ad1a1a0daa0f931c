// A clock and random numbers that are the same in each run, for a tool's examples.
import { primordials } from "ext:core/mod.js";
import { seedChance } from "ext:sandbox/globals.js";

const { Date, DatePrototype, DatePrototypeToString, ObjectDefineProperty, Proxy, ReflectConstruct } = primordials;

function define(object, key, value) {
  ObjectDefineProperty(object, key, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

/** Each reading is a millisecond later, so that a loop that waits for a time ends. */
function seedTime(start) {
  let time = start;
  const { now } = { now: () => time++ };
  define(Date, "now", now);
  const Seeded = new Proxy(Date, {
    __proto__: null,
    apply: () => DatePrototypeToString(new Date(now())),
    construct: (target, args, created) =>
      ReflectConstruct(target, args.length === 0 ? [now()] : args, created === Seeded ? target : created),
  });
  define(DatePrototype, "constructor", Seeded);
  define(globalThis, "Date", Seeded);
}

function seed(start, number) {
  seedTime(start);
  seedChance(number);
}

export { seed };
