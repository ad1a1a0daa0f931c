// A tool that calls every member of every prototype on objects that calls share, forwards or
// backwards. It returns what each said, so that a trace of an earlier call shows.
const TEMPLATE = () => ((strings) => strings)`shared`;
/** They leave something that ends the process, which then no longer shows what it kept. */
const ENDING = ["FinalizationRegistry", "PerformanceObserver", "MessagePort", "WebAssembly"];

function members() {
    const found = [];
    for (const name of Reflect.ownKeys(globalThis)) {
        const prototype = typeof globalThis[name] === "function" ? globalThis[name].prototype : undefined;
        if (typeof prototype !== "object" || prototype === null || ENDING.includes(name)) continue;
        for (const key of Reflect.ownKeys(prototype)) {
            const { value, get, set } = Reflect.getOwnPropertyDescriptor(prototype, key);
            for (const [kind, member] of Object.entries({ value, get, set })) {
                if (typeof member === "function" && key !== "constructor") found.push([`${String(name)}.${String(key)} ${kind}`, member]);
            }
        }
    }
    return found;
}

function outcome(member, on) {
    try {
        const result = Reflect.apply(member, on, [{}]);
        if (result instanceof Promise) result.catch(() => {});
        const isObject = (typeof result === "object" && result !== null) || typeof result === "function";
        return isObject ? typeof result : String(result);
    } catch (error) {
        return `${error}`;
    }
}

export function execute(isReversed, context) {
    const shared = { Math, JSON, template: TEMPLATE(), api: context.api, prototype: Object.prototype, signal: AbortSignal.prototype };
    const all = members();
    if (isReversed) all.reverse();
    const lines = [];
    for (const [path, member] of all) {
        for (const [name, on] of Object.entries(shared)) lines.push(`${path} on ${name}: ${outcome(member, on)}`);
    }
    return lines;
}
