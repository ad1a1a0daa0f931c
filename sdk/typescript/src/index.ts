/**
 * A client of RCRT's tool runtime. It needs nothing but `fetch`, streams and `AbortSignal`, so it
 * is the same in Node (20 or later), Deno and browsers. It handles lost connections: it retries
 * what is safe to retry, resumes the event stream where it broke, and renews tokens before they
 * expire.
 */
export type { CreateToolOptions, ToolCreation, ToolExample, ToolFinding, ToolSpec, ToolTest } from "./authoring.js";
export { Rcrt, type ListOptions, type RcrtOptions, type SearchOptions, type ToolsOptions } from "./client.js";
export type { Credentials } from "./credentials.js";
export { ProblemError, RcrtError, StillRunning, ToolError, Unreachable, type Problem, type Violation } from "./errors.js";
export { type BreadcrumbEvent, type EventItem, type FollowOptions, type Missed } from "./events.js";
export type { InvokeOptions } from "./invoke.js";
export type * from "./models.js";
export { isLargeResult, largeResult } from "./parts.js";
export type * from "./shapes.js";
export { etag, type RequestOptions } from "./transport.js";
