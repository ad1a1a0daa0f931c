/**
 * The keyboard. Rows of lists are elements with `data-row`; the focus of the keyboard moves between
 * them. An element with `data-search` is the search field of its screen.
 */
import { router, to } from "./router.svelte";
import { screens } from "./screens";

class Keys {
  palette = $state(false);
  help = $state(false);
  /** After `g`, until the next key. */
  #goes = false;

  /** True if the key was used. */
  handle(event: KeyboardEvent): boolean {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      this.palette = !this.palette;
      return true;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.composedPath()[0] ?? event.target)) return false;
    // Not `help` and `palette`: they become false some time after their dialog is closed.
    if (document.querySelector("dialog[open]") !== null) return false;
    if (this.#goes) {
      this.#goes = false;
      const screen = screens().find((one) => one.key === event.key);
      if (screen !== undefined) router.go(to([screen.id]));
      return screen !== undefined;
    }
    switch (event.key) {
      case "g":
        this.#goes = true;
        return true;
      case "/":
        // A screen without a search of its own has that of everything.
        if (!focused(document.querySelector<HTMLElement>("[data-search]"))) this.palette = true;
        return true;
      case "?":
        this.help = true;
        return true;
      case "j":
        return moved(1);
      case "k":
        return moved(-1);
      default:
        return false;
    }
  }
}

export const keys = new Keys();

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focused(element: HTMLElement | null | undefined): boolean {
  element?.focus();
  return element != null;
}

function moved(step: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  // The rows of a virtual list are not in the page's order.
  rows.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = at < 0 ? rows.find((row) => row.getBoundingClientRect().top >= 0) : rows[at + step];
  next?.scrollIntoView({ block: "nearest" });
  return focused(next);
}
