//! The web platform that tools get: one check for each part of it.

use serde_json::{Value, json};

use crate::fixture::{block_on, function, invocation, run_in, start, value};

#[test]
fn every_interface_exists() {
    let names = "AbortController AbortSignal Blob ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy Crypto \
        CryptoKey CustomEvent DOMException DecompressionStream Event EventTarget File FileReader FormData Headers \
        MessageChannel MessagePort Performance ReadableStream Request Response SubtleCrypto TextDecoder \
        TextDecoderStream TextEncoder TextEncoderStream TransformStream URL URLPattern URLSearchParams WritableStream \
        atob btoa clearInterval clearTimeout console crypto fetch performance queueMicrotask setInterval setTimeout \
        structuredClone";
    let body = format!(
        "return {:?}.split(/\\s+/).filter((name) => typeof globalThis[name] === 'undefined')",
        names.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    assert_eq!(value(&body), json!([]));
}

#[test]
fn interfaces_behave_as_in_the_standards() {
    let checks: [(&str, Value); 34] = [
        ("return new URL('../b?x=1#f', 'https://u@h:8443/a/c').href", json!("https://u@h:8443/b?x=1#f")),
        ("return new URLSearchParams({a: '1 2'}).toString()", json!("a=1+2")),
        ("return new URLPattern({ pathname: '/x/:id' }).exec('https://h/x/7').pathname.groups.id", json!("7")),
        ("return new TextDecoder().decode(new TextEncoder().encode('ü'))", json!("ü")),
        ("return new TextDecoder('latin1').decode(new Uint8Array([228]))", json!("ä")),
        ("return [btoa('hi'), atob('aGk=')]", json!(["aGk=", "hi"])),
        ("return structuredClone(new Map([[1, {a: new Date(0)}]])).get(1).a.getTime()", json!(0)),
        ("return await new Blob(['a', new Uint8Array([98])]).text()", json!("ab")),
        (
            "const f = new File(['x'], 'n.txt', { type: 'text/plain' }); return [f.name, f.type, f.size]",
            json!(["n.txt", "text/plain", 1]),
        ),
        ("const h = new Headers({A: '1'}); h.append('a', '2'); return [...h]", json!([["a", "1, 2"]])),
        ("return await new Response(JSON.stringify({x: 1}), { status: 201 }).json()", json!({"x": 1})),
        ("return Response.json({ok: true}).headers.get('content-type')", json!("application/json")),
        (
            "const r = new Request('https://h/', { method: 'POST', body: 'b' }); return [r.method, await r.text()]",
            json!(["POST", "b"]),
        ),
        (
            "const f = new FormData(); f.set('k', 'v'); return await new Response(f).formData().then((d) => d.get('k'))",
            json!("v"),
        ),
        ("const c = new AbortController(); c.abort(); return c.signal.reason.name", json!("AbortError")),
        (
            "try { AbortSignal.timeout(1).throwIfAborted(); await new Promise((r, j) => AbortSignal.timeout(1).onabort = (e) => j(e.target.reason)); } catch (e) { return e.name }",
            json!("TimeoutError"),
        ),
        (
            "const t = new EventTarget(); let n = 0; t.addEventListener('x', (e) => n += e.detail); t.dispatchEvent(new CustomEvent('x', { detail: 2 })); return n",
            json!(2),
        ),
        ("return new DOMException('m', 'DataError').code", json!(0)),
        ("let out = ''; for await (const c of ReadableStream.from(['a', 'b'])) out += c; return out", json!("ab")),
        (
            "const { readable, writable } = new TransformStream({ transform(c, k) { k.enqueue(c * 2) } }); const w = writable.getWriter(); w.write(4); w.close(); return (await readable.getReader().read()).value",
            json!(8),
        ),
        (
            "const s = new Response('zip me '.repeat(9)).body.pipeThrough(new CompressionStream('gzip')).pipeThrough(new DecompressionStream('gzip')); return (await new Response(s).text()).length",
            json!(63),
        ),
        (
            "const s = new Blob(['grün']).stream().pipeThrough(new TextDecoderStream()); let t = ''; for await (const c of s) t += c; return t",
            json!("grün"),
        ),
        ("return crypto.getRandomValues(new Uint8Array(16)).some((b) => b !== 0)", json!(true)),
        (
            "return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
            json!(true),
        ),
        ("return crypto.randomUUID() !== crypto.randomUUID()", json!(true)),
        ("return typeof performance.now() === 'number' && performance.timeOrigin > 0", json!(true)),
        (
            "const order = []; setTimeout(() => order.push('t'), 0); queueMicrotask(() => order.push('m')); order.push('s'); await new Promise((r) => setTimeout(r, 5)); return order",
            json!(["s", "m", "t"]),
        ),
        (
            "let n = 0; await new Promise((r) => { const id = setInterval(() => { if (++n === 3) { clearInterval(id); setTimeout(r, 5) } }, 1) }); return n",
            json!(3),
        ),
        ("const id = setTimeout(() => { throw 1 }, 1); clearTimeout(id); return 'clear'", json!("clear")),
        (
            "const { port1, port2 } = new MessageChannel(); const got = new Promise((r) => port2.onmessage = (e) => r(e.data)); port1.postMessage({a: 1}); const d = await got; port1.close(); port2.close(); return d",
            json!({"a": 1}),
        ),
        ("return [1, 3].includes(3) && Object.groupBy([1, 2], (n) => n % 2 ? 'odd' : 'even').odd[0]", json!(1)),
        ("return await Promise.any([Promise.reject(1), Promise.resolve(2)])", json!(2)),
        (
            "return Number.isNaN(Date.parse('nope')) && new Date(86400000).toISOString()",
            json!("1970-01-02T00:00:00.000Z"),
        ),
        (
            "return await new Response(new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode('st')); c.close() } })).text()",
            json!("st"),
        ),
    ];
    for (body, expected) in checks {
        assert_eq!(value(body), expected, "{body}");
    }
}

#[test]
fn subtle_crypto_returns_known_values() {
    let hex = "const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, '0')).join('');
               const text = (t) => new TextEncoder().encode(t);";
    let digest = value(&format!("{hex} return hex(await crypto.subtle.digest('SHA-256', text('abc')))"));
    assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    let hmac = value(&format!(
        "{hex} const key = await crypto.subtle.importKey('raw', text('key'), {{ name: 'HMAC', hash: 'SHA-256' }}, false, ['sign', 'verify']);
         const mac = await crypto.subtle.sign('HMAC', key, text('The quick brown fox jumps over the lazy dog'));
         return [hex(mac), await crypto.subtle.verify('HMAC', key, mac, text('other'))]"
    ));
    assert_eq!(hmac, json!(["f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8", false]));
    let aes = value(&format!(
        "{hex} const key = await crypto.subtle.generateKey({{ name: 'AES-GCM', length: 256 }}, true, ['encrypt', 'decrypt']);
         const iv = crypto.getRandomValues(new Uint8Array(12));
         const sealed = await crypto.subtle.encrypt({{ name: 'AES-GCM', iv }}, key, text('secret'));
         return new TextDecoder().decode(await crypto.subtle.decrypt({{ name: 'AES-GCM', iv }}, key, sealed))"
    ));
    assert_eq!(aes, "secret");
    let signed = value(&format!(
        "{hex} const pair = await crypto.subtle.generateKey({{ name: 'ECDSA', namedCurve: 'P-256' }}, false, ['sign', 'verify']);
         const how = {{ name: 'ECDSA', hash: 'SHA-256' }};
         const mark = await crypto.subtle.sign(how, pair.privateKey, text('m'));
         return await crypto.subtle.verify(how, pair.publicKey, mark, text('m'))"
    ));
    assert_eq!(signed, true);
    let derived = value(&format!(
        "{hex} const key = await crypto.subtle.importKey('raw', text('password'), 'PBKDF2', false, ['deriveBits']);
         return hex(await crypto.subtle.deriveBits({{ name: 'PBKDF2', hash: 'SHA-256', salt: text('salt'), iterations: 1 }}, key, 256))"
    ));
    assert_eq!(derived, "120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b");
}

#[test]
fn finalization_callbacks_are_called() {
    let called = value(
        "let called = false;
         const registry = new FinalizationRegistry(() => { called = true });
         (() => registry.register({}, 1))();
         for (let i = 0; i < 5000 && !called; i++) {
             new Array(100_000).fill(i);
             await new Promise((resolve) => setTimeout(resolve, 0));
         }
         return called",
    );
    assert_eq!(called, true);
}

#[test]
fn math_random_looks_native_and_cannot_be_changed() {
    let found = value(
        "const random = Math.random;
         const look = [random.name, random.length, 'prototype' in random, /^function .*\\{ \\[native code\\] \\}$/.test(String(random))];
         Crypto.prototype.getRandomValues = () => { throw new Error('asked') };
         globalThis.Uint32Array = Array;
         for (const key of Reflect.ownKeys(Math)) if (key !== 'random') try { Math[key] = () => 0 } catch {}
         let least = 1, most = 0, sum = 0;
         for (let i = 0; i < 10000; i++) { const n = random(); if (n < least) least = n; if (n > most) most = n; sum += n; }
         return [...look, least >= 0 && least < 0.01, most < 1 && most > 0.99, sum > 4700 && sum < 5300]",
    );
    assert_eq!(found, json!(["random", 0, false, true, true, true, true]));
}

#[test]
fn random_numbers_differ_from_isolate_to_isolate() {
    let numbers: Vec<Value> = (0..3).map(|_| value("return [Math.random(), crypto.randomUUID()]")).collect();
    assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2]);
    assert!(numbers[0][0] != numbers[1][0], "{numbers:?}");
}

