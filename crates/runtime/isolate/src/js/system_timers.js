// The timers of `AbortSignal.timeout`. The event loop does not wait for them, so a call can end
// while they are active.
import { core, internals, primordials } from "ext:core/mod.js";
import { op_sandbox_has_timers } from "ext:core/ops";

const { SafeSet, SetPrototypeForEach } = primordials;
const { __processTimers: processTimers, cancelTimer, createSystemTimer } = core;

const active = new SafeSet();

// The build lets `AbortSignal.timeout` call this.
internals.createSystemTimer = (callback, after, isRefed) => {
  const timer = createSystemTimer(
    () => {
      active.delete(timer);
      callback();
    },
    after,
    isRefed,
  );
  active.add(timer);
  return timer;
};

/**
 * Ends these timers without running what waits for them. Returns false if there are other ones,
 * which only the end of the process ends.
 */
function endTimers() {
  SetPrototypeForEach(active, (timer) => cancelTimer(timer));
  active.clear();
  if (op_sandbox_has_timers()) return false;
  // The lists of cleared timers, whose age would decide the order of later timers.
  processTimers(Infinity);
  return true;
}

export { endTimers };
