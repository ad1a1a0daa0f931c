import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { settings } from "./lib/settings.svelte";

settings.apply();
const target = document.getElementById("app");
if (target !== null) mount(App, { target });
