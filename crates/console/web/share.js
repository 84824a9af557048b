/** The sharing panel: the picture at any scale, and the last seconds as a GIF or WebM file. */

import * as actions from "./actions.js";
import { attempt } from "./app.js";
import { about, button, disable, field, numberChoice } from "./controls.js";
import { el, setText } from "./dom.js";
import { gif, RATE } from "./gif.js";
import { saveFile } from "./transport.js";

/**
 * @import { App } from "./app.js"
 * @import { Clip } from "./clip.js"
 */

/** A GIF file has a picture for every other frame of the console, which is about 30 pictures per second. */
const GIF_STEP = 2;
/**
 * For how long a WebM file shows the last picture. The recorder writes a picture only some time after it was drawn, so
 * without this time, a clip of a single picture would contain none.
 */
const LAST_MS = 500;
/** The time between two drawings of the last picture. */
const REDRAW_MS = 50;

/** @type {(app: App, clip: Clip) => HTMLElement} */
export function sharePanel(app, clip) {
  const scale = numberChoice([1, 2, 3, 4, 5, 6, 8, 10], 4, (times) => `${times}×`);
  const length = numberChoice([5, 10, 20, 30], 10, (seconds) => `${seconds} seconds`);
  const size = numberChoice([1, 2, 3, 4], 2, (times) => `${times}×`);
  const note = el("p", { class: "note", role: "status" });

  const savePicture = () =>
    attempt(async () => {
      /** @type {Blob} */
      const picture = await app.api.act(actions.screenshot());
      saveFile(await enlarged(picture, Number(scale.value)), "screen.png");
    });
  const saveGif = () =>
    attempt(async () => {
      const file = gif(clip.frames(Number(length.value), GIF_STEP), Number(size.value));
      saveFile(file, "clip.gif");
      setText(note, `Saved clip.gif: ${sizeText(file.size)}.`);
    });
  const saveWebM = () =>
    attempt(async () => {
      const file = await webm(clip, Number(length.value), Number(size.value), (done) =>
        setText(note, `Recording clip.webm: ${Math.round(done * 100)} %`),
      );
      saveFile(file, "clip.webm");
      setText(note, `Saved clip.webm: ${sizeText(file.size)}.`);
    });

  const video = button({ icon: "download", label: "WebM" }, saveWebM);
  if (!("MediaRecorder" in globalThis)) disable(video, "This browser does not write WebM files.");
  return el(
    "div",
    {},
    el(
      "div",
      { class: "part" },
      el("h2", {}, "Picture"),
      el(
        "div",
        { class: "line" },
        field("Scale of the picture", scale),
        button({ icon: "download", label: "PNG" }, savePicture),
      ),
    ),
    el(
      "div",
      { class: "part" },
      el("h2", {}, "Clip"),
      about(
        "The last seconds that this page has shown, without sound, at the console's own speed. Saving a WebM file takes as long as the clip.",
      ),
      el(
        "div",
        { class: "line" },
        field("The last", length),
        field("Scale of the clip", size),
        button({ icon: "download", label: "GIF" }, saveGif),
        video,
      ),
      note,
    ),
  );
}

/**
 * An enlarged copy of a PNG file. Each pixel becomes a square of `scale` by `scale` pixels.
 * @type {(picture: Blob, scale: number) => Promise<Blob>}
 */
async function enlarged(picture, scale) {
  const small = await createImageBitmap(picture);
  const canvas = el("canvas", { width: small.width * scale, height: small.height * scale });
  const context = canvas.getContext("2d");
  if (context) context.imageSmoothingEnabled = false;
  context?.drawImage(small, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser wrote no picture"))));
  });
}

/**
 * Plays the clip on a canvas, which the browser records.
 * @param {Clip} clip
 * @param {number} seconds
 * @param {number} scale
 * @param {(done: number) => void} progress Called with a number from 0 to 1.
 * @returns {Promise<Blob>}
 */
async function webm(clip, seconds, scale, progress) {
  const small = el("canvas", {});
  const large = el("canvas", {});
  const context = large.getContext("2d");
  /** @type {MediaRecorder | undefined} */
  let recorder;
  /** @type {Blob[]} */
  const parts = [];
  const enlarge = () => {
    if (context) context.imageSmoothingEnabled = false;
    context?.drawImage(small, 0, 0, large.width, large.height);
  };
  let begun = 0;
  let first = 0;
  for (const { width, height, tick, pixels } of clip.frames(seconds, 1)) {
    const bytes = new Uint8ClampedArray(/** @type {ArrayBuffer} */ (pixels.buffer));
    if (!recorder) {
      [small.width, small.height, large.width, large.height] = [width, height, width * scale, height * scale];
      recorder = new MediaRecorder(large.captureStream(60), { mimeType: "video/webm" });
      recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
      recorder.start();
      [begun, first] = [performance.now(), tick];
    }
    const wait = begun + ((tick - first) / RATE) * 1000 - performance.now();
    if (wait > 4) await sleep(wait);
    small.getContext("2d")?.putImageData(new ImageData(bytes, width, height), 0, 0);
    enlarge();
    progress(Math.min(1, (tick - first) / (seconds * 60)));
  }
  if (!recorder) throw new Error("there are no pictures yet");
  for (let shown = 0; shown < LAST_MS; shown += REDRAW_MS) {
    await sleep(REDRAW_MS);
    enlarge();
  }
  const ended = new Promise((resolve) => recorder?.addEventListener("stop", resolve));
  recorder.stop();
  await ended;
  return new Blob(parts, { type: "video/webm" });
}

/** @type {(milliseconds: number) => Promise<void>} */
function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** @type {(bytes: number) => string} */
function sizeText(bytes) {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
