// Comes before every script of the platform: the names under which those keep an object's inner state. A key that it
// gives is found by no reflection and seen by no proxy (on V8; QuickJS has ordinary symbols alone).
import { op_sandbox_hidden } from "ext:core/ops";

const { internals } = globalThis.__bootstrap;
internals.hidden = (description) => op_sandbox_hidden(description);
