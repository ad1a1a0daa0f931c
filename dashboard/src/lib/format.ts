/** Numbers with units, times and short texts. */

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms < 1) return `${ms < 0.1 ? ms.toFixed(2) : ms.toFixed(1)} ms`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** A number with the noun that it counts. */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let size = value / 1024;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return "0 %";
  const value = (part / whole) * 100;
  return `${value > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

const STEPS: [number, string][] = [
  [60, "s"],
  [60, "min"],
  [24, "h"],
  [365, "d"],
];

/** How long before or after `now` a time is, such as "3 min ago". */
export function relative(at: number, now: number): string {
  const away = Math.abs(now - at) / 1000;
  if (away < 2) return "now";
  let value = away;
  for (const [size, unit] of STEPS) {
    if (value < size || unit === "d") {
      const text = `${Math.floor(value)} ${unit}`;
      return at > now ? `in ${text}` : `${text} ago`;
    }
    value /= size;
  }
  return "";
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** In a named zone. The names of zones come from the browser, so an unknown one is not possible. */
function inZone(date: Date, timeZone: string): string {
  let format = formats.get(timeZone);
  if (format === undefined) {
    const two = "2-digit";
    format = new Intl.DateTimeFormat("en", { timeZone, year: "numeric", month: two, day: two, hour: two, minute: two, second: two, hourCycle: "h23", fractionalSecondDigits: 3 });
    formats.set(timeZone, format);
  }
  const parts = Object.fromEntries(format.formatToParts(date).map(({ type, value }) => [type, value]));
  const { year, month, day, hour, minute, second, fractionalSecond } = parts as Record<string, string>;
  return `${year}-${month}-${day} ${hour}:${minute}:${second}.${fractionalSecond} ${timeZone}`;
}

/** In the zone `local`, `utc` or one with an IANA name. */
export function absolute(at: number, zone: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  if (zone === "utc") return `${date.toISOString().replace("T", " ").slice(0, 23)} UTC`;
  if (zone !== "local") return inZone(date, zone);
  const two = (value: number, width = 2) => String(value).padStart(width, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
  return `${day} ${time}`;
}

/** The time of day, for lists of recent things. */
export function clock(at: number, zone: string): string {
  return absolute(at, zone).slice(11, 19);
}

/** The end of an id, where ids of the same time differ. */
export function shortId(id: string): string {
  return /^[0-9a-f]{8}-/.test(id) ? `…${id.slice(-8)}` : id;
}

/** JSON in one line, cut. */
export function preview(value: unknown, length = 160): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
