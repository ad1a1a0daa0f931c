/** What is loaded when the editor is first opened. */
export { default as Editor } from "./Editor.svelte";
export { default as NewTool } from "./NewTool.svelte";
