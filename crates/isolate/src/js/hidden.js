// Comes before every script of the platform: the names under which those keep an object's inner state. A key that it
// gives is found by no reflection and seen by no proxy.
import { op_sandbox_hidden } from "ext:core/ops";

const { internals } = globalThis.__bootstrap;
internals.hidden = (description) => op_sandbox_hidden(description);
