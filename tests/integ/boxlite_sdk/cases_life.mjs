// Boxes: made, named, found, listed, stopped, started, removed; who may; what the service can not do.

import {
  assert, freshName, IMAGE, NOT_FOUND, out, processRuns, refuses, rejects, rt, run, runtime, sdk, sh, start, STOPPED, until, withBox,
  withFolder,
} from "./kit.mjs";
import fs from "node:fs";
import path from "node:path";

const ids = async () => (await rt.listInfo()).map((info) => info.id);

async function create_unnamed() {
  const before = Date.now();
  await withBox(async (box) => {
    assert.match(box.id, /^[A-Za-z0-9_-]{1,128}$/);
    assert.equal(box.name, null);
    const info = await box.info();
    assert.equal(info.id, box.id);
    assert.equal(info.image, IMAGE);
    assert.ok(["running", "configured"].includes(info.state.status), info.state.status);
    const age = Date.parse(info.createdAt) - before;
    assert.ok(age > -2000 && age < 60_000, `createdAt ${info.createdAt}`);
  });
}

async function create_named() {
  const name = freshName("named");
  await withBox(async (box) => {
    assert.equal(box.name, name);
    assert.equal((await box.info()).name, name);
    const found = await rt.get(name);
    assert.deepEqual([found.id, found.name], [box.id, name]);
    assert.equal((await rt.getInfo(name)).id, box.id);
    assert.equal((await rt.getInfo(box.id)).name, name);
    assert.equal(await out(found, "echo from get"), "from get\n");
  }, {}, name);
  assert.equal(await rt.get(name), null);
}

async function create_duplicate_name() {
  const name = freshName("twice");
  await withBox(async (box) => {
    await refuses({}, name, /^already exists: /);
    assert.equal(await out(box, "echo unharmed"), "unharmed\n");
  }, {}, name);
  await withBox(async (box) => assert.equal(box.name, name), {}, name);
}

async function create_bad_name() {
  const before = await ids();
  for (const name of ["", "a b", "-dash-first", "a/b", "n".repeat(129)]) {
    await refuses({}, name, /^invalid argument: /, JSON.stringify(name));
  }
  assert.deepEqual(await ids(), before);
}

async function create_with_options() {
  const options = { cpus: 2, memoryMib: 256, workingDir: "/var/tmp", env: [{ key: "OF_BOX", value: "1 2" }] };
  await withBox(async (box) => {
    const info = await box.info();
    assert.deepEqual([info.cpus, info.memoryMib], [2, 256]);
    assert.equal(await out(box, 'echo "$OF_BOX"; pwd'), "1 2\n/var/tmp\n");
  }, options);
}

async function create_as_user() {
  await withBox(async (box) => assert.equal(await out(box, "id -u; id -g"), "1000\n1001\n"), { user: "1000:1001" });
}

async function create_bad_options() {
  const bad = [{ cpus: 0 }, { cpus: 33 }, { memoryMib: 1 }, { workingDir: "relative" }, { env: [{ key: "A=B", value: "" }] }];
  for (const options of bad) {
    await refuses(options, null, /^invalid argument: /, JSON.stringify(options));
  }
  await refuses({ image: "127.0.0.1:1/no-such-image:0" }, null, /^images error: /);
}

async function get_or_create() {
  const name = freshName("shared");
  await withBox(async (box) => {
    const again = await rt.getOrCreate({ image: IMAGE }, name);
    assert.deepEqual([again.created, again.box.id], [false, box.id]);
  }, {}, name);
  const anew = await rt.getOrCreate({ image: IMAGE }, name);
  assert.equal(anew.created, true);
  await rt.remove(anew.box.id, true);
}

async function two_boxes_are_isolated() {
  await withBox((one) => withBox(async (two) => {
    assert.notEqual(one.id, two.id);
    await out(one, "echo one >/tmp/who");
    await out(two, "echo two >/tmp/who");
    assert.equal(await out(one, "cat /tmp/who"), "one\n");
    const sleeper = await start(one, ["sleep", "4321"]);
    await until(() => processRuns(one, "sleep 4321"));
    assert.equal(await processRuns(two, "sleep 4321"), false);
    await sleeper.kill();
  }));
}

