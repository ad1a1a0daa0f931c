/**
 * The clocks in events, marks and measures, which are not read with performance.now.
 *
 * status: success
 * output: []
 */
export async function execute(): Promise<string[]> {
  const times: [string, number][] = [];
  for (let i = 0; i < 300; i++) {
    times.push(["event", new Event("x").timeStamp], ["custom", new CustomEvent("x").timeStamp]);
    times.push(["mark", performance.mark(`m${i}`).startTime]);
    if (i > 0) times.push(["measure", performance.measure(`d${i}`, `m${i - 1}`, `m${i}`).duration]);
    let x = 0;
    while (x < 3_000) x += 1;
  }
  times.push(["json", (performance.toJSON() as any).timeOrigin]);
  const base: Record<string, number> = {};
  const fine = times.filter(([what, ms]) => {
    base[what] ??= what === "measure" ? 0 : ms;
    const since = ms - base[what];
    return Math.abs(since - Math.round(since)) > 1e-6;
  });
  return fine.slice(0, 5).map(([what, ms]) => `${what} ${ms}`);
}
