/** Decodes IMA ADPCM; docs/video.md, "Sound", describes the messages. */

/** Bytes of the header of a message. */
const HEADER = 8;

/** The step sizes. Each one is about 1.1 times the one before it. */
const STEPS = new Int32Array([
  7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97,
  107, 118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724,
  796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026,
  4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500,
  20350, 22385, 24623, 27086, 29794, 32767,
]);

/** How much a code changes the index into `STEPS`. The lower three bits of the code select an entry. */
const CHANGES = [-1, -1, -1, -1, 2, 4, 6, 8];

/**
 * The samples of a message for the left and the right channel, from -1 to 1.
 * @type {(message: ArrayBuffer) => [Float32Array<ArrayBuffer>, Float32Array<ArrayBuffer>]}
 */
export function decode(message) {
  return [channel(message, 0), channel(message, 1)];
}

/** @type {(message: ArrayBuffer, which: 0 | 1) => Float32Array<ArrayBuffer>} */
function channel(message, which) {
  if (message.byteLength < HEADER) return new Float32Array(0);
  const head = new DataView(message, which * 4);
  const codes = new Uint8Array(message, HEADER);
  const samples = new Float32Array(codes.length);
  let last = head.getInt16(0, true);
  let index = Math.min(head.getUint8(2), STEPS.length - 1);
  for (let at = 0; at < codes.length; at += 1) {
    const code = ((codes[at] ?? 0) >> (which * 4)) & 15;
    const step = STEPS[index] ?? 7;
    let change = step >> 3;
    if (code & 4) change += step;
    if (code & 2) change += step >> 1;
    if (code & 1) change += step >> 2;
    last = Math.max(-32768, Math.min(32767, code & 8 ? last - change : last + change));
    index = Math.max(0, Math.min(STEPS.length - 1, index + (CHANGES[code & 7] ?? 0)));
    samples[at] = last / 32768;
  }
  return samples;
}
