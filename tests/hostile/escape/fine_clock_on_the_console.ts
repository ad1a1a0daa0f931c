/**
 * The console's timers print times, and its lines are part of the response; newer clocks count
 * nanoseconds.
 *
 * status: success
 * output: []
 * console: watch: 0ms
 * never: µs
 * never: watch: 0.
 * never: watch: 1.
 * never: watch: 2.
 * never: watch: 3.
 * never: watch: 4.
 * never: watch: 5.
 * never: watch: 6.
 * never: watch: 7.
 * never: watch: 8.
 * never: watch: 9.
 */
export async function execute(): Promise<string[]> {
  const fine: string[] = [];
  for (let i = 0; i < 50; i++) {
    console.time("watch");
    let x = 0;
    while (x < 5_000 * i) x += 1;
    console.timeLog("watch");
    console.timeEnd("watch");
  }
  const temporal: any = (globalThis as any).Temporal;
  for (let i = 0; temporal && i < 300; i++) {
    if (temporal.Now.instant().epochNanoseconds % 1_000_000n !== 0n) fine.push("Temporal");
  }
  return [...new Set(fine)];
}
