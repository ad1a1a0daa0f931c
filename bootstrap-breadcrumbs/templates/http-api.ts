// {{description}}
//
// A key for the API goes into required_secrets and is read here as context.secrets.NAME, for example as the header
// `authorization: Bearer ${context.secrets.NAME}`. Hosts that fetch may reach stand in permissions.net.

const HOST = "{{host}}";
const TIMEOUT_MS = 15_000;

interface Input {
  path: string;
  query?: Record<string, string | number | boolean>;
}

interface Output {
  status: number;
  data: unknown;
}

export async function execute(input: Input): Promise<Output> {
  const url = new URL(`https://${HOST}${input.path}`);
  for (const [name, value] of Object.entries(input.query ?? {})) {
    url.searchParams.set(name, String(value));
  }
  const response = await fetch(url, {
    headers: { accept: "application/json" },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) {
    throw new Error(`${HOST} answered ${response.status} ${response.statusText}`);
  }
  return { status: response.status, data: await response.json() };
}