#[test]
fn formats_time_zone_and_webassembly_work() {
    assert_eq!(value("return new Intl.NumberFormat('en-US').format(1234567.5)"), json!("1,234,567.5"));
    assert_eq!(value("return Intl.DateTimeFormat().resolvedOptions().timeZone"), json!("UTC"));
    let wasm =
        "const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1,
        102, 0, 0, 10, 6, 1, 4, 0, 65, 42, 11]);
        return (await WebAssembly.instantiate(bytes)).instance.exports.f()";
    assert_eq!(value(wasm), json!(42));
}

#[test]
fn errors_of_the_platform_have_the_standard_names() {
    let found = value(
        "const ways = [() => atob('*'), () => crypto.getRandomValues(new Float32Array(1)), () => crypto.getRandomValues(new Uint8Array(70000)),
             () => crypto.subtle.digest('no', new Uint8Array(1)), () => crypto.subtle.importKey('raw', new Uint8Array(3), 'AES-GCM', true, ['encrypt']),
             () => structuredClone(() => {}), () => new URL('no'), () => new TextDecoder('no')];
         const names = [];
         for (const way of ways) { try { await way(); names.push('none') } catch (e) { names.push(e.name) } }
         return names",
    );
    assert_eq!(
        found,
        json!([
            "InvalidCharacterError",
            "TypeMismatchError",
            "QuotaExceededError",
            "NotSupportedError",
            "DataError",
            "DataCloneError",
            "TypeError",
            "RangeError"
        ])
    );
}

