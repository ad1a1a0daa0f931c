// Evaluates an arithmetic expression: a tokenizer and a precedence-climbing parser, without eval.

interface Input {
  expression: string;
}

interface Output {
  result: number;
  expression: string;
}

interface Token {
  kind: "number" | "name" | "sign" | "end";
  text: string;
  value: number;
  /** Counted from 1, as in error messages. */
  position: number;
}

const CONSTANTS = new Map<string, number>([
  ["pi", Math.PI],
  ["e", Math.E],
]);

/** A function with the number of its arguments. */
interface MathFunction {
  least: number;
  most: number;
  apply: (...values: number[]) => number;
}

const one = (apply: (value: number) => number): MathFunction => ({ least: 1, most: 1, apply });

const FUNCTIONS = new Map<string, MathFunction>([
  ["sqrt", one(Math.sqrt)],
  ["abs", one(Math.abs)],
  ["sin", one(Math.sin)],
  ["cos", one(Math.cos)],
  ["tan", one(Math.tan)],
  ["ln", one(Math.log)],
  ["log", one(Math.log10)],
  ["exp", one(Math.exp)],
  ["round", one(Math.round)],
  ["floor", one(Math.floor)],
  ["ceil", one(Math.ceil)],
  ["min", { least: 1, most: 1000, apply: Math.min }],
  ["max", { least: 1, most: 1000, apply: Math.max }],
  ["pow", { least: 2, most: 2, apply: Math.pow }],
]);

/** Binding power of each operator. Unary minus is between * and **: -2 ** 2 is -4. */
const BINDING = new Map<string, number>([
  ["+", 1],
  ["-", 1],
  ["*", 2],
  ["/", 2],
  ["%", 2],
  ["**", 4],
]);
const UNARY_BINDING = 3;
const MAX_DEPTH = 200;

function fail(message: string, position: number): never {
  throw new Error(`${message} at position ${position}`);
}

function tokenize(expression: string): Token[] {
  const tokens: Token[] = [];
  const pattern = /\s+|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[-+*/%(),])/y;
  let at = 0;
  while (at < expression.length) {
    pattern.lastIndex = at;
    const match = pattern.exec(expression);
    const position = at + 1;
    if (match === null) {
      const character = String.fromCodePoint(expression.codePointAt(at) ?? 0);
      fail(`Unexpected character ${JSON.stringify(character)}${character === "^" ? " (use ** for powers)" : ""}`, position);
    }
    const [text, number, name, sign] = match;
    if (number !== undefined) {
      tokens.push({ kind: "number", text, value: Number(number), position });
    } else if (name !== undefined) {
      tokens.push({ kind: "name", text, value: 0, position });
    } else if (sign !== undefined) {
      tokens.push({ kind: "sign", text, value: 0, position });
    }
    at += text.length;
  }
  tokens.push({ kind: "end", text: "", value: 0, position: expression.length + 1 });
  return tokens;
}

class Parser {
  private next = 0;
  private depth = 0;

  constructor(private readonly tokens: Token[]) {}

  whole(): number {
    const value = this.expression(0);
    const rest = this.peek();
    if (rest.kind !== "end") {
      fail(`Expected an operator or the end, found ${describe(rest)}`, rest.position);
    }
    return value;
  }

  private peek(): Token {
    return this.tokens[this.next];
  }

  private take(): Token {
    return this.tokens[this.next++];
  }

  private isSign(text: string): boolean {
    const token = this.peek();
    return token.kind === "sign" && token.text === text;
  }

  private expression(least: number): number {
    if (++this.depth > MAX_DEPTH) {
      fail(`Nested deeper than ${MAX_DEPTH} levels`, this.peek().position);
    }
    let left = this.operand();
    for (;;) {
      const operator = this.peek();
      const binding = operator.kind === "sign" ? BINDING.get(operator.text) : undefined;
      if (binding === undefined || binding < least) {
        break;
      }
      this.take();
      // ** is right-associative, all others are left-associative.
      const right = this.expression(operator.text === "**" ? binding : binding + 1);
      left = apply(operator, left, right);
    }
    this.depth--;
    return left;
  }

  private operand(): number {
    const token = this.take();
    if (token.kind === "number") {
      return finite(token.value, "The number is too large", token);
    }
    if (token.kind === "name") {
      return this.named(token);
    }
    if (token.text === "-" || token.text === "+") {
      const value = this.expression(UNARY_BINDING);
      return token.text === "-" ? -value : value;
    }
    if (token.text === "(") {
      const value = this.expression(0);
      this.close(token);
      return value;
    }
    fail(`Expected a number, a name or (, found ${describe(token)}`, token.position);
  }

  private named(name: Token): number {
    const constant = CONSTANTS.get(name.text);
    if (constant !== undefined) {
      return constant;
    }
    const known = FUNCTIONS.get(name.text);
    if (known === undefined) {
      const names = [...FUNCTIONS.keys(), ...CONSTANTS.keys()].join(", ");
      fail(`Unknown name ${JSON.stringify(name.text)} (known: ${names})`, name.position);
    }
    const open = this.peek();
    if (!this.isSign("(")) {
      fail(`Expected ( after ${name.text}`, open.position);
    }
    this.take();
    const values: number[] = [];
    if (!this.isSign(")")) {
      values.push(this.expression(0));
      while (this.isSign(",")) {
        this.take();
        values.push(this.expression(0));
      }
    }
    this.close(open);
    if (values.length < known.least || values.length > known.most) {
      const wanted = known.least === known.most ? `${known.least}` : `${known.least} to ${known.most}`;
      fail(`${name.text} takes ${wanted} value${wanted === "1" ? "" : "s"}, not ${values.length},`, name.position);
    }
    return finite(known.apply(...values), `${name.text}(${values.join(", ")}) is not a finite real number`, name);
  }

  private close(open: Token): void {
    if (!this.isSign(")")) {
      const token = this.peek();
      fail(`Expected ) for the ( at position ${open.position}, found ${describe(token)}`, token.position);
    }
    this.take();
  }
}

function describe(token: Token): string {
  return token.kind === "end" ? "the end" : JSON.stringify(token.text);
}

function finite(value: number, otherwise: string, token: Token): number {
  if (!Number.isFinite(value)) {
    fail(otherwise, token.position);
  }
  return value;
}

function apply(operator: Token, left: number, right: number): number {
  if (right === 0 && (operator.text === "/" || operator.text === "%")) {
    fail("Division by zero", operator.position);
  }
  const outcome = `The result of ${left} ${operator.text} ${right} is not a finite real number`;
  switch (operator.text) {
    case "+":
      return finite(left + right, outcome, operator);
    case "-":
      return finite(left - right, outcome, operator);
    case "*":
      return finite(left * right, outcome, operator);
    case "/":
      return finite(left / right, outcome, operator);
    case "%":
      return finite(left % right, outcome, operator);
    default:
      return finite(left ** right, outcome, operator);
  }
}

export async function execute(input: Input): Promise<Output> {
  const { expression } = input;
  if (expression.trim() === "") {
    throw new Error("The expression is empty");
  }
  const result = new Parser(tokenize(expression)).whole();
  // JSON has no negative zero.
  return { result: result === 0 ? 0 : result, expression };
}
