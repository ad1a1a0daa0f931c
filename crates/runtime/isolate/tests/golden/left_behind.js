// A tool that does what a generated script says, and leaves what it can. Without a script it
// returns a fingerprint of everything that it finds.
export async function execute(script, context) {
    return script === null ? await look(context) : await leave(script, context);
}

async function find(path, made) {
    let at = globalThis;
    let found;
    for (const [kind, name] of path) {
        if (kind === "root") [at] = await made[name]();
        else if (kind === "prototype") at = Reflect.getPrototypeOf(at);
        else if (kind === "get" || kind === "set") at = found?.[kind];
        else {
            const key = kind === "symbol" ? Reflect.ownKeys(at).find((key) => String(key) === name) : name;
            found = Reflect.getOwnPropertyDescriptor(at, key);
            at = found?.value ?? at;
        }
        if (at === undefined || at === null) return [{}];
    }
    // In an array, because it can be a promise, or have a method `then`.
    return [at];
}

async function leave({ secret, steps }, context) {
    const { apply, construct, defineProperty, deleteProperty, getPrototypeOf, ownKeys, set, setPrototypeOf } = Reflect;
    const { freeze, preventExtensions, seal } = Object;
    const global = globalThis;
    const made = roots(context);
    const later = (act) => {
        setTimeout(act, 1);
        Promise.resolve().then(act);
        queueSoon(act);
    };
    const queueSoon = (act) => void (async () => { await null; act(); })();
    const heard = () => { global.heard = secret; };
    const values = (other, number) =>
        [secret, heard, { [secret]: secret, toString: () => secret, then: heard }, other, number, [secret], null, Symbol.for(secret)];
    const acts = {
        define: (on, other, number) => defineProperty(on, [secret, Symbol.for(secret), `${number % 3}`][number % 3], { value: secret, configurable: number % 2 === 0 }),
        set: (on, other, number) => set(on, ownKeys(on)[number % 50] ?? secret, values(other, number)[number % 8]),
        delete: (on, other, number) => deleteProperty(on, ownKeys(on)[number % 50]),
        prototype: (on, other, number) => setPrototypeOf(on, number % 2 === 0 ? { [secret]: secret } : other),
        freeze: (on, other, number) => [freeze, preventExtensions, seal][number % 3](on),
        accessor: (on, other, number) =>
            defineProperty(on, ownKeys(on)[number % 50] ?? secret, { configurable: true, get() { heard(); return secret; }, set() { heard(); } }),
        call: (on, other, number) => apply(on, [on, other, global, secret, []][number % 5], values(other, number).slice(number % 8)),
        construct: (on, other, number) => construct(on, values(other, number).slice(number % 8), number % 3 === 0 ? other : on),
        stamp: (on) => {
            class Base { constructor() { return on; } }
            class Stamp extends Base { #secret = secret; }
            new Stamp();
        },
        capture: (on, other) => {
            defineProperty(other, "name", { value: secret });
            Error.captureStackTrace(on);
            Object.getOwnPropertyDescriptor(on, "stack")?.set?.call(on, secret);
            delete on.stack;
        },
        global: (on, other, number) => { global[`${secret}${number}`] = other; },
        replace: (on, other, number) => { global[ownKeys(global)[number % ownKeys(global).length]] = values(other, number)[number % 8]; },
        match: (on, other, number) => { new RegExp("(s)(e)(c)").exec(secret); if (number % 2 === 0) RegExp.input = secret; },
        console: () => { console.count("left"); console.group("left"); console.time("left"); },
        performance: (on, other, number) => {
            performance.mark(secret, { detail: secret });
            if (number % 2 === 0) performance.addEventListener("left", heard);
            if (number % 3 === 0) new PerformanceObserver(heard).observe({ entryTypes: ["mark"] });
        },
        later: (on, other, number) => {
            if (number % 3 === 0) later(heard);
            if (number % 3 === 1) new FinalizationRegistry(heard).register({}, secret);
            if (number % 3 === 2) context.api.getBreadcrumb(secret).catch(heard);
        },
    };
    for (let i = 0; i < steps.length; i++) {
        const { kind, on, other, number } = steps[i];
        try {
            const result = acts[kind]((await find(on, made))[0], (await find(other, made))[0], number);
            if (number % 7 === 0) await Promise.race([result, null]);
        } catch {
            continue;
        }
    }
    return null;
}

/** What they leave ends the process, which then no longer shows what it kept. */
const ENDING = ["(MessageChannel)", "(MessagePort)", "(PerformanceObserver)", "(WebAssembly.Memory)"];

/** Everything that is found, as one number, and what looks like something that was left. */
async function look(context) {
    const paths = new Map();
    const queue = [];
    const left = [];
    let hash = 0;
    const mix = (text) => {
        for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
        if (text.includes("secret-")) left.push(text.slice(0, 200));
    };
    const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";
    const stackOf = Object.getOwnPropertyDescriptor(new Error(), "stack")?.get;
    const list = (path, value) => {
        if (!isObject(value)) return mix(`${path}: ${typeof value} ${String(value)}`);
        const known = paths.get(value);
        if (known !== undefined) return mix(`${path}: = ${known}`);
        paths.set(value, path);
        queue.push(value);
    };
    const drain = () => {
        while (queue.length > 0) {
            const object = queue.shift();
            const path = paths.get(object);
            mix(`${path} ${typeof object} ${Object.isExtensible(object)}`);
            for (const key of Reflect.ownKeys(object)) {
                const { value, get, set, writable, enumerable, configurable } = Reflect.getOwnPropertyDescriptor(object, key);
                const at = `${path}.${String(key)}`;
                mix(`${at} ${writable} ${enumerable} ${configurable}`);
                if (get === undefined && set === undefined) list(at, value);
                else {
                    list(`${at}{get}`, get);
                    list(`${at}{set}`, set);
                }
            }
            list(`${path}.[[Prototype]]`, Reflect.getPrototypeOf(object));
            // The stack of an object that is an error of this call differs.
            if (stackOf !== undefined && !(object instanceof Error)) mix(`${path} ${String(stackOf.call(object))}`);
        }
    };
    mix([RegExp.$1, RegExp.$2, RegExp.$3, RegExp.input, RegExp.lastMatch, RegExp.lastParen, RegExp.leftContext, RegExp.rightContext].join("|"));
    list("globalThis", globalThis);
    drain();
    for (const [name, make] of Object.entries(roots(context))) {
        if (ENDING.includes(name)) continue;
        const [value] = await make();
        list(name, value);
        drain();
        // A call that ends while something is pending costs its process.
        if (value instanceof Promise) await value;
    }
    mix(`${performance.getEntries().length} entries`);
    performance.dispatchEvent(new Event("left"));
    performance.mark("left");
    console.count("left");
    await new Promise((done) => setTimeout(done, 1));
    mix(`${typeof globalThis.heard} ${Object.keys(globalThis).length}`);
    return { hash, left, objects: paths.size };
}
