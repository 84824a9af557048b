import { defineConfig } from "@playwright/test";

// Debian's browser; Playwright's own would be a download.
const executablePath = process.env.FRAMEWIRE_CHROMIUM ?? "/usr/bin/chromium";

export default defineConfig({
  testDir: "tests",
  outputDir: "results",
  snapshotPathTemplate: "baselines/{arg}{ext}",
  // Two would share the processors with two emulators, and latencies are measured here.
  workers: 1,
  timeout: 30_000,
  forbidOnly: !!process.env.CI,
  reporter: [["list"], ["./summary.ts"]],
  expect: {
    timeout: 10_000,
    // Fonts are drawn a little differently from machine to machine.
    toHaveScreenshot: { maxDiffPixelRatio: 0.03, threshold: 0.3, animations: "disabled", scale: "css" },
  },
  use: {
    browserName: "chromium",
    viewport: { width: 1440, height: 900 },
    colorScheme: "light",
    locale: "en-GB",
    timezoneId: "UTC",
    launchOptions: {
      executablePath,
      // A browser has no sandbox for root, which containers often are.
      args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
    },
  },
});
