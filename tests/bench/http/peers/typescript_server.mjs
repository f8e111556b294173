// The official TypeScript SDK's server (`McpServer` on node:http), stateless with JSON answers, one tool.
// `node typescript_server.mjs PORT MODULES ERA`; the SDK serves each era by an entry of its own.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const load = createRequire(join(process.argv[3], 'x.js'));
const { McpServer, createMcpHandler } = load('@modelcontextprotocol/server');
const { NodeStreamableHTTPServerTransport, toNodeHandler } = load('@modelcontextprotocol/node');
const { z } = load('zod');

const counts = { passed: 8, failed: 2, infra: 0, unscored: 0, missing: 0 };
const run = (n) => ({
  runId: `bench-run-000${n}`, kind: 'recorded', status: 'completed', createdAt: '2026-11-28T08:22:54Z', startedAt: '2026-11-28T08:22:54Z',
  completedAt: '2026-11-28T08:25:11Z', durationMs: 137000, git: null, round: null, evaluations: ['refund_policy'], arms: ['mockllm/model'],
  counts, rate: 0.8,
});

function makeServer() {
  const server = new McpServer({ name: 'peer', version: '1.0.0' });
  const inputSchema = z.object({ limit: z.number().optional(), since: z.string().optional() });
  server.registerTool('runs_list', { description: 'Lists runs.', inputSchema }, async () => ({
    content: [{ type: 'text', text: '4 runs' }],
    structuredContent: { runs: [0, 1, 2, 3].map(run), returned: 4, total: 4, complete: true, nextCursor: null },
  }));
  return server;
}

async function legacy(request, response) {
  const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  await makeServer().connect(transport);
  await transport.handleRequest(request, response);
}

const modern = process.argv[4] === 'modern';
createServer(modern ? toNodeHandler(createMcpHandler(makeServer, { responseMode: 'json' })) : legacy).listen(
  Number(process.argv[2]),
  '127.0.0.1',
  // Who started it waits for this word.
  () => console.error('listening'),
);
