// Commands: what they get (arguments, environment, folder, stdin) and what they end with.

import { assert, finish, heard, out, rejects, run, sh, start, withBox } from "./kit.mjs";

async function exit_codes() {
  await withBox(async (box) => {
    for (const code of [0, 1, 42, 126, 127, 255]) {
      assert.deepEqual(await sh(box, `exit ${code}`), { stdout: "", stderr: "", exitCode: code });
    }
  });
}

async function exit_by_signal() {
  await withBox(async (box) => {
    const { exitCode } = await sh(box, "kill -9 $$");
    assert.ok([-9, 137].includes(exitCode), `${exitCode}`);
  });
}

async function programs_are_found_by_name() {
  await withBox(async (box) => {
    assert.equal((await run(box, ["printf", "%s", "by name"])).stdout, "by name");
    assert.equal((await run(box, ["/bin/sh", "-c", "echo by path"])).stdout, "by path\n");
  });
}

async function no_such_program() {
  await withBox(async (box) => {
    for (const program of ["no-such-program", "/no/such/program", "/tmp", "/etc/passwd"]) {
      await rejects(start(box, [program]), /^Execution error: /, program);
    }
    assert.equal(await out(box, "echo unharmed"), "unharmed\n");
  });
}

async function arguments_are_verbatim() {
  const args = ["", " ", "a b", "'\"$HOME`id`\\", "line\nline", "-n", "--", "*", "é世界", "x".repeat(100_000)];
  await withBox(async (box) => {
    const { stdout, exitCode } = await run(box, ["sh", "-c", 'for a; do printf "%s\\036" "$a"; done', "sh", ...args]);
    assert.equal(exitCode, 0);
    assert.deepEqual(stdout.split("\x1e"), [...args, ""]);
  });
}

async function environment() {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`MANY_${i}`, `value ${i}`]));
  await withBox(async (box) => {
    const said = await out(box, "env", { env: { ...many, OF_BOTH: "exec", ODD: "a=b\nc é" } });
    for (const [key, value] of Object.entries(many)) assert.ok(said.includes(`${key}=${value}\n`), key);
    assert.ok(said.includes("OF_BOTH=exec\n") && said.includes("OF_BOX=1\n") && said.includes("ODD=a=b\nc é\n"), said);
    assert.equal(await out(box, 'echo "$OF_BOTH ${ODD-unset} ${MANY_1-unset}"'), "box unset unset\n", "of that command only");
    assert.equal(await out(box, 'echo "${SBX_OF_THE_HOST-unset}"'), "unset\n", "nothing of the host's");
    await rejects(start(box, ["true"], { env: { "A-B": "1" } }), /^invalid argument: /);
  }, { env: [{ key: "OF_BOX", value: "1" }, { key: "OF_BOTH", value: "box" }] });
}

async function working_folder() {
  await withBox(async (box) => {
    assert.equal(await out(box, "pwd", { cwd: "/tmp" }), "/tmp\n");
    await out(box, "mkdir '/tmp/with space é'");
    assert.equal(await out(box, "pwd", { cwd: "/tmp/with space é" }), "/tmp/with space é\n");
    await rejects(start(box, ["pwd"], { cwd: "/no/such/folder" }), /^(Execution error|invalid argument|box not found): /);
    await rejects(start(box, ["pwd"], { cwd: "relative" }), /^invalid argument: /);
  });
}

async function the_user_is_root() {
  await withBox(async (box) => assert.equal(await out(box, "id -u; echo $HOME"), "0\n/root\n"));
}

async function stdin() {
  await withBox(async (box) => {
    const cat = await start(box, ["cat"]);
    const input = await cat.stdin();
    await input.writeString("one\n");
    await input.write(Buffer.from("two é\n"));
    await input.close();
    assert.deepEqual(await finish(cat), { stdout: "one\ntwo é\n", stderr: "", exitCode: 0 });
  });
}

async function stdin_is_bytes() {
  await withBox(async (box) => {
    const od = await start(box, ["od", "-An", "-v", "-tu1"]);
    const input = await od.stdin();
    await input.write(Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i)));
    await input.close();
    const numbers = (await finish(od)).stdout.trim().split(/\s+/).map(Number);
    assert.deepEqual(numbers, Array.from({ length: 256 }, (_, i) => i));
  });
}

async function stdin_of_20_mib_in_one_write() {
  const block = Buffer.alloc(20 << 20);
  for (let i = 0; i < block.length; i += 4) block.writeUInt32LE(i * 2654435761 % 2 ** 32, i);
  const { createHash } = await import("node:crypto");
  await withBox(async (box) => {
    const sum = await start(box, ["sha256sum"]);
    const input = await sum.stdin();
    await input.write(block);
    await input.close();
    assert.equal((await finish(sum)).stdout, `${createHash("sha256").update(block).digest("hex")}  -\n`);
  });
}

async function stdin_that_nobody_reads() {
  await withBox(async (box) => {
    const command = await start(box, ["sh", "-c", "exec <&-; until [ -e /tmp/go ]; do sleep 0.01; done; echo deaf; exit 5"]);
    const input = await command.stdin();
    await input.write(Buffer.alloc(8 << 20, "x"));
    await input.close();
    await out(box, "touch /tmp/go");
    assert.deepEqual(await finish(command), { stdout: "deaf\n", stderr: "", exitCode: 5 });
    assert.equal(await out(box, "echo unharmed"), "unharmed\n");
  });
}

async function stdin_is_open_until_closed() {
  await withBox(async (box) => {
    const command = await start(box, ["sh", "-c", "echo ready; read line; echo \"got $line\"; cat; echo end"]);
    const stdout = await command.stdout();
    await heard(stdout, "ready\n");
    const input = await command.stdin();
    await input.writeString("a line\n");
    await heard(stdout, "got a line\n");
    await input.writeString("more\n");
    await heard(stdout, "more\n");
    await input.close();
    await heard(stdout, "end\n");
    assert.equal((await command.wait()).exitCode, 0);
  });
}

async function a_child_that_keeps_the_pipes() {
  await withBox(async (box) => {
    assert.deepEqual(await sh(box, "sleep 1000 & echo started"), { stdout: "started\n", stderr: "", exitCode: 0 });
  });
}

export default {
  exit_codes, exit_by_signal, programs_are_found_by_name, no_such_program, arguments_are_verbatim, environment, working_folder,
  the_user_is_root, stdin, stdin_is_bytes, stdin_of_20_mib_in_one_write, stdin_that_nobody_reads, stdin_is_open_until_closed,
  a_child_that_keeps_the_pipes,
};
