/**
 * The screen is in the URL's fragment, because the server's own paths, such as /tools, are those of
 * the API.
 */
export interface Route {
  /** The parts of the path, decoded. */
  parts: string[];
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "").map(decoded);
  return { parts, query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

class Router {
  #route = $state.raw(read());

  constructor() {
    addEventListener("hashchange", () => (this.#route = read()));
  }

  get route(): Route {
    return this.#route;
  }

  go(href: string): void {
    location.hash = href;
  }

  /** Goes there without an entry for the screen that is left. */
  replace(href: string): void {
    history.replaceState(null, "", href);
    this.#route = read();
  }

  /** Changes the query without a new entry in the browser's history. Empty values are left out. */
  setQuery(query: Record<string, string | undefined>): void {
    // A link was followed whose event has not come yet: replacing the address would undo it.
    if (read().parts.join("/") !== this.#route.parts.join("/")) return;
    history.replaceState(null, "", to(this.#route.parts, query));
    this.#route = read();
  }
}

/** The link to a screen. */
export function to(parts: string[], query: Record<string, string | undefined> = {}): string {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== "");
  const text = new URLSearchParams(pairs).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

export const router = new Router();
