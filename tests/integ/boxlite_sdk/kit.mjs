// What every case stands on: the SDK, a runtime that talks to the sbxd under test, boxes that are gone when their case is,
// and a command's whole result. The environment says where: SBX_SDK (the folder with node_modules), SBX_URL, SBX_TOKEN,
// SBX_IMAGE, SBX_PATIENCE.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

export { assert };

const require = createRequire(path.join(process.env.SBX_SDK, "package.json"));
export const sdk = await import(pathToFileURL(require.resolve("@boxlite-ai/boxlite")));

export const runtime = (token = process.env.SBX_TOKEN) =>
  sdk.JsBoxlite.rest(
    new sdk.BoxliteRestOptions({
      url: process.env.SBX_URL,
      credential: token === null ? undefined : new sdk.ApiKeyCredential(token),
    }),
  );

export const rt = runtime();

/** What boxes of the driver under test are made of. */
export const IMAGE = process.env.SBX_IMAGE;

/** How many times slower they are than namespaces, for times that a case has short. */
export const PATIENCE = Number(process.env.SBX_PATIENCE);

let names = 0;
/** A box name that no other case has. */
export const freshName = (what) => `${what}-${process.pid}-${++names}`;

/** Calls body(box) with a new box; afterwards the box is gone, whatever happened. */
export async function withBox(body, options = {}, name = null) {
  const box = await rt.create({ image: IMAGE, ...options }, name);
  try {
    return await body(box);
  } finally {
    await rt.remove(box.id, true).catch(ifNotGone);
  }
}

function ifNotGone(error) {
  if (!/^box not found/.test(error.message)) throw error;
}

/** Calls body(dir) with a folder of the host that is gone afterwards. */
export async function withFolder(body) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "sbxd-sdk-"));
  try {
    return await body(dir);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

export async function drain(stream) {
  let text = "";
  for (let part = await stream.next(); part !== null; part = await stream.next()) text += part;
  return text;
}

/** Starts a command; its streams are the caller's. */
export const start = (box, argv, { env, tty, timeout, cwd } = {}) =>
  box.exec(argv[0], argv.slice(1), env ? Object.entries(env) : null, tty ?? false, null, timeout ?? null, cwd ?? null);

/** Both streams to their ends, and the result. */
export async function finish(execution) {
  const [stdout, stderr] = await Promise.all([
    execution.stdout().then(drain),
    execution.stderr().then(drain),
  ]);
  return { stdout, stderr, ...(await execution.wait()) };
}

export const run = async (box, argv, options) => finish(await start(box, argv, options));
export const sh = (box, script, options) => run(box, ["sh", "-c", script], options);

/** stdout of a shell command that must succeed and say nothing on stderr. */
export async function out(box, script, options) {
  const { stdout, ...rest } = await sh(box, script, options);
  assert.deepEqual(rest, { stderr: "", exitCode: 0 }, script);
  return stdout;
}

/** Reads a stream until it has said text; all that it said. */
export async function heard(stream, text) {
  let said = "";
  while (!said.includes(text)) {
    const part = await stream.next();
    assert.notEqual(part, null, `the stream ended after ${JSON.stringify(said)}, without ${JSON.stringify(text)}`);
    said += part;
  }
  return said;
}

/** The SDK has one class of errors; what kind it is, its message begins with. */
export const rejects = (promise, pattern, why) =>
  assert.rejects(promise, (error) => {
    assert.match(error.message, pattern, why);
    return true;
  });

/** A box that must not be made; if it is all the same, it is removed. */
export const refuses = (options, name, pattern, why) =>
  rejects(rt.create({ image: IMAGE, ...options }, name).then((box) => rt.remove(box.id, true)), pattern, why);

export const NOT_FOUND = /^box not found: /;
export const STOPPED = /^(stopped|invalid state): /;

/** BoxLite writes a death by signal N as -N or 128 + N. */
export function assertSignalled({ exitCode }, signal) {
  assert.ok([-signal, 128 + signal].includes(exitCode), `${exitCode} is no death by signal ${signal}`);
}

/** Polls until condition() holds: for what ends by itself and cannot be awaited. The case's own bound ends it. */
export async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Whether a command line of a live process in the box has the words. */
export async function processRuns(box, words) {
  const lines = await out(box, "for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$p 2>/dev/null; echo; done");
  return lines.split("\n").some((line) => line.startsWith(words));
}
