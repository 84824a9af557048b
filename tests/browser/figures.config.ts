import { defineConfig } from "@playwright/test";
import base from "./playwright.config.ts";

/** The configuration of `figures.spec.ts`, which measures the console page and is not part of the tests. */
export default defineConfig({ ...base, testDir: ".", testMatch: "figures.spec.ts" });