async function list() {
  let gone;
  await withBox((one) => withBox(async (two) => {
    const found = await rt.listInfo();
    const names = new Map(found.map((info) => [info.id, info.name]));
    assert.ok(names.has(one.id));
    assert.equal(names.get(two.id), two.name);
    assert.equal(names.size, found.length, "each once");
    gone = two.id;
  }, {}, freshName("listed")));
  assert.ok(!(await ids()).includes(gone));
}

async function unknown_ids() {
  for (const id of ["no-such-box", "0123456789abcdef", "no.such.box"]) {
    assert.equal(await rt.get(id), null);
    assert.equal(await rt.getInfo(id), null);
    await rejects(rt.remove(id), NOT_FOUND);
    await rejects(rt.remove(id, true), NOT_FOUND);
  }
}

async function a_removed_box_is_not_found() {
  await withFolder((dir) => withBox(async (box) => {
    fs.writeFileSync(path.join(dir, "f"), "f");
    await rt.remove(box.id, true);
    await rejects(box.info(), NOT_FOUND);
    await rejects(box.start(), NOT_FOUND);
    await rejects(box.stop(), NOT_FOUND);
    await rejects(box.metrics(), NOT_FOUND);
    await rejects(start(box, ["true"]), NOT_FOUND);
    await rejects(box.copyIn(path.join(dir, "f"), "/tmp/f"), NOT_FOUND);
    await rejects(box.copyOut("/etc/passwd", path.join(dir, "out")), NOT_FOUND);
    await rejects(rt.remove(box.id, true), NOT_FOUND);
  }));
}

async function stop_and_start() {
  await withFolder((dir) => withBox(async (box) => {
    await out(box, "echo kept >/root/kept; mkdir -p /mnt/user-data/workspace/d; echo too >/mnt/user-data/workspace/d/f");
    await box.stop();
    assert.deepEqual((await box.info()).state.status, "stopped");
    assert.ok((await ids()).includes(box.id));
    assert.equal((await (await start(box, ["true"])).wait()).exitCode, 0); // it starts by being used
    assert.equal((await box.info()).state.running, true);
    await box.stop();
    await box.start();
    assert.equal((await box.info()).state.running, true);
    assert.equal(await out(box, "cat /root/kept /mnt/user-data/workspace/d/f"), "kept\ntoo\n");
    await box.copyOut("/root/kept", path.join(dir, "kept"));
    assert.equal(fs.readFileSync(path.join(dir, "kept"), "utf8"), "kept\n");
  }));
}

async function start_and_stop_twice() {
  await withBox(async (box) => {
    await box.start();
    await box.start();
    assert.equal(await out(box, "echo runs"), "runs\n");
    await box.stop();
    await box.stop().catch((error) => assert.match(error.message, STOPPED));
    assert.equal((await box.info()).state.status, "stopped");
  });
}

async function stop_ends_what_runs() {
  await withBox(async (box) => {
    const sleeper = await start(box, ["sleep", "1000"]);
    await box.stop();
    assert.notEqual((await sleeper.wait()).exitCode, 0);
    await box.start();
    assert.equal(await processRuns(box, "sleep 1000"), false);
  });
}

async function remove_needs_force() {
  await withBox(async (box) => {
    await box.start();
    await rejects(rt.remove(box.id), /^invalid state: /);
    assert.equal(await out(box, "echo lives"), "lives\n");
    await box.stop();
    await rt.remove(box.id);
    assert.equal(await rt.get(box.id), null);
  });
}

async function remove_ends_what_runs() {
  await withBox(async (box) => {
    const sleeper = await start(box, ["sleep", "1000"]);
    await rt.remove(box.id, true);
    assert.notEqual((await sleeper.wait()).exitCode, 0);
  });
}

async function remove_by_name() {
  const name = freshName("removed");
  await withBox(async (box) => {
    await rt.remove(name, true);
    assert.equal(await rt.get(box.id), null);
  }, {}, name);
}

