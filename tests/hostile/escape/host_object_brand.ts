/**
 * The platform marks transferable objects with a symbol of the host. A tool sets the mark on its
 * own objects, and names the function that takes them apart.
 *
 * status: success
 * output: []
 */
export async function execute(): Promise<string[]> {
  const brand = Symbol.for("Deno.core.hostObject");
  const wrong: string[] = [];
  const refused = (name: string, attempt: () => unknown) => {
    try {
      attempt();
      wrong.push(`${name}: done`);
    } catch (error) {
      if (!(error instanceof DOMException) || error.name !== "DataCloneError") wrong.push(`${name}: ${error}`);
    }
  };
  const kinds = ["ReadableStream", "WritableStream", "TransformStream", "MessagePort", "constructor", "__proto__", "toString", "x", 5];
  for (const kind of kinds) {
    const own = { [brand]: kind };
    refused(`transfer ${kind}`, () => structuredClone(own, { transfer: [own as never] }));
    refused(`inherited ${kind}`, () => structuredClone(1, { transfer: [Object.create(own)] }));
    refused(`hand over ${kind}`, () => new MessageChannel().port1.postMessage(own, [own as never]));
  }
  const other = Object.assign(new ReadableStream(), { [brand]: "WritableStream" });
  refused("another's mark", () => structuredClone(other, { transfer: [other] }));
  const [chunk] = [new ReadableStream({ start: (controller) => (controller.enqueue(1), controller.close()) })];
  const moved = structuredClone(chunk, { transfer: [chunk as never] });
  const first = await moved.getReader().read();
  if (first.value !== 1) wrong.push(`a real stream gives ${JSON.stringify(first)}`);
  const { port1, port2 } = new MessageChannel();
  if (!(structuredClone(port1, { transfer: [port1] }) instanceof MessagePort)) wrong.push("a real port");
  port2.close();
  return wrong;
}
