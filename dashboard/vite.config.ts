import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

/** The paths of the API, which the development server passes on to a running server. */
const API = [
  "acl", "admin", "agents", "audit", "auth", "breadcrumbs", "calls", "dlq", "docs", "events", "health",
  "hygiene", "metrics", "openapi.json", "runners", "secrets", "subscriptions", "tenants", "tools",
];
const server = process.env["RCRT_SERVER"] ?? "http://127.0.0.1:8081";

export default defineConfig({
  // Relative, so that it also works behind a proxy that serves it under a path.
  base: "./",
  plugins: [svelte()],
  resolve: {
    alias: { "@rcrt/client": fileURLToPath(new URL("../sdk/typescript/src/index.ts", import.meta.url)) },
  },
  build: {
    target: "es2022",
    outDir: "build",
    // For pack.py, which measures the first view.
    manifest: true,
    // The type checker is one large file, in a worker.
    chunkSizeWarningLimit: 5000,
    // An inlined file would be a data: URL, which the Content-Security-Policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  worker: { format: "es" },
  server: {
    fs: { allow: [".."] },
    proxy: Object.fromEntries(API.map((path) => [`^/${path.replace(".", "\\.")}(/|\\?|$)`, server])),
  },
});
