// Which call runs. In a kept isolate, code that an earlier call started may continue in a later
// call: its ops are refused. The engine propagates the mark from where async work starts to where
// it continues.
import { core, primordials } from "ext:core/mod.js";

const { TypeError } = primordials;

let mark;
let isFirst = true;

function renew() {
  mark = { __proto__: null };
  core.setAsyncContext(mark);
}

/** Prepares a new isolate: the evaluation of its module belongs to the first call. */
function prepare() {
  isFirst = true;
  renew();
}

/** Begins another call. */
function begin() {
  if (isFirst) isFirst = false;
  else renew();
}

/**
 * Whether the current code was started by a call that is over. False if the engine does not know.
 */
function isOver() {
  const begun = core.getAsyncContext();
  return begun !== undefined && begun !== null && begun !== mark;
}

function mustRun() {
  if (isOver()) throw new TypeError("the call that started this is over");
}

export { begin, isOver, mustRun, prepare };
