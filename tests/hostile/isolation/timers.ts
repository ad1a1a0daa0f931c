/**
 * Timers that fire after the call has finished and write to the console of the next call.
 *
 * status: success
 * calls: [
 *   {"input": {"leave": true}, "output": "left"},
 *   {"input": {"leave": false}, "output": "quiet"},
 *   {"input": {"leave": false}, "output": "quiet"}]
 * never: ghost
 */
export async function execute(input: { leave: boolean }): Promise<string> {
  if (!input.leave) {
    await new Promise((resolve) => setTimeout(resolve, 700));
    return "quiet";
  }
  const haunt = () => console.log("gho" + "st");
  for (const wait of [400, 450, 500, 600, 800]) setTimeout(haunt, wait);
  setInterval(haunt, 500);
  AbortSignal.timeout(450).addEventListener("abort", haunt);
  return "left";
}
