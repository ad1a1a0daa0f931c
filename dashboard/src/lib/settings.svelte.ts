/** What a person set for this browser: theme, density, and the time zone of absolute times. */
export type Theme = "system" | "light" | "dark";
export type Density = "comfortable" | "compact";
/** `local`, `utc`, or an IANA name. */
export type Zone = string;

function stored<T extends string>(key: string, allowed: readonly T[], fallback: T): T {
  const value = localStorage.getItem(key);
  return allowed.find((one) => one === value) ?? fallback;
}

/** The names that this browser knows. */
export const ZONES: string[] = Intl.supportedValuesOf("timeZone");

class Settings {
  theme = $state<Theme>(stored("rcrt.theme", ["system", "light", "dark"], "system"));
  density = $state<Density>(stored("rcrt.density", ["comfortable", "compact"], "comfortable"));
  zone = $state<Zone>(stored("rcrt.zone", ["local", "utc", ...ZONES], "local"));
  /** The steps for a new installation were closed. */
  begun = $state(localStorage.getItem("rcrt.begun") !== null);

  setTheme(theme: Theme): void {
    this.theme = theme;
    localStorage.setItem("rcrt.theme", theme);
    this.apply();
  }

  setDensity(density: Density): void {
    this.density = density;
    localStorage.setItem("rcrt.density", density);
    this.apply();
  }

  setZone(zone: Zone): void {
    this.zone = zone;
    localStorage.setItem("rcrt.zone", zone);
  }

  setBegun(begun: boolean): void {
    this.begun = begun;
    if (begun) localStorage.setItem("rcrt.begun", "yes");
    else localStorage.removeItem("rcrt.begun");
  }

  apply(): void {
    const { dataset } = document.documentElement;
    if (this.theme === "system") delete dataset["theme"];
    else dataset["theme"] = this.theme;
    if (this.density === "comfortable") delete dataset["density"];
    else dataset["density"] = this.density;
  }
}

export const settings = new Settings();
