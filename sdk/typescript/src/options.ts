/** Checks the names of options, because an unknown one would have no effect. */
import { invalidArgument } from "./errors.js";

/** The names of all options of a type; the compiler finds a missing one. */
export type Names<T> = { readonly [N in keyof Required<T>]: true };

/** Refuses what is not among `names`. The message offers `offered`. */
export function checkOptions(options: object, names: object, offered: object = names): void {
  if (typeof options !== "object" || options === null) throw invalidArgument(`options must be an object; it is ${String(options)}`);
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue;
    const known = Object.keys(offered);
    const meant = known.find((one) => folded(one) === folded(name)) ?? known.find((one) => isNear(folded(name), folded(one)));
    const hint = meant === undefined ? `expected one of ${known.join(", ")}` : `did you mean ${meant}?`;
    throw invalidArgument(`${name} is not an option; ${hint}`);
  }
}

/** `max_result_chars` is `maxResultChars` in other clients. */
function folded(name: string): string {
  return name.replace(/[_-]/g, "").toLowerCase();
}

/** Whether one letter was added, left out, replaced, or swapped with the next one. */
function isNear(one: string, other: string): boolean {
  let start = 0;
  while (start < one.length && one[start] === other[start]) start++;
  const [a, b] = [one.slice(start), other.slice(start)];
  const isSwapped = a.length > 1 && a[0] === b[1] && a[1] === b[0] && a.slice(2) === b.slice(2);
  return isSwapped || a.slice(1) === b.slice(1) || a.slice(1) === b || a === b.slice(1);
}
