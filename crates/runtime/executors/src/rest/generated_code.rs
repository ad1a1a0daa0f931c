//! The TypeScript of a converted http tool. It says the same as `http_call.rs`.

use serde_json::json;

use super::conversion::parameters;
use super::http_call::{ACCEPT, CONTENT_TYPE};
use super::settings::{Auth, Method, Settings};
use super::template::{Piece, Template};

pub(super) fn typescript(name: &str, settings: &Settings) -> String {
    let (parameters, has_body, is_head) =
        (parameters(&settings.url), settings.method.has_body(), settings.method == Method::Head);
    let mut lines =
        vec![format!("// Sends the request of the http tool {name}. Written by `rcrt tool migrate`."), String::new()];
    if !parameters.is_empty() {
        lines.push("/** The inputs that are part of the URL. */".to_owned());
        lines.push(format!("const IN_URL = {};\n", json!(parameters)));
    }
    let context = if settings.auth.is_some() { ", context: { secrets: Record<string, string> }" } else { "" };
    lines.push(format!("export async function execute(input: Record<string, unknown>{context}): Promise<unknown> {{"));
    lines.push(format!("  const url = new URL({});", url(&settings.url)));
    if is_path_open(&settings.url) {
        lines.push(format!("  if (url.pathname.split(\"/\").length !== {}) {{", settings.url.segments() + 1));
        lines.push(r#"    throw new Error('an argument must not be "." or ".." in the path of the URL');"#.to_owned());
        lines.push("  }".to_owned());
    }
    let filter = if parameters.is_empty() { "" } else { ".filter(([name]) => !IN_URL.includes(name))" };
    lines.push(format!("  const others = Object.entries(input){filter};"));
    if !has_body {
        lines.push("  const query = new URLSearchParams(others.flatMap(pairs)).toString();".to_owned());
        lines.push("  if (query !== \"\") url.search += (url.search === \"\" ? \"\" : \"&\") + query;".to_owned());
    }
    lines.push("  const response = await fetch(url, {".to_owned());
    lines.push(format!("    method: \"{}\",", settings.method.as_str()));
    lines.push("    headers: {".to_owned());
    lines.extend(headers(settings));
    lines.push("    },".to_owned());
    lines.extend(has_body.then(|| "    body: JSON.stringify(Object.fromEntries(others)),".to_owned()));
    lines.push("  });\n  if (!response.ok) throw await refusal(response);".to_owned());
    let result = if is_head { "null" } else { "result(response, new Uint8Array(await response.arrayBuffer()))" };
    lines.push(format!("  return {result};\n}}\n"));
    let functions = [(!parameters.is_empty(), ENCODED), (!has_body, PAIRS), (!is_head, RESULT), (true, REFUSAL)];
    let used = functions.into_iter().filter(|(is_used, _)| *is_used).map(|(_, text)| text);
    lines.join("\n") + &used.collect::<String>()
}

/// Whether a parameter is in the path, which it must not leave.
fn is_path_open(url: &Template) -> bool {
    let in_path = url.pieces().iter().take_while(|piece| !matches!(piece, Piece::Text(text) if text.contains('?')));
    in_path.into_iter().any(|piece| matches!(piece, Piece::Param(_)))
}

fn url(url: &Template) -> String {
    let pieces = url.pieces();
    if let [Piece::Text(text)] = pieces {
        return json!(text).to_string();
    }
    let part = |piece: &Piece| match piece {
        Piece::Text(text) => text.replace('\\', "\\\\").replace('`', "\\`").replace('$', "\\$"),
        Piece::Param(name) => format!("${{encoded(input[{}])}}", json!(name)),
    };
    format!("`{}`", pieces.iter().map(part).collect::<String>())
}

/// The lines of the headers.
fn headers(settings: &Settings) -> Vec<String> {
    let has = |name: &str| settings.headers.keys().any(|known| known.eq_ignore_ascii_case(name));
    let line = |name: &str, value: String| format!("      {}: {value},", json!(name));
    let text = |(name, value): (&str, &str)| line(name, json!(value).to_string());
    let mut lines: Vec<String> =
        settings.headers.iter().map(|(name, value)| text((name.as_str(), value.as_str()))).collect();
    let defaults = [(true, ("accept", ACCEPT)), (settings.method.has_body(), ("content-type", CONTENT_TYPE))];
    let is_sent = |(is_needed, (name, _)): &(bool, (&str, &str))| *is_needed && !has(name);
    lines.extend(defaults.into_iter().filter(is_sent).map(|(_, header)| text(header)));
    lines.extend(settings.auth.as_ref().map(|auth| match auth {
        Auth::Bearer { secret } => line("authorization", format!("`Bearer ${{context.secrets[{}]}}`", json!(secret))),
        Auth::ApiKey { secret, header } => line(header, format!("context.secrets[{}]", json!(secret))),
    }));
    lines
}

const ENCODED: &str = r"
/** A value that stays in its place of the URL. */
function encoded(value: unknown): string {
  const hex = (mark: string) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(String(value)).replace(/[!'()*]/g, hex);
}
";

const PAIRS: &str = r#"
/** An input in the query: a list repeats its name, null is left out, an object is JSON. */
function pairs([name, value]: [string, unknown]): string[][] {
  if (value === null) return [];
  const text = (item: unknown) => (typeof item === "string" ? item : JSON.stringify(item));
  return (Array.isArray(value) ? value : [value]).map((item) => [name, text(item)]);
}
"#;

const RESULT: &str = r#"
/** JSON as its value, anything else as text, an empty body as null. */
function result(response: Response, bytes: Uint8Array): unknown {
  if (bytes.length === 0) return null;
  const type = (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase();
  if (type !== "application/json" && !type.endsWith("+json")) {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    // Only a long number can be one that JavaScript rounds.
    return /\d{16}/.test(text) ? JSON.parse(text, unrounded) : JSON.parse(text);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    throw new Error("the response declares JSON but is not valid JSON", { cause: error });
  }
}

function unrounded(_name: string, value: unknown, written: { source?: string } = {}): unknown {
  if (typeof value === "number" && /^-?\d+$/.test(written.source ?? "") && !Number.isSafeInteger(value)) {
    throw new RangeError(`the response has the number ${written.source}, which JavaScript rounds`);
  }
  return value;
}
"#;

const REFUSAL: &str = r#"
async function refusal(response: Response): Promise<Error> {
  const message = `the service responded with ${response.status} ${response.statusText}`;
  const body = await response.text().catch(() => "");
  return new Error(message.trimEnd(), { cause: body.slice(0, 2048) });
}
"#;
