// Builds dist/, also where the package is installed from a folder: npm then installs no
// devDependencies, so the compiler comes from npm's cache.
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const cwd = dirname(fileURLToPath(import.meta.url));
const project = ["--project", "tsconfig.json"];
rmSync(`${cwd}/dist`, { recursive: true, force: true });
let compiler;
try {
  compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
} catch {
  compiler = undefined;
}
if (compiler !== undefined) {
  execFileSync(process.execPath, [compiler, ...project], { cwd, stdio: "inherit" });
} else {
  const { devDependencies } = JSON.parse(readFileSync(`${cwd}/package.json`, "utf8"));
  // The settings of the outer npm, such as a prefix, are not those of this one.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_(config_(?!registry|cache|userconfig|globalconfig|offline|proxy|https_proxy|cafile)|package_|lifecycle_|command)/i.test(name)));
  const shell = process.platform === "win32";
  execFileSync("npm", ["exec", "--yes", `--package=typescript@${devDependencies.typescript}`, "--", "tsc", ...project], { cwd, env, shell, stdio: "inherit" });
}
