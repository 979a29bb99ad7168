// Files and folders into a box and out of it. The SDK sends and takes a tar; a path names the file itself, or the folder.

import { assert, NOT_FOUND, out, rejects, withBox, withFolder } from "./kit.mjs";
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";

const sum = (data) => createHash("sha256").update(data).digest("hex");

/** A box, a folder of the host, and write(): a file in that folder. */
const withBoth = (body) =>
  withFolder((dir) => withBox((box) => body(box, dir, (name, data, mode = 0o644) => {
    const file = path.join(dir, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, data);
    fs.chmodSync(file, mode);
    return file;
  })));

/** In as dest, checked by its digest in the box, and out again. */
async function roundTrip(box, dir, source, dest) {
  const data = fs.readFileSync(source);
  await box.copyIn(source, dest);
  assert.equal((await out(box, 'sha256sum <"$F"', { env: { F: dest } })).slice(0, 64), sum(data), dest);
  const back = path.join(dir, "back");
  await box.copyOut(dest, back);
  assert.ok(fs.readFileSync(back).equals(data), dest);
  fs.rmSync(back);
}

/** Everything below a folder: path -> content of a file, null for a folder, "-> TARGET" for a link. */
function tree(dir, below = "", found = {}) {
  for (const entry of fs.readdirSync(path.join(dir, below), { withFileTypes: true })) {
    const name = path.join(below, entry.name);
    if (entry.isDirectory()) {
      found[name] = null;
      tree(dir, name, found);
    } else if (entry.isSymbolicLink()) found[name] = `-> ${fs.readlinkSync(path.join(dir, name))}`;
    else found[name] = fs.readFileSync(path.join(dir, name), "utf8");
  }
  return found;
}

async function file_of_text() {
  await withBoth(async (box, dir, write) => {
    const file = write("in.txt", "hello\nüñîçødé\n");
    await box.copyIn(file, "/tmp/other name.txt");
    assert.equal(await out(box, "cat '/tmp/other name.txt'; ls /tmp"), "hello\nüñîçødé\nother name.txt\n");
    await roundTrip(box, dir, file, "/mnt/user-data/workspace/in.txt");
  });
}

async function file_of_all_byte_values() {
  await withBoth((box, dir, write) => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    return roundTrip(box, dir, write("bytes", bytes), "/tmp/bytes");
  });
}

async function file_of_16_mib() {
  await withBoth((box, dir, write) => roundTrip(box, dir, write("big", randomBytes(16 << 20)), "/mnt/user-data/workspace/big"));
}

async function file_of_any_size() {
  await withBoth(async (box, dir, write) => {
    for (const size of [0, 1, 511, 512, 513, 65_536]) {
      await roundTrip(box, dir, write(`f${size}`, randomBytes(size)), `/tmp/f${size}`);
    }
  });
}

async function file_into_a_folder() {
  await withBoth(async (box, dir, write) => {
    const file = write("a.txt", "a");
    await out(box, "mkdir /tmp/there");
    await box.copyIn(file, "/tmp/there");
    await box.copyIn(file, "/tmp/made/");
    await box.copyIn(file, "/tmp/p/q/r/s.txt");
    assert.equal(await out(box, "cd /tmp && find . -type f | sort"), "./made/a.txt\n./p/q/r/s.txt\n./there/a.txt\n");
  });
}

async function file_keeps_its_mode_and_gets_the_owner() {
  await withBoth(async (box, dir, write) => {
    const file = write("run.sh", "#!/bin/sh\necho it runs\n", 0o750);
    if (process.getuid() === 0) fs.chownSync(file, 12345, 23456);
    await box.copyIn(file, "/tmp/run.sh");
    assert.equal(await out(box, "/tmp/run.sh; stat -c '%a %u %g' /tmp/run.sh"), "it runs\n750 0 0\n");
  });
}

async function file_replaces() {
  await withBoth(async (box, dir, write) => {
    await box.copyIn(write("long", "a long content\n"), "/tmp/f");
    await box.copyIn(write("short", "short\n"), "/tmp/f");
    assert.equal(await out(box, "cat /tmp/f; ls /tmp"), "short\nf\n");
    await rejects(box.copyIn(write("no", "no\n"), "/tmp/f", { overwrite: false }), /^unsupported: /);
    assert.equal(await out(box, "cat /tmp/f"), "short\n");
    const back = write("back", "what was there before, longer\n");
    await box.copyOut("/tmp/f", back);
    assert.equal(fs.readFileSync(back, "utf8"), "short\n");
  });
}

async function odd_names() {
  await withBoth(async (box, dir, write) => {
    for (const name of ["a b", "é世界", "a&b=c", "100%25", "a+b", "a#b?c", "-n", "quote'\"", "back\\slash", "n".repeat(200)]) {
      await roundTrip(box, dir, write(name, name), `/tmp/${name}`);
    }
  });
}

async function folder() {
  await withBoth(async (box, dir, write) => {
    write("tree/top.txt", "top", 0o640);
    write("tree/a/b/c/d/leaf é.txt", "leaf");
    write(`tree/${"n".repeat(150)}`, "long name");
    write(`tree/${"d".repeat(60)}/${"e".repeat(60)}/f`, "long path");
    fs.mkdirSync(path.join(dir, "tree/empty"));
    const whole = tree(path.join(dir, "tree"));
    await box.copyIn(path.join(dir, "tree"), "/tmp/dest");
    const look = "cd /tmp/dest; cat top.txt 'a/b/c/d/leaf é.txt'; ls -d empty; stat -c %a top.txt";
    assert.equal(await out(box, look), "topleafempty\n640\n");
    await box.copyOut("/tmp/dest", path.join(dir, "back"));
    assert.deepEqual(fs.readdirSync(path.join(dir, "back")), ["dest"], "a folder comes under its own name");
    assert.deepEqual(tree(path.join(dir, "back/dest")), whole);
    assert.equal(fs.statSync(path.join(dir, "back/dest/top.txt")).mode & 0o777, 0o640);
  });
}

