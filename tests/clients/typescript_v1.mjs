// The official TypeScript SDK 1.x (`@modelcontextprotocol/sdk`) as a client of a stdio or HTTP server. It knows `initialize` only: mode legacy.

import { commandLine, load, requestInit, run, versionOf } from './common.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const options = commandLine(['legacy']);
const client = new Client({ name: 'runlore-tests', version: '0' });
const transport = options.url
  ? new StreamableHTTPClientTransport(options.url, requestInit(options))
  : new StdioClientTransport({ command: options.server[0], args: options.server.slice(1) });

// The SDK tells a transport which version was agreed, and keeps it nowhere else.
let version;
const set = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (agreed) => {
  version = agreed;
  set?.(agreed);
};

await run({ name: `typescript ${versionOf('@modelcontextprotocol/sdk')}`, options, client, transport, negotiated: () => version });
