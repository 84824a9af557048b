/** Starts the page: creates its parts and connects them. */

import { Api } from "./api.js";
import { attempt } from "./app.js";
import { commands } from "./commands.js";
import { Controller } from "./controller.js";
import { playAfterClicks } from "./controls.js";
import { byId, el } from "./dom.js";
import { takeDroppedFiles } from "./drop.js";
import { EmulatorClient } from "./emulation.js";
import { header, selectEmulator } from "./header.js";
import { playByKeyboard } from "./keyboard.js";
import { LazyPanel } from "./lazy.js";
import { Latency } from "./link.js";
import { Marks } from "./marks.js";
import { MemoryPanel } from "./memory.js";
import { pad } from "./pad.js";
import { followLink } from "./pagelink.js";
import { Rpc } from "./rpc.js";
import { screen } from "./screen.js";
import { StatusPoller } from "./status.js";
import { Store } from "./store.js";
import { Symbols } from "./symbols.js";
import { tabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { toast } from "./toast.js";
import { transport } from "./transport.js";
import { watched, watchExpression } from "./watchlist.js";

/**
 * @import { App } from "./app.js"
 * @import { Place } from "./tiles.js"
 */

const api = new Api();
const named = new URLSearchParams(location.search).get("emulator");
if (named) api.emulator.set(named);
api.onCopied = (command) => toast(`Copied: ${command}`, "copied");

const rpc = new Rpc(api);
const emulation = new EmulatorClient(rpc);
const poller = new StatusPoller(api, rpc);
const controller = new Controller(emulation, api, poller.status);
/** @type {App} */
const app = { api, rpc, controller, poller, status: poller.status, marks: new Marks() };
const latency = new Latency(() => emulation.ping());

const stage = byId("stage");
const picture = screen(app);
const timeline = new Timeline(app, picture.focus);
stage.append(
  picture.element,
  transport(app, stage, picture.focus),
  timeline.element,
  pad(controller, app.status),
);

const symbols = new Symbols(api, poller);
const watches = new LazyPanel(async () => {
  const { WatchesPanel } = await import("./watches.js");
  return new WatchesPanel(app, symbols);
});
const values = new LazyPanel(async () => {
  const { WatchedValues } = await import("./watchedvalues.js");
  return new WatchedValues(app);
});
values.element.classList.add("watched");
/** Whether the tool with the watches is visible. */
const showsWatches = new Store(false);
const showValues = () => {
  const visible = !showsWatches.value && watched.value.length > 0;
  values.element.hidden = !visible;
  values.shown(visible);
};
/** @param {string} expression */
const watchIt = (expression) => {
  watchExpression(expression);
  toast(`Watching ${expression}.`);
};
const memory = new MemoryPanel(app, emulation, symbols, watchIt);
/** @param {Place} place */
const reveal = (place) => {
  tools.open("memory");
  memory.reveal(place);
};
const graphics = new LazyPanel(async () => {
  const { GraphicsPanel } = await import("./graphics.js");
  return new GraphicsPanel(app, emulation, reveal);
});
const snapshots = new LazyPanel(async () => {
  const { SnapshotsPanel } = await import("./snapshots.js");
  return new SnapshotsPanel(app, { reveal, watch: watchIt });
});
const recordings = new LazyPanel(async () => {
  const { RecordingsPanel } = await import("./recordings.js");
  return new RecordingsPanel(app);
});
const log = new LazyPanel(async () => {
  const { activity } = await import("./activity.js");
  return { element: activity(app) };
});
/**
 * How many times the page has lost a connection.
 * @returns {number}
 */
const losses = () => rpc.socket.losses.value + picture.video.socket.losses.value;

const input = new LazyPanel(async () => {
  const { sequencesPanel } = await import("./sequences.js");
  const { mappingPanel } = await import("./mapping.js");
  return { element: el("div", {}, sequencesPanel(app), mappingPanel()) };
});
const share = new LazyPanel(async () => {
  const { sharePanel } = await import("./share.js");
  return { element: sharePanel(app, picture.video.clip) };
});
const wall = new LazyPanel(async () => {
  const { Wall } = await import("./wall.js");
  return new Wall(app, (name) => selectEmulator(app, name));
});
const link = new LazyPanel(async () => {
  const { linkPanel } = await import("./linkpanel.js");
  return { element: linkPanel(app, latency, picture.video.rate, losses) };
});
const several = new Store(false);
app.status.follow(({ emulators }) => several.set(emulators.length > 1));

const tools = tabs("Tools", [
  { id: "memory", label: "Memory", panel: memory },
  { id: "graphics", label: "Graphics", panel: graphics },
  {
    id: "watches",
    label: "Watches",
    panel: {
      element: watches.element,
      shown: (visible) => {
        watches.shown(visible);
        showsWatches.set(visible);
      },
    },
  },
  { id: "snapshots", label: "Snapshots", panel: snapshots },
  { id: "recordings", label: "Recordings", panel: recordings },
  { id: "input", label: "Input", panel: input },
  { id: "share", label: "Share", panel: share },
  { id: "emulators", label: "Emulators", panel: wall, present: several },
  { id: "link", label: "Link", panel: link },
  { id: "activity", label: "Log", panel: log },
]);
byId("tools").append(tools.element, values.element);
showsWatches.follow(showValues);
watched.follow(showValues);
followLink({
  tool: tools.opened,
  place: memory.place,
  open: tools.open,
  reveal: (place) => memory.reveal(place),
});
playAfterClicks(snapshots.element, picture.focus);
playAfterClicks(recordings.element, picture.focus);

playByKeyboard(controller, picture.focus);
addEventListener("gamepadconnected", () =>
  attempt(async () => {
    const { playByGamepad } = await import("./gamepad.js");
    playByGamepad(controller);
  }),
);
// `commands` listens after `playByKeyboard`, so that keys of the game come first.
header(app, latency, commands(app));
takeDroppedFiles(app);
rpc.onOpen(async () => {
  // The last changes of the keys may not have arrived.
  controller.repeat();
  const may = await emulation.mayControl();
  if (may !== undefined) api.viewOnly.set(!may);
});
rpc.socket.start();
void api.probe().catch(() => {});
poller.start();
latency.start();
