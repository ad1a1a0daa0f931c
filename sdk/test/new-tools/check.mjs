// Type-checks what `rcrt tool new` and `rcrt tool types` write: `check.mjs TYPESCRIPT FOLDER`.
// TYPESCRIPT is a folder with the compiler in its node_modules; files are written into FOLDER.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [typescript, folder] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));

function rcrt(...words) {
  const env = { ...process.env, RCRT_SERVER: process.env.RCRT_TEST_URL, RCRT_TOKEN: process.env.RCRT_TEST_TOKEN };
  return execFileSync(process.env.RCRT_BIN, words, { env, encoding: "utf8" });
}

function check(project) {
  const compiler = join(typescript, "node_modules", "typescript", "bin", "tsc");
  execFileSync(process.execPath, [compiler, "--project", project], { stdio: "inherit" });
}

// Each template beside the types of all of them, and code that must and must not be accepted.
const tools = join(folder, "new-tools");
for (const template of ["http-api", "data", "transform", "async-event"]) {
  rcrt("tool", "new", `my-${template}`, "--template", template, "--dir", tools);
}
writeFileSync(join(tools, "tools.d.ts"), rcrt("tool", "types", tools));
copyFileSync(join(here, "uses-types.ts"), join(tools, "uses-types.ts"));
check(tools);

// The types of everything that a server offers.
const catalog = join(folder, "catalog");
mkdirSync(catalog);
for (const name of ["tsconfig.json", "rcrt.d.ts"]) {
  copyFileSync(join(tools, name), join(catalog, name));
}
writeFileSync(join(catalog, "tools.d.ts"), rcrt("tool", "types"));
check(catalog);
