// `packed.mjs FOLDER`: packs the package, unpacks it into a user's node_modules, and runs the walk
// with it.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = process.argv[2];
const user = mkdtempSync(join(tmpdir(), "rcrt-user-"));
try {
  const [{ filename, files }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", user], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  const names = files.map((file) => file.path);
  for (const needed of ["dist/index.js", "dist/index.d.ts", "dist/api.d.ts", "README.md", "package.json"]) {
    if (!names.includes(needed)) throw new Error(`the package lacks ${needed}`);
  }
  if (names.some((name) => name.startsWith("test/") || name.startsWith("node_modules/"))) throw new Error("the package has unnecessary files");
  const home = join(user, "node_modules/@rcrt/client");
  mkdirSync(home, { recursive: true });
  execFileSync("tar", ["-xzf", join(user, filename), "-C", home, "--strip-components=1"]);
  const walk = join(dirname(fileURLToPath(import.meta.url)), "anywhere.mjs");
  writeFileSync(join(user, "user.mjs"), `import * as rcrt from "@rcrt/client";\nimport { walk } from ${JSON.stringify(walk)};\nconsole.log(await walk(rcrt, process.env.RCRT_TEST_URL, process.env.RCRT_TEST_TOKEN));\n`);
  // Compiles its types as a user's compiler does, without the library's own settings.
  writeFileSync(join(user, "user.ts"), `import { Rcrt, type Breadcrumb } from "@rcrt/client";\nexport const read = (client: Rcrt): Promise<Breadcrumb> => client.getFullBreadcrumb("x");\n// @ts-expect-error a title is a text\nvoid new Rcrt({ url: "http://x", token: "t" }).createBreadcrumb({ title: 5 });\n`);
  execFileSync(join(folder, "node_modules/.bin/tsc"), ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", join(user, "user.ts")], { cwd: user, stdio: "inherit" });
  console.log(execFileSync(process.execPath, [join(user, "user.mjs")], { encoding: "utf8" }), readdirSync(join(home, "dist")).length, "files");
} finally {
  rmSync(user, { recursive: true, force: true });
}
