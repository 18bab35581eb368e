// SPDX-License-Identifier: Apache-2.0
// The official SDK's client against a server: node sdk_client.mjs PACKAGES COMMAND ARG...
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, command, ...args] = process.argv.slice(2);
const require = createRequire(packages + '/');
const load = async (name) => import(pathToFileURL(require.resolve('@modelcontextprotocol/sdk/' + name)));
const { Client } = await load('client/index.js');
const { StdioClientTransport } = await load('client/stdio.js');

const client = new Client({ name: 'sdk-test', version: '1' });
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));
const seen = { server: client.getServerVersion(), instructions: client.getInstructions() };
seen.tools = (await client.listTools()).tools.map((t) => t.name);
const progress = [];
// callTool checks structuredContent against the outputSchema of the list
const call = (name, input, options) => client.callTool({ name, arguments: input }, undefined, options);
seen.hi = await call('execute', { language: 'shell', code: 'echo hi' });
seen.failed = await call('execute', { language: 'shell', code: 'exit 3' });
seen.blocked = await call('execute', { language: 'shell', code: 'echo x > /etc/hosts' });
seen.batch = await call('batch_execute', { commands: ['echo 1', 'echo 2'], concurrency: 2 });
seen.slow = await call('execute', { language: 'shell', code: 'sleep 6; echo slow' },
	{ onprogress: (p) => progress.push(p), timeout: 5000, resetTimeoutOnProgress: true });
seen.job = await call('execute', { language: 'shell', code: 'sleep 30', background: true });
seen.output = await call('job_output', { jobId: seen.job.structuredContent.jobId });
seen.kill = await call('job_kill', { jobId: seen.job.structuredContent.jobId });
seen.long = await call('execute', { language: 'shell', code: 'seq 1 20000' });
const link = seen.long.content.find((c) => c.type === 'resource_link');
seen.read = (await client.readResource({ uri: link.uri })).contents[0].text.length;
const abort = new AbortController();
setTimeout(() => abort.abort(), 300);
seen.cancelled = await call('execute', { language: 'shell', code: 'sleep 60' },
	{ signal: abort.signal }).then(() => false, () => true);
seen.after = await call('execute', { language: 'shell', code: 'echo after' });
seen.prompts = await client.listPrompts();
seen.ping = await client.ping();
await client.setLoggingLevel('warning');
seen.progress = progress;
await client.close();
console.log(JSON.stringify(seen));
