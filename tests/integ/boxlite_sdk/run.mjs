// Runs every case, and prints one JSON line for each: {"case", "ok", "ms"[, "error"]}. One after the other; but a case that only
// waits ("slow") runs beside those after it. A case that takes longer than SBX_BOUND seconds has failed. Names as arguments: only
// those cases.

import { assert, rt } from "./kit.mjs";
import exec from "./cases_exec.mjs";
import files from "./cases_files.mjs";
import control from "./cases_control.mjs";
import life from "./cases_life.mjs";
import streams from "./cases_streams.mjs";

const bound = 1000 * Number(process.env.SBX_BOUND ?? 30);
const only = new Set(process.argv.slice(2));

function inTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still running after ${bound / 1000} s`)), bound);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

async function tell(name, body) {
  const began = performance.now();
  let error;
  try {
    await inTime(body());
  } catch (e) {
    error = e.stack ?? String(e);
  }
  const ms = Math.round(performance.now() - began);
  console.log(JSON.stringify({ case: name, ok: error === undefined, ms, error }));
}

async function nothing_is_left() {
  assert.deepEqual(await rt.listInfo(), []);
}

const beside = [];
for (const [name, body] of Object.entries({ ...life, ...exec, ...streams, ...control, ...files })) {
  if (only.size > 0 && !only.has(name)) continue;
  const told = tell(name, body);
  if (body.slow) beside.push(told);
  else await told;
}
await Promise.all(beside);
await tell("nothing_is_left", nothing_is_left);
process.exit(0); // a case that was given up may still hold a socket
