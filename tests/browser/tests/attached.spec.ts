/** The page with a stock mGBA in a window that runs our script. */

import { Console } from "../support/console.ts";
import { expect, test } from "../support/test.ts";

test("a stock mGBA is shown and played, and disabled controls say why", async ({
  page,
  serve,
  openWindow,
}) => {
  const window = await openWindow();
  const server = await serve(["--attach", window.address]);
  const opened = await Console.open(page, server);

  await opened.press();

  for (const [name, reason] of [
    ["Pause", /cannot pause/],
    ["Sound", /own machine/],
  ] as const) {
    await expect(opened.button(name)).toHaveAttribute("aria-disabled", "true");
    await expect(opened.button(name)).toHaveAttribute("title", reason);
  }
  await opened.screen.focus();
  for (const [hotkey, reason] of [
    ["Space", /cannot pause/],
    ["f", /cannot set mGBA's speed/],
    ["m", /own machine/],
  ] as const) {
    await page.keyboard.press(hotkey);
    await expect(page.locator(".toast.bad").last()).toContainText(reason);
  }
  await expect(page.getByLabel("Speed", { exact: true })).toBeDisabled();
  await expect(page.locator(".reason")).toContainText("its own window");

  const memory = await opened.tab("Memory");
  // The game's memory begins with the text "FWDEMO01"; 46 is its "F".
  await expect(memory.getByRole("gridcell").first()).toHaveText("46");
  const link = await opened.tab("Link");
  await expect(link.locator("dl")).toContainText(`mGBA at ${window.address}`);

  // Lockstep allows single steps, although requests cannot pause this mGBA.
  await opened.button("Lockstep").click();
  await expect(page.locator(".badge").first()).toContainText("Lockstep");
  const frame = async (): Promise<number> => Number((await server.batch({ op: "current_frame" }))[0]);
  const before = await still(frame);
  await opened.button("Step").click();
  await expect.poll(frame).toBe(before + 1);
  await expect(opened.button("Lockstep")).not.toHaveAttribute("aria-busy");
  await opened.button("Lockstep").click();
  await expect(page.locator(".badge").first()).toContainText("Running");

  await window.send("pause");
  await expect(page.locator(".veil")).toContainText("The emulator does not run");
  await window.send("resume");
  await expect(page.locator(".veil")).toBeHidden();
});

/** Waits until the value stops changing. */
async function still(read: () => Promise<number>): Promise<number> {
  let last = await read();
  const change = async (): Promise<number> => {
    const before = last;
    last = await read();
    return last - before;
  };
  await expect.poll(change, { intervals: [200] }).toBe(0);
  return last;
}
