import { Server } from "./server";

/**
 * Starts the server of all tests, unless RCRT_TEST_URL and RCRT_TEST_TOKEN name one. RCRT_TEST_PAGE
 * is then where its dashboard is, such as the development server of `make dashboard`.
 */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env["RCRT_TEST_URL"] !== undefined) return undefined;
  const server = await Server.start();
  process.env["RCRT_TEST_URL"] = server.url;
  process.env["RCRT_TEST_TOKEN"] = server.token;
  return async () => await server.remove();
}
