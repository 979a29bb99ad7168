// The official SDKs against sbx-mcp. One JSON line for each case: {"case","ok","error"}. argv: which SDK and what it negotiates.
//   sdk       @modelcontextprotocol/sdk, which begins with a handshake
//   legacy, auto, modern   @modelcontextprotocol/client
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const load = async (name) => import(pathToFileURL(createRequire(`${process.env.SBX_SDK}/x.js`).resolve(name)));
const which = process.argv[2];
const bound = Number(process.env.SBX_BOUND) * 1000;
const server = { command: process.env.SBX_MCP, args: ['--socket', process.env.SBXD_SOCKET], stderr: 'inherit' };
const me = { name: 'sbxd-test', version: '1' };
const roots = { roots: [{ uri: `file:///roots/of/${which}` }] };

async function connect() {
  if (which === 'sdk') {
    const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
    const { ListRootsRequestSchema } = await load('@modelcontextprotocol/sdk/types.js');
    const client = new Client(me, { capabilities: { roots: {} } });
    client.setRequestHandler(ListRootsRequestSchema, () => roots);
    await client.connect(new StdioClientTransport(server));
    return { client, call: (params, options) => client.callTool(params, undefined, options) };
  }
  const { Client } = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  const mode = which === 'modern' ? { pin: '2026-07-28' } : which;
  const client = new Client(me, { capabilities: { roots: {} }, versionNegotiation: { mode } });
  client.setRequestHandler('roots/list', async () => roots);
  await client.connect(new StdioClientTransport(server));
  const expected = which === 'legacy' ? '2025-11-25' : '2026-07-28';
  assert.equal(client.getNegotiatedProtocolVersion(), expected);
  return { client, call: (params, options) => client.callTool(params, options) };
}

const { client, call } = await connect();
const run = (command, options) => call({ name: 'run_command', arguments: { command } }, { timeout: bound, ...options });
const until = async (command, exit) => {
  for (const end = Date.now() + bound; Date.now() < end;) {
    if ((await run(command)).structuredContent.exit_code === exit) return;
  }
  assert.fail(`waited in vain for ${command} to end with ${exit}`);
};

const cases = {
  who_it_is: () => assert.equal(client.getServerVersion().name, 'sbx-mcp'),
  tools: async () => {
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((t) => t.name), ['run_command', 'read_file', 'write_file', 'edit_file', 'list_dir', 'glob', 'grep']);
    assert.ok(tools.every((t) => t.annotations.readOnlyHint !== undefined && t.outputSchema));
  },
  a_command: async () => {
    const r = await run('echo out; echo err >&2; exit 4');
    assert.deepEqual([r.isError, r.structuredContent.exit_code, r.structuredContent.stdout], [false, 4, 'out\n']);
    assert.equal(r.content[0].text, 'out\n[stderr]\nerr\n');
  },
  files: async () => {
    await call({ name: 'write_file', arguments: { path: 'a/f.txt', content: 'one\ntwo ü\n' } });
    await call({ name: 'edit_file', arguments: { path: 'a/f.txt', old_text: 'two', new_text: '2' } });
    const r = await call({ name: 'read_file', arguments: { path: 'a/f.txt' } });
    assert.equal(r.structuredContent.content, 'one\n2 ü\n');
    assert.deepEqual((await call({ name: 'glob', arguments: { pattern: '*.txt' } })).structuredContent.matches, ['a/f.txt']);
    assert.equal((await call({ name: 'grep', arguments: { pattern: '2 ü' } })).structuredContent.matches[0].line_number, 2);
    assert.equal((await call({ name: 'list_dir', arguments: { depth: 2 } })).structuredContent.entries.length, 2);
  },
  errors_of_tools: async () => {
    const r = await call({ name: 'read_file', arguments: { path: '/none' } });
    assert.ok(r.isError && r.content[0].text.startsWith('read_file: '));
    assert.ok((await call({ name: 'read_file', arguments: { path: 5 } })).isError);
  },
  errors_of_the_protocol: () => assert.rejects(call({ name: 'unheard_of', arguments: {} }), (e) => e.code === -32602),
  calls_overlap: async () => {
    const slow = run('until [ -e go ]; do sleep 0.05; done; echo slow');
    assert.equal((await run('echo quick')).structuredContent.stdout, 'quick\n');
    await call({ name: 'write_file', arguments: { path: 'go', content: '' } });
    assert.equal((await slow).structuredContent.stdout, 'slow\n');
  },
  progress_and_cancelling: async () => {
    const stop = new AbortController();
    const told = [];
    const onprogress = (p) => { told.push(p); if (p.message === 'begun') stop.abort('enough'); };
    await assert.rejects(run('echo begun; sleep 4321', { onprogress, signal: stop.signal }));
    assert.equal(told.at(-1).message, 'begun');
    await until("pgrep -x -f 'sleep 4321'", 1);
  },
  the_box_is_that_of_the_roots: async () => {
    await run('echo mine > whose');
    assert.equal((await run('cat whose')).structuredContent.stdout, 'mine\n');
  },
  the_end: () => client.close(),
};

for (const [name, body] of Object.entries(cases)) {
  let error;
  try {
    await body();
  } catch (e) {
    error = String(e.stack ?? e);
  }
  console.log(JSON.stringify({ case: name, ok: error === undefined, error }));
}
