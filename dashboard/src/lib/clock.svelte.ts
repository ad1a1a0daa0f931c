/** The current time, for relative times. One timer for the page. */
class Clock {
  now = $state(Date.now());

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.now = Date.now();
    }, 1000);
    document.addEventListener("visibilitychange", () => (this.now = Date.now()));
  }
}

export const clock = new Clock();
