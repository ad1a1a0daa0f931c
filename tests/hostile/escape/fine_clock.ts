/**
 * The platform's clock, read many times in a row: steps finer than a millisecond can measure caches
 * and neighbours.
 *
 * status: success
 * output: {"fine": [], "moved": true}
 */
export async function execute(): Promise<unknown> {
  const fine: string[] = [];
  const whole = (ms: number) => Math.abs(ms - Math.round(ms)) < 1e-6;
  const first = performance.now();
  let last = first;
  for (let i = 0; i < 20_000 || last === first; i++) {
    const now = performance.now();
    if (!whole(now - last)) fine.push(`now +${now - last}`);
    last = now;
  }
  const origin = performance.timeOrigin;
  if (!whole(origin)) fine.push(`timeOrigin ${origin}`);
  return { fine: fine.slice(0, 3), moved: last > first };
}
