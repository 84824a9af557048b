import { defineConfig } from "@playwright/test";

// Debian's headless Chromium. With the full Chromium, the tests take half as long again. Playwright's own browser would
// need a download.
const executablePath = process.env.FRAMEWIRE_CHROMIUM ?? "/usr/bin/chromium-headless-shell";

export default defineConfig({
  testDir: "tests",
  outputDir: "results",
  snapshotPathTemplate: "baselines/{arg}{ext}",
  // One worker: the tests measure latencies, and two emulators would share the processors.
  workers: 1,
  timeout: 180_000,
  forbidOnly: !!process.env.CI,
  reporter: [["list"], ["./support/summary.ts"]],
  expect: {
    timeout: 10_000,
    // Font rendering differs slightly between machines.
    toHaveScreenshot: { maxDiffPixelRatio: 0.03, threshold: 0.3, animations: "disabled", scale: "css" },
  },
  use: {
    browserName: "chromium",
    viewport: { width: 1440, height: 900 },
    colorScheme: "light",
    locale: "en-GB",
    timezoneId: "UTC",
    permissions: ["clipboard-read", "clipboard-write"],
    launchOptions: {
      executablePath,
      // The sandbox does not work for root, the usual user in containers.
      args: [
        ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
        // If the tests themselves supply the files of the page, Chromium does not regard it as a local page. Without
        // this argument, it could not connect to the server.
        ...(process.env.FRAMEWIRE_CONSOLE_FILES ? ["--disable-features=LocalNetworkAccessChecks"] : []),
      ],
    },
  },
});
