/** What a person set for this browser: the theme and the time zone of absolute times. */
export type Theme = "system" | "light" | "dark";
export type Zone = "local" | "utc";

function stored<T extends string>(key: string, allowed: readonly T[], fallback: T): T {
  const value = localStorage.getItem(key);
  return allowed.find((one) => one === value) ?? fallback;
}

class Settings {
  theme = $state<Theme>(stored("rcrt.theme", ["system", "light", "dark"], "system"));
  zone = $state<Zone>(stored("rcrt.zone", ["local", "utc"], "local"));

  setTheme(theme: Theme): void {
    this.theme = theme;
    localStorage.setItem("rcrt.theme", theme);
    this.apply();
  }

  setZone(zone: Zone): void {
    this.zone = zone;
    localStorage.setItem("rcrt.zone", zone);
  }

  apply(): void {
    if (this.theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = this.theme;
  }
}

export const settings = new Settings();
