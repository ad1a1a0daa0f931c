// A tool that leaves a mark on every object that it reaches: by properties, by getters, by methods
// without arguments, and by constructors. It returns how many there were, and the paths of those on
// which it found a mark.
const MARK = "left behind";
/** Arguments that at least one constructor accepts. */
const ARGUMENTS = [
    [], ["a"], ["https://example.org/"], [{}], [{ highWaterMark: 1 }], [[1]], [() => {}], ["a", {}], [8], ["gzip"],
    ["a", "b"], [["x"], "f"], ["en"],
];
/** They leave something that ends the process, which then no longer shows what it kept. */
const ENDING = ["AbortSignal", "FinalizationRegistry", "MessageChannel", "PerformanceObserver", "WebAssembly"];
/** Getters return objects whose getters return objects. */
const MAX_DEPTH = 3;

export async function execute(_input, context) {
    const marked = [];
    const paths = new Map();
    const queue = [];
    const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

    function add(path, value) {
        if (!isObject(value) || paths.has(value)) return;
        paths.set(value, path);
        queue.push(value);
    }

    function attempt(path, act) {
        try {
            add(path, act());
        } catch (error) {
            add(`${path}!`, error);
        }
    }

    /** What the getters of an object return, and its methods without arguments. */
    function use(path, object, depth) {
        for (let at = object; at !== null && depth < MAX_DEPTH; at = Reflect.getPrototypeOf(at)) {
            for (const key of Reflect.ownKeys(at)) {
                const { value, get } = Reflect.getOwnPropertyDescriptor(at, key);
                const name = `${path}.${String(key)}()`;
                if (get !== undefined) {
                    let found;
                    attempt(name, () => (found = Reflect.apply(get, object, [])));
                    if (isObject(found) && !(found instanceof Promise) && found !== object) use(name, found, depth + 1);
                } else if (typeof value === "function" && typeof key === "symbol") {
                    attempt(name, () => Reflect.apply(value, object, []));
                }
            }
        }
    }

    function drain() {
        while (queue.length > 0) {
            const object = queue.pop();
            const path = paths.get(object);
            if (Object.hasOwn(object, MARK)) marked.push(path);
            for (const key of Reflect.ownKeys(object)) {
                const { value, get, set } = Reflect.getOwnPropertyDescriptor(object, key);
                const at = `${path}.${String(key)}`;
                add(at, value);
                add(`${at}{get}`, get);
                add(`${at}{set}`, set);
            }
            add(`${path}.[[Prototype]]`, Reflect.getPrototypeOf(object));
            Reflect.defineProperty(object, MARK, { value: 1, configurable: true });
        }
    }

    add("globalThis", globalThis);
    drain();
    const thrown = (act) => { try { return act(); } catch (error) { return error; } };
    const more = {
        crypto, context, meta: import.meta,
        generator: function* () {}, async: async function () {}, asyncGenerator: async function* () {},
        arguments: (function () { return arguments; })(),
        array: [].values(), map: new Map().keys(), set: new Set().keys(), string: ""[Symbol.iterator](),
        matches: "".matchAll(/x/g), error: new Error("e"), engine: thrown(() => null.x),
        platform: thrown(() => new URL("no")), clone: thrown(() => structuredClone(() => {})),
        helper: globalThis.Iterator?.from({ next() {} }), mapped: [].values().map?.(() => 0),
        segments: globalThis.Intl?.Segmenter && new Intl.Segmenter("en").segment("a"),
        segment: globalThis.Intl?.Segmenter && new Intl.Segmenter("en").segment("a")[Symbol.iterator](),
        promise: context.api.getBreadcrumb("x").catch(() => {}), digest: crypto.subtle.digest("SHA-256", new Uint8Array(1)),
        fetched: await fetch("https://example.org/").catch((error) => error),
        asked: await context.api.getBreadcrumb("x").catch((error) => error),
        abort: new AbortController(), signal: new AbortController().signal, timeout: AbortSignal.timeout(1e6), blob: new Blob(["a"]),
        event: new Event("e"), target: new EventTarget(), custom: new CustomEvent("e"), message: new MessageEvent("e"),
        errorEvent: new ErrorEvent("e"), close: new CloseEvent("e"), progress: new ProgressEvent("e"),
        file: new File(["a"], "f"), reader: new FileReader(), form: new FormData(), formKeys: new FormData().keys(),
        headers: new Headers(), headerKeys: new Headers().keys(), exception: new DOMException("m", "n"),
        stream: new ReadableStream(), streamReader: new ReadableStream().getReader(), values: new ReadableStream().values(),
        closed: new ReadableStream().getReader().closed, writable: new WritableStream(),
        writer: new WritableStream().getWriter(), ready: new WritableStream().getWriter().ready,
        transform: new TransformStream(), request: new Request("https://example.org/", { method: "POST", body: "b" }),
        response: new Response("b"), body: new Response("b").body, encoder: new TextEncoder(), decoder: new TextDecoder(),
        url: new URL("https://example.org/?a=b"), params: new URLSearchParams("a=b").keys(),
        pattern: new URLPattern("https://example.org/*"), matched: new URLPattern("https://example.org/*").exec("https://example.org/a"),
        memory: new WebAssembly.Memory({ initial: 0 }), written: new WritableStream().getWriter().write("x"),
    };
    let made = 0;
    for (const name of Reflect.ownKeys(globalThis)) {
        const constructor = globalThis[name];
        const isClass = typeof constructor === "function" && /^[A-Z]/.test(String(name));
        if (!isClass || ENDING.includes(name)) continue;
        for (const [index, given] of ARGUMENTS.entries()) {
            attempt(`new ${String(name)}`, () => {
                const object = Reflect.construct(constructor, given);
                more[`new ${String(name)} ${index}`] = object;
                made += 1;
                return object;
            });
        }
    }
    for (const [name, value] of Object.entries(more)) {
        add(name, value);
        if (isObject(value) && !(value instanceof Promise)) use(name, value, 0);
        drain();
    }
    await Promise.allSettled([more.promise, more.digest, more.written]);
    return { marked, reached: paths.size, made };
}
