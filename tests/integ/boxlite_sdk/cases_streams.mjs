// Output: all of it, each stream its own, in order, when it comes; many commands at once.

import { assert, drain, finish, heard, out, PATIENCE, run, sh, start, withBox } from "./kit.mjs";

const lines = (n, word = "") => Array.from({ length: n }, (_, i) => `${word}${i + 1}\n`).join("");

async function streams_are_apart() {
  await withBox(async (box) => {
    assert.deepEqual(await sh(box, "echo out; echo err >&2"), { stdout: "out\n", stderr: "err\n", exitCode: 0 });
    assert.deepEqual(await sh(box, "echo only >&2"), { stdout: "", stderr: "only\n", exitCode: 0 });
    assert.deepEqual(await run(box, ["true"]), { stdout: "", stderr: "", exitCode: 0 });
  });
}

async function lines_4000_of_stdout() {
  await withBox(async (box) => {
    assert.deepEqual(await run(box, ["seq", "1", "4000"]), { stdout: lines(4000), stderr: "", exitCode: 0 });
  });
}

async function lines_4000_of_stderr() {
  await withBox(async (box) => {
    assert.deepEqual(await sh(box, "seq 1 4000 >&2"), { stdout: "", stderr: lines(4000), exitCode: 0 });
  });
}

async function lines_4000_of_both() {
  await withBox(async (box) => {
    const { stdout, stderr, exitCode } = await sh(box, "seq -f out%g 1 4000 & seq -f err%g 1 4000 >&2; wait; exit 7");
    assert.equal(exitCode, 7);
    assert.equal(stdout, lines(4000, "out"));
    assert.equal(stderr, lines(4000, "err"));
  });
}

async function output_of_8_mib() {
  await withBox(async (box) => {
    const text = await out(box, "seq 1 1200000");
    assert.equal(text.length, 8_488_896);
    assert.ok(text === lines(1_200_000));
  });
}

async function output_that_nobody_reads() {
  await withBox(async (box) => {
    const command = await start(box, ["sh", "-c", "seq 1 300000; exit 3"]);
    assert.equal((await command.wait()).exitCode, 3);
    assert.equal((await drain(await command.stdout())).length, 1_988_895, "and it is still there");
  });
}

async function output_comes_as_it_is_made() {
  await withBox(async (box) => {
    const command = await start(box, ["sh", "-c", "echo first; read line; echo second"]);
    const stdout = await command.stdout();
    assert.equal(await heard(stdout, "\n"), "first\n");
    await (await command.stdin()).writeString("go on\n");
    assert.equal(await drain(stdout), "second\n");
  });
}

async function short_commands_lose_nothing() {
  await withBox(async (box) => {
    for (let i = 0; i < 40; i++) {
      assert.deepEqual(await run(box, ["echo", `${i}`]), { stdout: `${i}\n`, stderr: "", exitCode: 0 });
    }
  });
}

async function characters_are_whole() {
  // 3 bytes a character: no power of two is a border of characters.
  const text = "世界".repeat(100_000);
  await withBox(async (box) => {
    const cat = await start(box, ["cat"]);
    const input = await cat.stdin();
    await input.writeString(text);
    await input.close();
    const { stdout } = await finish(cat);
    assert.equal(stdout.length, text.length);
    assert.ok(stdout === text);
  });
}

async function a_character_in_two_writes() {
  await withBox(async (box) => {
    // sbxd waits 100 ms for the rest of a character: where that is no time for a round trip, there is none.
    const between = PATIENCE > 1 ? "" : "read x; ";
    const script = `printf 'a\\303'; printf 'e\\342\\230' >&2; ${between}printf '\\251z'; printf '\\203' >&2`;
    const command = await start(box, ["sh", "-c", script]);
    const [stdout, stderr] = await Promise.all([command.stdout(), command.stderr()]);
    const before = [await heard(stdout, "a"), await heard(stderr, "e")];
    if (between) await (await command.stdin()).writeString("\n");
    assert.equal(before[0] + (await drain(stdout)), "aéz");
    assert.equal(before[1] + (await drain(stderr)), "e☃");
  });
}

async function bytes_that_are_no_text() {
  await withBox(async (box) => {
    assert.equal(await out(box, "printf 'a\\377b\\303'"), "a\ufffdb\ufffd");
    assert.equal(await out(box, "printf 'a\\000b'"), "a\0b");
  });
}

async function eight_at_once() {
  await withBox(async (box) => {
    const script = 'echo "$WHO err" >&2; seq -f "$WHO %g" 1 1000; exit $WHO';
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, i) => sh(box, script, { env: { WHO: `${i}` } })),
    );
    for (const [i, result] of results.entries()) {
      assert.deepEqual(result, { stdout: lines(1000, `${i} `), stderr: `${i} err\n`, exitCode: i });
    }
  });
}

async function eight_wait_at_once() {
  await withBox(async (box) => {
    const cats = await Promise.all(Array.from({ length: 8 }, () => start(box, ["cat"])));
    for (const [i, cat] of cats.entries()) {
      const input = await cat.stdin();
      await input.writeString(`${i}`);
      await input.close();
    }
    const results = await Promise.all(cats.map(finish));
    assert.deepEqual(results.map(({ stdout }) => stdout), ["0", "1", "2", "3", "4", "5", "6", "7"]);
  });
}

/** The SDK takes a stream on which the server has said nothing for 10 s for dead, and comes back after another 15. */
async function a_silent_command() {
  await withBox(async (box) => {
    const began = performance.now();
    assert.deepEqual(await sh(box, "sleep 11; echo done; exit 3"), { stdout: "done\n", stderr: "", exitCode: 3 });
    assert.ok(performance.now() - began < 22_000, "its stream was given up in between");
  });
}
a_silent_command.slow = true;

export default {
  a_silent_command, streams_are_apart, lines_4000_of_stdout, lines_4000_of_stderr, lines_4000_of_both, output_of_8_mib,
  output_that_nobody_reads, output_comes_as_it_is_made, short_commands_lose_nothing, characters_are_whole,
  a_character_in_two_writes, bytes_that_are_no_text, eight_at_once, eight_wait_at_once,
};
