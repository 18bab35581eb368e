// SPDX-License-Identifier: Apache-2.0
// The client of the SDK's second version: node sdk2_client.mjs PACKAGES MODE COMMAND ARG...
// MODE: legacy, auto, or a version of the protocol and no other.
import { createRequire } from 'node:module';

const [packages, mode, command, ...args] = process.argv.slice(2);
const require = createRequire(packages + '/');
const { Client } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const client = new Client({ name: 'sdk2-test', version: '2' }, {
	versionNegotiation: { mode: /^\d/.test(mode) ? { pin: mode } : mode },
});
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
const seen = { version: client.getNegotiatedProtocolVersion(), server: client.getServerVersion(),
	instructions: client.getInstructions() };
seen.tools = (await client.listTools()).tools.map((t) => t.name);
const progress = [];
const call = (name, input, options) => client.callTool({ name, arguments: input }, options);
seen.hi = await call('execute', { language: 'shell', code: 'echo hi' });
seen.blocked = await call('execute', { language: 'shell', code: 'echo x > /etc/hosts' });
seen.batch = await call('batch_execute', { commands: ['echo 1', 'echo 2'], concurrency: 2 });
seen.slow = await call('execute', { language: 'shell', code: 'sleep 6; echo slow' },
	{ onprogress: (p) => progress.push(p), timeout: 5000, resetTimeoutOnProgress: true });
seen.long = await call('execute', { language: 'shell', code: 'seq 1 20000' });
const link = seen.long.content.find((c) => c.type === 'resource_link');
seen.read = (await client.readResource({ uri: link.uri })).contents[0].text.length;
const abort = new AbortController();
setTimeout(() => abort.abort(), 300);
seen.cancelled = await call('execute', { language: 'shell', code: 'sleep 60' },
	{ signal: abort.signal }).then(() => false, () => true);
seen.after = await call('execute', { language: 'shell', code: 'echo after' });
seen.progress = progress.length;
await client.close();
console.log(JSON.stringify(seen));
