// What a tool reaches beside the global object: values of its getters, and values that no name
// leads to. Each function makes one, in an array because it can be a promise. The tools of this
// folder that use it follow it in the same module.
function roots(context) {
    const thrown = (act) => {
        try {
            return act();
        } catch (error) {
            return error;
        }
    };
    const reason = (promise) => promise.catch((error) => error);
    return {
        "(crypto)": () => [globalThis.crypto],
        "(context)": () => [context],
        "(import.meta)": () => [import.meta],
        "(generator)": () => [function* () {}],
        "(async function)": () => [async function () {}],
        "(async generator)": () => [async function* () {}],
        "(arguments)": () => [(function () { return arguments; })()],
        "(array iterator)": () => [[][Symbol.iterator]()],
        "(map iterator)": () => [new Map()[Symbol.iterator]()],
        "(set iterator)": () => [new Set()[Symbol.iterator]()],
        "(string iterator)": () => [""[Symbol.iterator]()],
        "(matches)": () => ["".matchAll(/x/g)],
        "(error)": () => [new Error("e")],
        "(platform error)": () => [thrown(() => new URL("no"))],
        "(dom exception)": () => [thrown(() => structuredClone(() => {}))],
        "(api promise)": () => [context.api.getBreadcrumb("x").catch(() => {})],
        "(digest promise)": () => [crypto.subtle.digest("SHA-256", new Uint8Array(1))],
        "(fetch promise)": () => [fetch("https://example.org/").catch(() => {})],
        "(fetch error)": async () => [await reason(fetch("https://example.org/"))],
        "(api error)": async () => [await reason(context.api.getBreadcrumb("x"))],
        "(AbortController)": () => [new AbortController()],
        "(AbortSignal.timeout)": () => [AbortSignal.timeout(1e6)],
        "(Blob)": () => [new Blob(["a"])],
        "(CompressionStream)": () => [new CompressionStream("gzip")],
        "(DOMException)": () => [new DOMException("m", "n")],
        "(Event)": () => [new Event("e")],
        "(EventTarget)": () => [new EventTarget()],
        "(File)": () => [new File(["a"], "f")],
        "(FileReader)": () => [new FileReader()],
        "(FormData)": () => [new FormData()],
        "(Headers)": () => [new Headers({ a: "b" })],
        "(Headers iterator)": () => [new Headers({ a: "b" })[Symbol.iterator]()],
        "(MessageChannel)": () => [new MessageChannel()],
        "(MessagePort)": () => [new MessageChannel().port1],
        "(PerformanceMark)": () => [performance.mark("m")],
        "(PerformanceObserver)": () => [new PerformanceObserver(() => {})],
        "(ReadableStream)": () => [new ReadableStream()],
        "(ReadableStream reader)": () => [new ReadableStream().getReader()],
        "(Request)": () => [new Request("https://example.org/", { method: "POST", body: "b" })],
        "(Response)": () => [new Response("b")],
        "(TextDecoder)": () => [new TextDecoder()],
        "(TextDecoderStream)": () => [new TextDecoderStream()],
        "(TextEncoder)": () => [new TextEncoder()],
        "(TransformStream)": () => [new TransformStream()],
        "(URL)": () => [new URL("https://example.org/?a=b")],
        "(URLPattern)": () => [new URLPattern("https://example.org/")],
        "(URLSearchParams)": () => [new URLSearchParams("a=b")],
        "(WritableStream)": () => [new WritableStream()],
        "(CryptoKey)": async () => [await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"])],
        "(WebAssembly.Memory)": () => [new WebAssembly.Memory({ initial: 0 })],
    };
}