async function metrics() {
  const before = await rt.metrics();
  await withBox(async (box) => {
    const one = await box.metrics();
    await sh(box, "exit 3");
    await sh(box, "echo 12345678");
    const two = await box.metrics();
    assert.equal(two.commandsExecutedTotal, one.commandsExecutedTotal + 2);
    assert.ok(two.bytesReceivedTotal >= one.bytesReceivedTotal + 9, JSON.stringify([one, two]));
    const now = await rt.metrics();
    assert.equal(now.boxesCreatedTotal, before.boxesCreatedTotal + 1);
    assert.equal(now.numRunningBoxes, before.numRunningBoxes + 1);
    assert.ok(now.totalCommandsExecuted >= before.totalCommandsExecuted + 2);
  });
  assert.equal((await rt.metrics()).numRunningBoxes, before.numRunningBoxes);
}
async function tokens() {
  await withBox(async (box) => {
    for (const token of ["wrong", "", `${process.env.SBX_TOKEN}x`, process.env.SBX_TOKEN.slice(0, -1)]) {
      const stranger = runtime(token);
      await rejects(stranger.listInfo(), /auth: /, token);
      await rejects(stranger.get(box.id), /auth: /, token);
      await rejects(stranger.remove(box.id, true), /auth: /, token);
      await rejects(stranger.create({ image: IMAGE }), /auth: /, token);
    }
    await rejects(runtime(null).listInfo(), /auth: /);
    assert.equal(await out(box, "echo unharmed"), "unharmed\n");
  });
}

async function what_it_can_not_do() {
  await withBox(async (box) => {
    await rejects(box.snapshot.list(), /^unsupported: /);
    await rejects(box.cloneBox(null, null), /^unsupported: /);
    await rejects(box.export("/tmp/no-such-folder/x"), /^unsupported: /);
    await rejects(rt.importBox("/etc/hostname"), /^unsupported: /);
    await rejects(box.network.tunnel(80), /^(unsupported|box not found|invalid state): /);
    await rejects(rt.volumes.list(), /^(unsupported|box not found): /);
    await refuses({ advanced: { capabilities: { add: ["SYS_ADMIN"] } } }, null, /^unsupported: /);
    assert.equal(await out(box, "echo unharmed"), "unharmed\n");
  });
}

async function boxes_outlive_the_runtime() {
  const other = runtime();
  const box = await other.create({ image: IMAGE });
  try {
    await other.shutdown();
    other.close();
    assert.equal(await out(await rt.get(box.id), "echo lives"), "lives\n");
  } finally {
    await rt.remove(box.id, true);
  }
}

async function simple_box() {
  const name = freshName("simple");
  const simple = new sdk.SimpleBox({ runtime: rt, image: IMAGE, name, env: { OF_BOX: "1" } });
  try {
    const first = await simple.exec("sh", "-c", "echo $OF_BOX $HERE; echo err >&2; exit 4", { HERE: "2" });
    assert.deepEqual(first, { exitCode: 4, stdout: "1 2\n", stderr: "err\n" });
    const second = await simple.exec("pwd", [], undefined, { cwd: "/tmp", timeoutSecs: 20 });
    assert.deepEqual(second, { exitCode: 0, stdout: "/tmp\n", stderr: "" });
    const reused = new sdk.SimpleBox({ runtime: rt, image: IMAGE, name, reuseExisting: true });
    assert.deepEqual([await reused.getId(), reused.created], [simple.id, false]);
    await simple.stop();
  } finally {
    await rt.remove(name, true);
  }
}

async function boxes_at_once() {
  const made = await Promise.all(Array.from({ length: 8 }, (_, i) =>
    withBox(async (box) => [box.id, (await run(box, ["echo", `${i}`])).stdout])));
  assert.deepEqual(made.map(([, text]) => text), Array.from({ length: 8 }, (_, i) => `${i}\n`));
  assert.equal(new Set(made.map(([id]) => id)).size, 8);
}

export default {
  create_unnamed, create_named, create_duplicate_name, create_bad_name, create_with_options, create_as_user, create_bad_options,
  get_or_create, two_boxes_are_isolated, list, unknown_ids, a_removed_box_is_not_found, stop_and_start, start_and_stop_twice,
  stop_ends_what_runs, remove_needs_force, remove_ends_what_runs, remove_by_name, metrics, tokens, what_it_can_not_do,
  boxes_outlive_the_runtime, simple_box, boxes_at_once,
};
