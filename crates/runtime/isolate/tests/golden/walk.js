// A tool that lists everything it can reach: a line for each property, with the first path that
// leads to its value. `fixed` is a property that cannot be assigned; `{get}` and `{set}` are the
// functions of an accessor, which are not called; `= path` is a value that was listed under another
// path.
export async function execute(_input, context) {
    const lines = [];
    const paths = new Map();
    const queue = [];

    const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";
    const nameOf = (key) => (typeof key === "symbol" ? `[${String(key)}]` : /^[\w$]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);

    function kindOf(value) {
        if (typeof value === "function") {
            const isClass = /^class\b/.test(Function.prototype.toString.call(value));
            return `${isClass ? "class" : "function"} ${value.name || "(no name)"}/${value.length}`;
        }
        if (value === null) return "null";
        return typeof value;
    }

    /** Adds the value's line; for a value that was listed before, the line names its first path. */
    function list(path, value, how) {
        if (!isObject(value)) return lines.push(`${path}: ${how}${kindOf(value)}`);
        const known = paths.get(value);
        if (known !== undefined) return lines.push(`${path}: ${how}${known === path ? kindOf(value) : `= ${known}`}`);
        paths.set(value, path);
        queue.push([path, value]);
        lines.push(`${path}: ${how}${kindOf(value)}`);
    }

    const isUsual = (object, key, value) => {
        if (typeof object === "function" && (key === "name" || key === "length")) return true;
        // Every constructor function has one.
        return key === "constructor" && typeof value === "function" && paths.get(value) === `${paths.get(object)}`.replace(/\.prototype$/, "");
    };

    function members(path, object) {
        for (const key of Reflect.ownKeys(object)) {
            const { value, get, set, writable } = Reflect.getOwnPropertyDescriptor(object, key);
            const at = path + nameOf(key);
            if (isUsual(object, key, value)) continue;
            if (get === undefined && set === undefined) {
                list(at, value, writable ? "" : "fixed ");
                continue;
            }
            if (get !== undefined) list(`${at}{get}`, get, "");
            if (set !== undefined) list(`${at}{set}`, set, "");
        }
        const prototype = Reflect.getPrototypeOf(object);
        const usual = typeof object === "function" ? Function.prototype : Object.prototype;
        if (prototype === null) lines.push(`${path}.[[Prototype]]: null`);
        else if (prototype !== usual) list(`${path}.[[Prototype]]`, prototype, "");
    }

    function drain() {
        while (queue.length > 0) {
            const [path, object] = queue.shift();
            members(path, object);
        }
    }

    paths.set(globalThis, "globalThis");
    queue.push(["globalThis", globalThis]);
    drain();

    // Values of the global object's getters, and values that no name leads to.
    const more = {
        "(crypto)": globalThis.crypto,
        "(context)": context,
        "(import.meta)": import.meta,
        "(generator)": function* () {},
        "(async function)": async function () {},
        "(async generator)": async function* () {},
        "(arguments)": (function () { return arguments; })(),
        "(array iterator)": [][Symbol.iterator](),
        "(map iterator)": new Map()[Symbol.iterator](),
        "(set iterator)": new Set()[Symbol.iterator](),
        "(string iterator)": ""[Symbol.iterator](),
        "(matches)": "".matchAll(/x/g),
        "(error)": new Error("e"),
        "(platform error)": (() => { try { new URL("no"); } catch (error) { return error; } })(),
        "(dom exception)": (() => { try { structuredClone(() => {}); } catch (error) { return error; } })(),
        "(api promise)": context.api.getBreadcrumb("x").catch(() => {}),
        "(digest promise)": crypto.subtle.digest("SHA-256", new Uint8Array(1)),
        "(fetch promise)": fetch("https://example.org/").catch(() => {}),
        "(fetch error)": await fetch("https://example.org/").catch((error) => error),
        "(api error)": await context.api.getBreadcrumb("x").catch((error) => error),
    };
    const makers = {
        AbortController: () => new AbortController(),
        "AbortSignal.timeout": () => AbortSignal.timeout(1e6),
        Blob: () => new Blob(["a"]),
        CompressionStream: () => new CompressionStream("gzip"),
        DOMException: () => new DOMException("m", "n"),
        Event: () => new Event("e"),
        EventTarget: () => new EventTarget(),
        File: () => new File(["a"], "f"),
        FileReader: () => new FileReader(),
        FormData: () => new FormData(),
        Headers: () => new Headers({ a: "b" }),
        "Headers iterator": () => new Headers({ a: "b" })[Symbol.iterator](),
        MessageChannel: () => new MessageChannel(),
        MessagePort: () => new MessageChannel().port1,
        PerformanceMark: () => performance.mark("m"),
        PerformanceObserver: () => new PerformanceObserver(() => {}),
        ReadableStream: () => new ReadableStream(),
        "ReadableStream reader": () => new ReadableStream().getReader(),
        Request: () => new Request("https://example.org/", { method: "POST", body: "b" }),
        Response: () => new Response("b"),
        TextDecoder: () => new TextDecoder(),
        TextDecoderStream: () => new TextDecoderStream(),
        TextEncoder: () => new TextEncoder(),
        TransformStream: () => new TransformStream(),
        URL: () => new URL("https://example.org/?a=b"),
        URLPattern: () => new URLPattern("https://example.org/"),
        URLSearchParams: () => new URLSearchParams("a=b"),
        WritableStream: () => new WritableStream(),
        CryptoKey: () => crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"]),
        "WebAssembly.Memory": () => new WebAssembly.Memory({ initial: 0 }),
    };
    for (const [name, make] of Object.entries(makers)) {
        try {
            more[`(${name})`] = await make();
        } catch (error) {
            lines.push(`(${name}): cannot be made: ${error}`);
        }
    }
    for (const [name, value] of Object.entries(more)) {
        list(name, value, "");
        drain();
    }
    return lines;
}
