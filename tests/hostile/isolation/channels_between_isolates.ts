/**
 * Channels that carry messages between the scopes of a browser. Here they would carry them between
 * calls and tenants.
 *
 * status: success
 * output: []
 */
export async function execute(): Promise<string[]> {
  return ["BroadcastChannel", "localStorage", "sessionStorage", "caches", "indexedDB", "SharedWorker", "navigator", "postMessage"]
    .filter((name) => name in globalThis);
}
