/** An incremental parser of server-sent events (the rules of the HTML standard, section 9.2.6). */

import { RcrtError } from "./errors.js";

export interface Message {
  /** The id of this message, or of the last one before it that had one. */
  id: string;
  /** The `event:` field; empty for most. */
  event: string;
  data: string;
}

/** The most characters of one message. The largest record's event is far below. */
const MOST_CHARS = 64 * 1024 * 1024;

export class SseParser {
  #line = "";
  #data: string[] = [];
  #length = 0;
  #id = "";
  #event = "";
  #begun = false;
  /** The last character was a CR. An LF directly after it belongs to the same line break. */
  #afterCr = false;

  /** Parses more text, and returns the messages that are complete. */
  read(text: string): Message[] {
    const found: Message[] = [];
    if (text === "") return found;
    let start = 0;
    if (!this.#begun) {
      this.#begun = true;
      if (text.startsWith("\ufeff")) start = 1;
    }
    if (this.#afterCr && text[start] === "\n") start++;
    this.#afterCr = false;
    for (let at = start; at < text.length; at++) {
      const char = text[at];
      if (char !== "\n" && char !== "\r") continue;
      this.#endLine(this.#line + text.slice(start, at), found);
      this.#line = "";
      if (char === "\r") {
        if (at + 1 === text.length) this.#afterCr = true;
        else if (text[at + 1] === "\n") at++;
      }
      start = at + 1;
    }
    this.#line += text.slice(start);
    if (this.#line.length + this.#length > MOST_CHARS) {
      throw new RcrtError(`a message of the event stream has more than ${MOST_CHARS} characters`, "foreign", false, { cause: this.#length });
    }
    return found;
  }

  #endLine(line: string, found: Message[]): void {
    if (line === "") {
      if (this.#data.length > 0) found.push({ id: this.#id, event: this.#event, data: this.#data.join("\n") });
      this.#data = [];
      this.#length = 0;
      this.#event = "";
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    // Comments (an empty field name) and retry times mean nothing here.
    if (field === "data") {
      this.#data.push(value);
      this.#length += value.length;
    } else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
  }
}