#[test]
fn webassembly_can_be_compiled_from_a_response() {
    let found = value(
        "const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
         const wasm = (type, status = 200) => new Response(bytes, { status, headers: { 'content-type': type } });
         const results = [];
         results.push(await WebAssembly.compileStreaming(wasm('application/wasm')) instanceof WebAssembly.Module);
         results.push((await WebAssembly.instantiateStreaming(Promise.resolve(wasm('Application/WASM; x=1')))).instance instanceof WebAssembly.Instance);
         for (const bad of [wasm('text/plain'), wasm('application/wasm', 404), 5, Promise.reject(new RangeError('r'))]) {
             try { await WebAssembly.compileStreaming(bad); results.push('compiled') } catch (e) { results.push(e.name) }
         }
         return results",
    );
    assert_eq!(found, json!([true, true, "TypeError", "TypeError", "TypeError", "RangeError"]));
}

#[test]
fn webassembly_compiles_in_every_call_of_a_process() {
    // One worker: each call gets another isolate of the same process.
    let body = "const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
        const module = await WebAssembly.compile(bytes);
        const { instance } = await WebAssembly.instantiate(bytes);
        const other = await WebAssembly.instantiate(module);
        const bad = await WebAssembly.compile(new Uint8Array(3)).catch((e) => e instanceof Error);
        return [instance instanceof WebAssembly.Instance, other instanceof WebAssembly.Instance, bad]";
    let sandbox = block_on(start(|options| {
        options.max_workers = 1;
        options.spares = 0;
    }));
    for _ in 0..5 {
        let call = invocation(&function(body), Value::Null);
        assert_eq!(block_on(run_in(&sandbox, call)).result.unwrap(), json!([true, true, true]));
    }
    block_on(sandbox.close());
}
