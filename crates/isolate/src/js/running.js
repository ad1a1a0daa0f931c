// Which call runs. In an isolate that is kept, code that an earlier call left under way may go on in a later one: it
// finds the world closed. The engine carries the mark from where something is begun to where it goes on.
import { core, primordials } from "ext:core/mod.js";

const { TypeError } = primordials;

let mark;
let isFirst = true;

function renew() {
  mark = { __proto__: null };
  core.setAsyncContext(mark);
}

/** The isolate is new: what its module does while it is evaluated belongs to the first call. */
function prepare() {
  isFirst = true;
  renew();
}

/** Another call begins. */
function begin() {
  if (isFirst) isFirst = false;
  else renew();
}

/** Whether the code that asks was begun by a call that is over. Where the engine does not know, it was not. */
function isOver() {
  const begun = core.getAsyncContext();
  return begun !== undefined && begun !== null && begun !== mark;
}

function mustRun() {
  if (isOver()) throw new TypeError("the call that began this is over");
}

export { begin, isOver, mustRun, prepare };
