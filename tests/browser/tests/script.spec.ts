/** Data that a browser sends for a web page has no effect on the script, not even inside TLS. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "@playwright/test";
import { freePort, listen, PROGRAM, repository } from "../support/server.ts";
import { expect, test } from "../support/test.ts";

const MESSAGE = "<|END|>core.addKey,0<|END|>";

/** A TLS site whose session ids contain a message for the script. */
function startSite(folder: string, port: number): { site: ChildProcess; pin: string } {
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const make = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split(" ");
  execFileSync("openssl", [...make, "-keyout", key, "-out", certificate], { stdio: "ignore" });
  const serve = ["s_server", "-accept", `127.0.0.1:${port}`, "-cert", certificate, "-key", key, "-www"];
  const site = spawn("openssl", [...serve, "-tls1_2", "-no_ticket", "-id_prefix", MESSAGE], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  const publicKey = new X509Certificate(readFileSync(certificate)).publicKey;
  const pin = createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest("base64");
  return { site, pin };
}

test("a message in the id of a TLS session presses no key", async ({ serve }, info) => {
  const folder = mkdtempSync(join(tmpdir(), "framewire-tls-"));
  const [scriptPort, sitePort] = [await freePort(), await freePort()];
  writeFileSync(join(folder, "settings.lua"), `framewire = {port = ${scriptPort}}`);
  copyFileSync(repository("rom/framewire-demo.gba"), join(folder, "demo.gba"));
  const script = join(folder, "framewire.lua");
  execFileSync(PROGRAM, ["script", "--output", script], { stdio: "ignore" });
  const scripts = ["--lua", join(folder, "settings.lua"), "--lua", script];
  const server = await serve(["--rom", join(folder, "demo.gba"), ...scripts]);
  const { site, pin } = startSite(folder, sitePort);

  // One host name and port that lead first to the site and then to the script, as after DNS rebinding.
  let target = sitePort;
  const resumed = { [sitePort]: 0, [scriptPort]: 0 };
  let replied = 0;
  const proxy = createServer((client) => {
    client.on("error", () => client.destroy());
    client.once("data", (first) => {
      const to = target;
      resumed[to] = (resumed[to] ?? 0) + (first.includes(MESSAGE) ? 1 : 0);
      const upstream = connect(to, "127.0.0.1", () => upstream.write(first));
      upstream.on("error", () => client.destroy());
      upstream.on("data", (data) => {
        replied += to === scriptPort ? data.length : 0;
      });
      client.pipe(upstream).pipe(client);
    });
  });
  const proxyPort = await listen(proxy);
  const page = createHttp((_, response) => {
    response.setHeader("content-type", "text/html");
    const ask = `fetch("https://localhost:${proxyPort}/", { mode: "no-cors", cache: "no-store" }).catch(() => 0)`;
    response.end(`<!doctype html><script>setInterval(() => ${ask}, 300)</script>`);
  });
  const pagePort = await listen(page);

  const { executablePath, args = [] } = info.project.use.launchOptions ?? {};
  const browser = await chromium.launch({
    ...(executablePath === undefined ? {} : { executablePath }),
    args: [...args, `--ignore-certificate-errors-spki-list=${pin}`],
  });
  try {
    await (await browser.newPage()).goto(`http://localhost:${pagePort}/`);
    const patience = { timeout: 30_000 };
    await expect
      .poll(() => resumed[sitePort], { ...patience, message: "sessions resumed at the site" })
      .toBeGreaterThan(0);
    target = scriptPort;
    site.kill();
    await expect
      .poll(() => resumed[scriptPort], { ...patience, message: "messages sent to the script" })
      .toBeGreaterThan(2);
    expect(await server.batch({ op: "get_keys" })).toEqual([0]);
    expect(replied, "bytes of the script's replies").toBe(0);
  } finally {
    await browser.close();
    site.kill();
    proxy.close();
    page.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