async function folder_into_one_that_is_there() {
  await withBoth(async (box, dir, write) => {
    write("tree/new", "new");
    write("tree/both", "new");
    await out(box, "mkdir /tmp/dest; echo old >/tmp/dest/old; echo old >/tmp/dest/both");
    await box.copyIn(path.join(dir, "tree"), "/tmp/dest/");
    assert.equal(await out(box, "cd /tmp/dest && cat both new old; find . -type f | wc -l"), "newnewold\n3\n");
  });
}

async function folder_of_one_file() {
  await withBoth(async (box, dir, write) => {
    write("one/f", "f");
    await box.copyIn(path.join(dir, "one"), "/tmp/one");
    assert.equal(await out(box, "cat /tmp/one/f"), "f");
    await box.copyOut("/tmp/one", path.join(dir, "back"));
    assert.deepEqual(tree(path.join(dir, "back")), { one: null, "one/f": "f" });
  });
}

async function folder_that_is_empty() {
  await withBoth(async (box, dir) => {
    fs.mkdirSync(path.join(dir, "empty"));
    await box.copyIn(path.join(dir, "empty"), "/tmp/empty");
    assert.equal(await out(box, "ls -A /tmp/empty; ls /tmp"), "empty\n");
    await box.copyOut("/tmp/empty", path.join(dir, "back"));
    assert.deepEqual(tree(path.join(dir, "back")), { empty: null });
  });
}

async function folder_of_1000_files() {
  await withBoth(async (box, dir, write) => {
    for (let i = 0; i < 1000; i++) write(`many/${i % 10}/${i}`, `${i}`);
    await box.copyIn(path.join(dir, "many"), "/tmp/many");
    assert.equal(await out(box, "find /tmp/many -type f | wc -l"), "1000\n");
    await box.copyOut("/tmp/many", path.join(dir, "back"));
    assert.deepEqual(tree(path.join(dir, "back/many")), tree(path.join(dir, "many")));
  });
}

async function folder_with_links() {
  await withBoth(async (box, dir) => {
    await out(box, "mkdir /tmp/d; cd /tmp/d; echo x >x; ln -s x rel; ln -s /etc/hostname abs; ln -s nowhere broken");
    await box.copyOut("/tmp/d", path.join(dir, "back"));
    const links = { "d/rel": "-> x", "d/abs": "-> /etc/hostname", "d/broken": "-> nowhere" };
    assert.deepEqual(tree(path.join(dir, "back")), { d: null, "d/x": "x\n", ...links });
  });
}

async function missing_paths() {
  await withBoth(async (box, dir, write) => {
    const back = path.join(dir, "back");
    for (const missing of ["/tmp/missing", "/no/such/folder/f"]) await rejects(box.copyOut(missing, back), NOT_FOUND, missing);
    await rejects(box.copyOut("/etc/passwd/f", back), /^(invalid argument|box not found): /);
    assert.equal(fs.existsSync(back), false);
    await rejects(box.copyIn(path.join(dir, "missing"), "/tmp/f"), /No such file/);
    assert.equal(await out(box, "ls /tmp"), "");
    const file = write("f", "f");
    await rejects(box.copyIn(file, "/etc/passwd/f"), /^(invalid argument|box not found): /);
    await rejects(box.copyIn(dir, "/etc/passwd"), /^(invalid argument|box not found|already exists): /);
  });
}

async function paths_that_are_refused() {
  await withBoth(async (box, dir, write) => {
    const file = write("f", "f");
    for (const bad of ["", "relative", "/tmp/../tmp/f", "/tmp/.."]) {
      await rejects(box.copyIn(file, bad), /^invalid argument: /, bad);
      await rejects(box.copyOut(bad, path.join(dir, "back")), /^invalid argument: /, bad);
    }
    await rejects(box.copyIn(file, "/proc/version"), /^(configuration error: auth|invalid argument|invalid state): /);
    assert.equal(await out(box, "ls /tmp"), "");
  });
}

async function files_at_once() {
  await withBoth(async (box, dir, write) => {
    const sources = Array.from({ length: 6 }, (_, i) => write(`f${i}`, randomBytes(300_000)));
    await Promise.all(sources.map((file, i) => box.copyIn(file, `/tmp/f${i}`)));
    await Promise.all(sources.map((_, i) => box.copyOut(`/tmp/f${i}`, path.join(dir, `back${i}`))));
    for (const [i, file] of sources.entries()) {
      assert.ok(fs.readFileSync(file).equals(fs.readFileSync(path.join(dir, `back${i}`))), file);
    }
  });
}

export default {
  file_of_text, file_of_all_byte_values, file_of_16_mib, file_of_any_size, file_into_a_folder,
  file_keeps_its_mode_and_gets_the_owner, file_replaces, odd_names, folder, folder_into_one_that_is_there, folder_of_one_file, folder_that_is_empty, folder_of_1000_files,
  folder_with_links, missing_paths, paths_that_are_refused, files_at_once,
};
