// A tool that leaves a mark on every object that it reaches. It returns how many there were, and
// the paths of those on which it found a mark.
const MARK = "left behind";

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
        abort: new AbortController(), signal: new AbortController().signal, blob: new Blob(["a"]),
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
    for (const [name, value] of Object.entries(more)) {
        add(name, value);
        drain();
    }
    await Promise.allSettled([more.promise, more.digest, more.written]);
    return { marked, reached: paths.size };
}
