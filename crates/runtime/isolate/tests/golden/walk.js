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

    for (const [name, make] of Object.entries(roots(context))) {
        let value;
        try {
            [value] = await make();
        } catch (error) {
            lines.push(`${name}: cannot be made: ${error}`);
            continue;
        }
        list(name, value, "");
        drain();
    }
    return lines;
}
