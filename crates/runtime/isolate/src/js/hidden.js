// Runs before every script of the platform. Provides the keys under which those store an object's
// inner state. Reflection does not list such a key, and a proxy does not see it. The build changes
// the scripts so that they use what is provided here.
import { op_sandbox_hidden } from "ext:core/ops";

const { internals } = globalThis.__bootstrap;
internals.hidden = (description) => op_sandbox_hidden(description);
/** The classes of the platform's scripts. */
internals.classes = [];
