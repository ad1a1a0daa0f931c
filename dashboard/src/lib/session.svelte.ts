/** The signed-in agent: its token, which only this tab has, and what it may do. */
import { ProblemError, Rcrt, type Profile, type Role } from "@rcrt/client";

const KEY = "rcrt.token";

/** The server's URL: that of this page, also behind a proxy that serves it under a path. */
export const server = new URL(".", location.href.split("#")[0]).href.replace(/\/$/, "");

export interface Identity {
  ownerId: string;
  agentId: string;
  roles: Role[];
  profile: Profile;
  /** In milliseconds since 1970. */
  expiresAt: number;
}

/** The content of a token. It is for display only: the server checks each request. */
export function identityOf(token: string): Identity | undefined {
  try {
    const payload = token.split(".")[1]?.replace(/-/g, "+").replace(/_/g, "/") ?? "";
    const claims = JSON.parse(atob(payload)) as Record<string, unknown>;
    const { owner_id, agent_id, roles, profile, exp } = claims;
    if (typeof owner_id !== "string" || typeof agent_id !== "string" || !Array.isArray(roles)) return undefined;
    return {
      ownerId: owner_id,
      agentId: agent_id,
      roles: roles as Role[],
      profile: (profile ?? "main") as Profile,
      expiresAt: Number(exp) * 1000,
    };
  } catch {
    return undefined;
  }
}

class Session {
  token = $state(sessionStorage.getItem(KEY) ?? undefined);
  /** Why the session ended, for the page of the sign-in. */
  ended = $state("");
  identity = $derived(this.token === undefined ? undefined : identityOf(this.token));
  #client = $derived(this.token === undefined ? undefined : new Rcrt({ url: server, token: this.token }));

  get client(): Rcrt {
    if (this.#client === undefined) throw new Error("nobody is signed in");
    return this.#client;
  }

  /** Checks the token with the server, and keeps it in this tab. */
  async signIn(token: string): Promise<void> {
    await new Rcrt({ url: server, token }).listTokens({ limit: 1 });
    sessionStorage.setItem(KEY, token);
    this.ended = "";
    this.token = token;
  }

  /** Exchanges the ticket of a link for a token, which then is only in this tab. */
  async redeem(ticket: string): Promise<void> {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server}/auth/sign-in`, { method: "POST", headers, body: JSON.stringify({ ticket }) });
    const { token, detail } = (await answer.json()) as { token?: string; detail?: string };
    if (!answer.ok || token === undefined) throw new Error(detail ?? "The server does not accept this link.");
    await this.signIn(token);
  }

  signOut(why = ""): void {
    sessionStorage.removeItem(KEY);
    // The editor's text is still there if the same agent signs in again after its token expired.
    if (why === "") Object.keys(sessionStorage).filter((key) => key.startsWith("rcrt.")).forEach((key) => sessionStorage.removeItem(key));
    this.ended = why;
    this.token = undefined;
  }

  /** Ends the session if the server no longer accepts the token. */
  check(error: unknown): void {
    if (error instanceof ProblemError && error.status === 401 && this.token !== undefined) {
      this.signOut("Your token has expired or was revoked. Sign in again with a new one.");
    }
  }

  #has(...roles: Role[]): boolean {
    const own = this.identity?.roles ?? [];
    return own.includes("curator") || roles.some((role) => own.includes(role));
  }

  /** What the agent's roles allow, as docs of the API state for each route. */
  get can() {
    return {
      curate: this.#has(),
      follow: this.#has("subscriber", "runner", "caller"),
      call: this.#has("emitter", "runner", "caller"),
      /** Reads records that are not its own calls. */
      readRecords: this.#has("emitter", "subscriber", "runner"),
      writeRecords: this.#has("emitter", "runner"),
      listSecrets: this.#has("runner"),
      readWebhooks: this.#has("emitter", "subscriber", "runner"),
      makeWebhooks: this.#has("subscriber", "runner"),
    };
  }
}

export const session = new Session();
