// {{description}}
//
// The operator sets the API key as a secret: `rcrt secret set {{secret}} --host {{host}}`, then
// `rcrt secret grant {{secret}} {{name}}`. The code sees a handle; the value is substituted in
// requests to the hosts that the secret is bound to. permissions.net lists the hosts that fetch can
// reach.

const HOST = "{{host}}";
const AUTH_HEADER = "{{auth_header}}";
const AUTH_PREFIX = "{{auth_prefix}}";
const SECRET = "{{secret}}";
const TIMEOUT_MS = 15_000;

interface Input {
  query: string;
  limit?: number;
}

interface Output {
  total: number;
  items: { id: string; title: string; url: string | null }[];
}

/** The fields of the API's response that the tool uses. */
interface Answer {
  total_count: number;
  results: { id: string | number; name: string; html_url?: string }[];
}

interface Context {
  secrets: Record<string, string>;
}

export async function execute(input: Input, context: Context): Promise<Output> {
  const { query, limit = 10 } = input;
  const url = new URL(`https://${HOST}/v1/search`);
  url.searchParams.set("q", query);
  url.searchParams.set("per_page", String(limit));
  const response = await fetch(url, {
    headers: { accept: "application/json", [AUTH_HEADER]: `${AUTH_PREFIX}${context.secrets[SECRET]}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status === 401 || response.status === 403) {
    throw new Error(`${HOST} refused the key (${response.status}); check the secret ${SECRET}`);
  }
  if (!response.ok) {
    throw new Error(`${HOST} returned ${response.status} ${response.statusText}`);
  }
  return mapped(await response.json(), limit);
}

/** Maps the API's response to the tool's output. Throws if the response has another shape. */
function mapped(answer: Partial<Answer> | null, limit: number): Output {
  if (typeof answer?.total_count !== "number" || !Array.isArray(answer.results)) {
    throw new Error(`${HOST} returned an unexpected response; expected {total_count, results}`);
  }
  const items = answer.results.slice(0, limit).map((result) => ({
    id: String(result.id),
    title: result.name,
    url: result.html_url ?? null,
  }));
  return { total: answer.total_count, items };
}
