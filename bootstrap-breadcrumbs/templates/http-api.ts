// {{description}}
//
// The key is a secret of the operator's: `rcrt secret set {{secret}} --host {{host}}`, then
// `rcrt secret grant {{secret}} {{name}}`. The code holds a handle; the value takes its place on the way to the hosts
// that the secret is bound to. Hosts that fetch may reach are listed in permissions.net.

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

/** What the API answers, as far as it is used. */
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
    throw new Error(`${HOST} answered ${response.status} ${response.statusText}`);
  }
  return mapped(await response.json(), limit);
}

/** The API's fields to the tool's own. An answer of another shape is an error that says so. */
function mapped(answer: Partial<Answer> | null, limit: number): Output {
  if (typeof answer?.total_count !== "number" || !Array.isArray(answer.results)) {
    throw new Error(`${HOST} answered something else than {total_count, results}`);
  }
  const items = answer.results.slice(0, limit).map((result) => ({
    id: String(result.id),
    title: result.name,
    url: result.html_url ?? null,
  }));
  return { total: answer.total_count, items };
}
