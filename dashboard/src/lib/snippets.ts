/** A call as a command or as code, ready to run where `RCRT_TOKEN` is set. */
export type Language = "curl" | "Python" | "TypeScript";

export function snippet(language: Language, server: string, tool: string, input: unknown): string {
  switch (language) {
    case "curl":
      return [
        `curl -s '${shell(`${server}/tools/${encodeURIComponent(tool)}/invoke`)}' \\`,
        `  -H "Authorization: Bearer $RCRT_TOKEN" -H 'Content-Type: application/json' \\`,
        `  -d '${shell(JSON.stringify({ input }))}'`,
      ].join("\n");
    case "Python":
      return [
        "import asyncio",
        "import json",
        "import os",
        "",
        "from rcrt import Rcrt",
        "",
        "",
        "async def main() -> None:",
        `    async with Rcrt(${JSON.stringify(server)}, token=os.environ["RCRT_TOKEN"]) as rcrt:`,
        // A text of JSON in a text of JSON: Python has JSON's escapes, but not its literals.
        `        print(await rcrt.call(${JSON.stringify(tool)}, json.loads(${JSON.stringify(JSON.stringify(input))})))`,
        "",
        "",
        "asyncio.run(main())",
      ].join("\n");
    case "TypeScript":
      return [
        `import { Rcrt } from "@rcrt/client";`,
        "",
        `const rcrt = new Rcrt({ url: ${JSON.stringify(server)}, token: process.env.RCRT_TOKEN! });`,
        `console.log(await rcrt.call(${JSON.stringify(tool)}, ${JSON.stringify(input, null, 2)}));`,
      ].join("\n");
  }
}

/** Inside of single quotes of a shell. */
function shell(text: string): string {
  return text.replaceAll("'", `'\\''`);
}
