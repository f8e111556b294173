// The official TypeScript SDK 2.x (`@modelcontextprotocol/client`) as a client of a stdio or HTTP server.
// Modes: legacy (its default), auto (starts the server twice: one probe, one session), 2026-07-28 (pinned).

import { commandLine, load, requestInit, run, versionOf } from './common.mjs';

const { Client, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const options = commandLine(['legacy', 'auto', '2026-07-28']);
const mode = options.mode === '2026-07-28' ? { pin: options.mode } : options.mode;
const client = new Client({ name: 'runlore-tests', version: '0' }, { versionNegotiation: { mode } });
const transport = options.url
  ? new StreamableHTTPClientTransport(options.url, requestInit(options))
  : new StdioClientTransport({ command: options.server[0], args: options.server.slice(1) });

await run({
  name: `typescript ${versionOf('@modelcontextprotocol/client')}`,
  options,
  client,
  transport,
  negotiated: () => client.getNegotiatedProtocolVersion(),
});
