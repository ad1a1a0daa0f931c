/** Conditions on a record's context, as a person types them. */
type Operator = "eq" | "ne" | "gt" | "gte" | "lt" | "lte" | "contains" | "contains_any" | "exists";

export interface Condition {
  path: string;
  op: Operator;
  value?: unknown;
}

export const OPERATORS: Operator[] = ["eq", "ne", "gt", "gte", "lt", "lte", "contains", "contains_any", "exists"];

/** `$.price gt 10; $.status eq open`: a value is JSON, or else a text. */
export function readConditions(text: string): { conditions: Condition[]; wrong: string } {
  const conditions: Condition[] = [];
  for (const part of text.split(";").map((one) => one.trim()).filter((one) => one !== "")) {
    const [path = "", op = "", ...rest] = part.split(/\s+/);
    const operator = OPERATORS.find((one) => one === op);
    if (!path.startsWith("$.")) return { conditions: [], wrong: `“${path}” is not a path; a path begins with $. such as $.status` };
    if (operator === undefined) return { conditions: [], wrong: `“${op}” is not an operator; use ${OPERATORS.join(", ")}` };
    const value = rest.join(" ");
    if (value === "" && operator !== "exists") return { conditions: [], wrong: `“${part}” has no value` };
    conditions.push({ path, op: operator, ...(value === "" ? {} : { value: parsed(value) }) });
  }
  return { conditions, wrong: "" };
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
