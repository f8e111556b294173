// The official TypeScript SDK 1.x (`@modelcontextprotocol/sdk`) as a client of a stdio server. It knows `initialize` only: mode legacy.

import { commandLine, load, run, versionOf } from './common.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');

const options = commandLine(['legacy']);
const client = new Client({ name: 'runlore-tests', version: '0' });
const transport = new StdioClientTransport({ command: options.server[0], args: options.server.slice(1) });

// The SDK tells a transport which version was agreed, and keeps it nowhere else.
let version;
transport.setProtocolVersion = (agreed) => {
  version = agreed;
};

await run({ name: `typescript ${versionOf('@modelcontextprotocol/sdk')}`, options, client, transport, negotiated: () => version });
