// A command under control: terminals, signals, the end by force or by time.

import {
  assert, assertSignalled, drain, finish, heard, out, PATIENCE, processRuns, rejects, sh, start, until, withBox,
} from "./kit.mjs";

async function tty() {
  await withBox(async (box) => {
    const script = "test -t 0 && test -t 1 && test -t 2 && echo terminal; echo err >&2; stty size";
    const { stdout, stderr, exitCode } = await sh(box, script, { tty: true });
    assert.deepEqual([stderr, exitCode], ["", 0]);
    assert.match(stdout, /^terminal\r\nerr\r\n[1-9]\d* [1-9]\d*\r\n$/);
    assert.equal(await out(box, "test -t 0 || echo none"), "none\n");
  });
}

async function tty_input() {
  await withBox(async (box) => {
    const shell = await start(box, ["sh"], { tty: true });
    const [stdout, input] = await Promise.all([shell.stdout(), shell.stdin()]);
    await input.writeString("echo $((6 * 7)); exit 9\n");
    assert.match(await drain(stdout), /42\r\n/);
    assert.equal((await shell.wait()).exitCode, 9);
  });
}

async function tty_end_of_input() {
  await withBox(async (box) => {
    const cat = await start(box, ["cat"], { tty: true });
    const input = await cat.stdin();
    await input.writeString("a line\n");
    await input.close();
    const { stdout, exitCode } = await finish(cat);
    assert.equal(exitCode, 0);
    assert.match(stdout, /^a line\r\na line\r\n/, "as echoed, and as said");
  });
}

async function tty_interrupt() {
  await withBox(async (box) => {
    const script = "trap 'echo caught; exit 8' INT; echo ready; while :; do read x; done";
    const command = await start(box, ["sh", "-c", script], { tty: true });
    const stdout = await command.stdout();
    await heard(stdout, "ready");
    await (await command.stdin()).writeString("\x03");
    await heard(stdout, "caught");
    assert.equal((await command.wait()).exitCode, 8);
  });
}

async function tty_resize() {
  await withBox(async (box) => {
    const script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.01; done";
    const command = await start(box, ["sh", "-c", script], { tty: true });
    const stdout = await command.stdout();
    await heard(stdout, "ready");
    for (const [rows, cols] of [[40, 120], [24, 80]]) {
      await command.resizeTty(rows, cols);
      await heard(stdout, `${rows} ${cols}\r\n`);
    }
    await command.kill();
    assertSignalled(await command.wait(), 9);
  });
}

async function tty_resized_at_once() {
  await withBox(async (box) => {
    const command = await start(box, ["sh", "-c", "read x; stty size"], { tty: true });
    await command.resizeTty(33, 111);
    await (await command.stdin()).writeString("\n");
    assert.match((await finish(command)).stdout, /^33 111\r$/m);
  });
}

async function resize_without_tty() {
  await withBox(async (box) => {
    const cat = await start(box, ["cat"]);
    await rejects(cat.resizeTty(24, 80), /^invalid state: /);
    await (await cat.stdin()).close();
    assert.equal((await cat.wait()).exitCode, 0);
  });
}

async function signal_is_caught() {
  await withBox(async (box) => {
    const traps = 'for s in HUP INT QUIT USR1 USR2 TERM; do trap "echo got $s" $s; done';
    const command = await start(box, ["sh", "-c", `${traps}; echo ready; while :; do sleep 0.01; done`]);
    const stdout = await command.stdout();
    await heard(stdout, "ready\n");
    for (const [name, number] of Object.entries({ HUP: 1, INT: 2, QUIT: 3, USR1: 10, USR2: 12, TERM: 15 })) {
      await command.signal(number);
      await heard(stdout, `got ${name}\n`);
    }
    await command.kill();
    assertSignalled(await command.wait(), 9);
  });
}

async function signal_ends() {
  await withBox(async (box) => {
    for (const signal of [15, 10]) {
      const sleeper = await start(box, ["sleep", "1000"]);
      await sleeper.signal(signal);
      assertSignalled(await sleeper.wait(), signal);
    }
  });
}

async function signals_that_are_refused() {
  await withBox(async (box) => {
    const cat = await start(box, ["cat"]);
    for (const signal of [0, -1, 9, 19, 65, 1000]) await rejects(cat.signal(signal), /^invalid argument: /, `${signal}`);
    await (await cat.stdin()).close();
    assert.equal((await cat.wait()).exitCode, 0);
  });
}

async function kill() {
  await withBox(async (box) => {
    const command = await start(box, ["sh", "-c", "trap '' TERM HUP; sleep 1234 & echo ready; wait"]);
    const stdout = await command.stdout();
    await heard(stdout, "ready\n");
    await command.kill();
    assertSignalled(await command.wait(), 9);
    assert.equal(await drain(stdout), "");
    await until(async () => !(await processRuns(box, "sleep 1234")));
    assert.equal(await out(box, "echo unharmed"), "unharmed\n");
  });
}

async function kill_at_once() {
  await withBox(async (box) => {
    const sleeper = await start(box, ["sleep", "1357"]);
    await sleeper.kill();
    assert.notEqual((await sleeper.wait()).exitCode, 0);
    await until(async () => !(await processRuns(box, "sleep 1357")));
  });
}

async function control_of_what_has_ended() {
  await withBox(async (box) => {
    const command = await start(box, ["sh", "-c", "exit 6"]);
    assert.equal((await command.wait()).exitCode, 6);
    await rejects(command.signal(15), /^(box not found|invalid state): /);
    await rejects(command.resizeTty(24, 80), /^(box not found|invalid state): /);
    await command.kill().catch((error) => assert.match(error.message, /^box not found: /));
    await rejects(command.kill(), /^box not found: /, "kill also forgets it");
    assert.equal((await command.wait()).exitCode, 6, "wait says it again");
  });
}

async function timeout() {
  await withBox(async (box) => {
    const { stdout, exitCode } = await sh(box, "echo begun; sleep 2345 & wait", { timeout: 0.5 * PATIENCE });
    assert.equal(stdout, "begun\n");
    assert.notEqual(exitCode, 0);
    await until(async () => !(await processRuns(box, "sleep 2345")));
    assert.equal(await out(box, "echo unharmed", { timeout: 1000 }), "unharmed\n");
  });
}

export default {
  tty, tty_input, tty_end_of_input, tty_interrupt, tty_resize, tty_resized_at_once, resize_without_tty, signal_is_caught,
  signal_ends, signals_that_are_refused, kill, kill_at_once, control_of_what_has_ended, timeout,
};
