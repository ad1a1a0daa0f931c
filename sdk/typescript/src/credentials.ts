/** The client's credentials, and its current token. */
import { invalidArgument, RcrtError } from "./errors.js";
import type { GivenToken, Profile, Role, TokenRequest } from "./shapes.js";

export type Credentials =
  /** A fixed token. When it expires, so does the access. */
  | { token: string }
  /** A function that returns a valid token whenever it is called. */
  | { token: (options: { refused: string | undefined }) => string | Promise<string> }
  /** An agent's key. Tokens are fetched when needed and renewed before they expire. */
  | { ownerId: string; agentId: string; agentKey: string; roles?: Role[]; profile?: Profile; ttlSec?: number }
  /** A server with open auth: it gives a token to every caller. */
  | { open: true; ownerId?: string; agentId?: string; roles?: Role[]; ttlSec?: number };

interface Held {
  token: string;
  /** By `performance.now()`, which is monotonic. */
  renewAt: number;
}

export class Tokens {
  #credentials: Credentials;
  #fetch: (request: TokenRequest) => Promise<GivenToken>;
  #held: Held | undefined;
  #fetching: Promise<Held> | undefined;
  #refused: string | undefined;

  constructor(credentials: Credentials, fetch: (request: TokenRequest) => Promise<GivenToken>) {
    this.#credentials = checked(credentials);
    this.#fetch = fetch;
  }

  /** A token that stays valid for a while. Concurrent callers share one request. */
  async token(): Promise<string> {
    const credentials = this.#credentials;
    if ("token" in credentials) {
      if (typeof credentials.token === "string") return credentials.token.trim();
      const refused = this.#refused;
      this.#refused = undefined;
      let token: unknown;
      try {
        token = await credentials.token({ refused });
      } catch (error) {
        throw noToken(error instanceof Error ? error.message : String(error), error);
      }
      if (typeof token !== "string" || token.trim() === "") throw noToken(`the function token returned ${JSON.stringify(token)}`, token);
      return token.trim();
    }
    if (this.#held !== undefined && performance.now() < this.#held.renewAt) return this.#held.token;
    this.#fetching ??= this.#renewed(credentials).finally(() => (this.#fetching = undefined));
    this.#held = await this.#fetching;
    return this.#held.token;
  }

  /** Discards a token that the server refused. True if a new one can be requested. */
  refused(token: string): boolean {
    if ("token" in this.#credentials && typeof this.#credentials.token === "string") return false;
    this.#refused = token;
    if (this.#held?.token === token) this.#held = undefined;
    return true;
  }

  async #renewed(credentials: Exclude<Credentials, { token: unknown }>): Promise<Held> {
    const asked = performance.now();
    const request: TokenRequest = {};
    if (credentials.ownerId !== undefined) request.owner_id = credentials.ownerId;
    if (credentials.agentId !== undefined) request.agent_id = credentials.agentId;
    if ("agentKey" in credentials) request.agent_key = credentials.agentKey;
    if ("profile" in credentials && credentials.profile !== undefined) request.profile = credentials.profile;
    if (credentials.roles !== undefined) request.roles = credentials.roles;
    if (credentials.ttlSec !== undefined) request.ttl_sec = credentials.ttlSec;
    const given = await this.#fetch(request);
    // It is renewed with a fifth of its lifetime left: clocks differ and requests take time.
    return { token: given.token, renewAt: asked + given.expires_in * 800 };
  }
}

function checked(credentials: Credentials): Credentials {
  const given: Partial<Record<"token" | "agentKey" | "open", unknown>> = credentials ?? {};
  const { token } = given;
  if (typeof token === "function" || given.agentKey !== undefined || given.open === true) return credentials;
  if (!("token" in given)) throw invalidArgument("give a token, an agentKey with ownerId and agentId, or open: true");
  if (typeof token === "string" && token.trim() !== "") return credentials;
  throw invalidArgument(`the token is ${token === undefined ? "undefined" : JSON.stringify(token)}; \`rcrt token\` prints one`);
}

function noToken(why: string, cause: unknown): RcrtError {
  return new RcrtError(`no token: ${why}`, "no_token", false, { cause: cause ?? why });
}
