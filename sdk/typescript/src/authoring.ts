/** Tools that an agent makes: create, validate, test, publish. */
import { StillRunning } from "./errors.js";
import { INVOKE_OPTIONS, type InvokeOptions } from "./invoke.js";
import { checkOptions, type Names } from "./options.js";
import { backoff, pause } from "./pause.js";
import type { Accepted, ToolResponse } from "./shapes.js";
import { newKey, type Transport } from "./transport.js";

/** The context of a `tool.code.v1`. */
export type ToolSpec = Record<string, unknown>;

export interface ToolFinding {
  field: string;
  rule: string;
  message: string;
  line?: number;
  column?: number;
  fix?: string;
}

export interface ToolExample {
  description: string;
  status: "passed" | "failed" | "not_run";
  passed: boolean;
  reason?: string;
  expected?: unknown;
  actual?: unknown;
  differences?: { path: string; message: string; expected?: unknown; actual?: unknown }[];
  duration_ms: number;
}

/** What the validators and the examples found. */
export interface ToolTest {
  passed: boolean;
  validation: { errors: ToolFinding[]; warnings: ToolFinding[] };
  examples: ToolExample[];
}

/** The result of a creation. With the status `rejected` nothing was written. */
export interface ToolCreation {
  status: "created" | "updated" | "rejected" | "dry_run";
  name: string;
  version: string;
  definition_hash: string;
  tool_id?: string;
  record_version?: number;
  /** Whether only the author can call this version. */
  draft?: boolean;
  validation: ToolTest["validation"];
  examples: ToolExample[];
  timestamp: string;
}

export interface CreateToolOptions extends InvokeOptions {
  mode?: "create" | "update" | "dry_run";
  /** The version of the tool's record that the update replaces. */
  ifVersion?: number;
}

const CREATE_OPTIONS: Names<CreateToolOptions> = { ...INVOKE_OPTIONS, mode: true, ifVersion: true };
const WAIT_MS = 300_000;

/** The input of `create_tool`, and the options of its call. */
export function creation(spec: ToolSpec, options: CreateToolOptions): { input: Record<string, unknown>; rest: InvokeOptions } {
  checkOptions(options, CREATE_OPTIONS);
  const { mode, ifVersion, ...rest } = options;
  const input = {
    tool_spec: spec,
    ...(mode === undefined ? {} : { mode }),
    ...(ifVersion === undefined ? {} : { if_version: ifVersion }),
  };
  return { input, rest };
}

/** The response of a test, which can be a failure. {@link StillRunning} when the time is over. */
export async function test(transport: Transport, spec: ToolSpec, options: InvokeOptions): Promise<ToolResponse> {
  checkOptions(options, INVOKE_OPTIONS);
  const key = options.idempotencyKey ?? newKey();
  const ends = performance.now() + (options.waitMs ?? WAIT_MS);
  for (let round = 1; ; round++) {
    const answer = await transport.exchange("post", "/tools/test", {
      headers: { prefer: "wait=60", "idempotency-key": key },
      body: { tool_spec: spec },
      again: true,
      // A runner in the server's process answers at the end of the test, and not within the wait.
      timeoutMs: WAIT_MS,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    if (answer.status !== 202) return transport.read<ToolResponse>("post", "/tools/test", answer);
    const accepted = transport.read<Accepted>("post", "/tools/test", answer);
    if (performance.now() > ends) throw new StillRunning("test_tool", accepted, key);
    await pause(backoff(round), options.signal);
  }
}
