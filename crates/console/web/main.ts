/** Puts the page together. */

import { activity } from "./activity.ts";
import { Api } from "./api.ts";
import type { App } from "./app.ts";
import { Controller } from "./controller.ts";
import { byId, el } from "./dom.ts";
import { Emulation } from "./emulation.ts";
import { playByGamepad } from "./gamepad.ts";
import { header } from "./header.ts";
import { playByKeyboard } from "./keyboard.ts";
import { Latency, linkPanel } from "./link.ts";
import { mappingPanel } from "./mapping.ts";
import { MemoryPanel } from "./memory.ts";
import { pad } from "./pad.ts";
import { RecordingsPanel } from "./recordings.ts";
import { Rpc } from "./rpc.ts";
import { screen } from "./screen.ts";
import { sequencesPanel } from "./sequences.ts";
import { SnapshotsPanel } from "./snapshots.ts";
import { StatusWatch } from "./status.ts";
import { Symbols } from "./symbols.ts";
import { tabs } from "./tabs.ts";
import { toast } from "./toast.ts";
import { transport } from "./transport.ts";
import { WatchesPanel } from "./watches.ts";

const api = new Api();
const named = new URLSearchParams(location.search).get("emulator");
if (named) api.emulator.set(named);
api.onCopied = (command) => toast(`Copied: ${command}`);

const rpc = new Rpc(() => api.socketUrl("/v1/ws"));
const emulation = new Emulation(rpc, api);
const controller = new Controller(emulation, api);
const watch = new StatusWatch(api);
const app: App = { api, rpc, controller, watch, status: watch.status };
const latency = new Latency(() => emulation.ping());

const stage = byId("stage");
const picture = screen(app);
stage.append(picture.element, transport(app, stage, picture.focus), pad(controller));

const symbols = new Symbols(api);
const watches = new WatchesPanel(app, symbols);
const memory = new MemoryPanel(app, emulation, symbols, (expression) => {
  watches.add(expression);
  toast(`Watching ${expression}.`);
});
const snapshots = new SnapshotsPanel(app);
const recordings = new RecordingsPanel(app);
const losses = (): number => rpc.socket.losses.value + picture.video.socket.losses.value;

byId("tools").append(
  tabs("Tools", [
    { id: "memory", label: "Memory", panel: memory.element, shown: (visible) => memory.shown(visible) },
    { id: "watches", label: "Watches", panel: watches.element, shown: (visible) => watches.shown(visible) },
    {
      id: "snapshots",
      label: "Snapshots",
      panel: snapshots.element,
      shown: (visible) => snapshots.shown(visible),
    },
    {
      id: "recordings",
      label: "Recordings",
      panel: recordings.element,
      shown: (visible) => recordings.shown(visible),
    },
    { id: "input", label: "Input", panel: el("div", {}, sequencesPanel(app), mappingPanel()) },
    { id: "link", label: "Link", panel: linkPanel(app, latency, picture.video.rate, losses) },
    { id: "activity", label: "Log", panel: activity(app) },
  ]),
);
header(app, latency);

playByKeyboard(controller, picture.focus);
playByGamepad(controller);
rpc.onOpen(() => controller.repeat());
rpc.socket.start();
void api.probe().catch(() => {});
watch.listen(rpc);
watch.start();
latency.start();
