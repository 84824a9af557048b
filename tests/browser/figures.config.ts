import { defineConfig } from "@playwright/test";
import base from "./playwright.config.ts";

/** Measures what the console page costs; not a part of the tests. */
export default defineConfig({ ...base, testDir: ".", testMatch: "figures.spec.ts" });
