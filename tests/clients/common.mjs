// What the TypeScript clients share: the command line, the packages, the plan of calls, and the one line that they print.
//
// Promises: an answer that the SDK refuses, an error result that was not expected and a call that cannot be made are all named.
// Does not: know an SDK; each client hands in a connected client and its own facts.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MILLISECONDS_MAX = 60_000;
const here = dirname(fileURLToPath(import.meta.url));
const modules = process.env.RUNLORE_TEST_NODE_MODULES ?? join(here, '../../target/test-cache/node/node_modules');

/** Loads a package from where tests/run put it. */
export const load = createRequire(join(modules, 'x.js'));

export const versionOf = (name) => JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')).version;

/** `[--mode MODE] [--calls JSON] (--url URL [--token TOKEN] | -- COMMAND ARG...)` */
export function commandLine(modes) {
  const rest = process.argv.slice(2);
  const options = { mode: modes[0], calls: [], server: [], url: undefined, token: undefined };
  while (rest.length > 0) {
    const word = rest.shift();
    if (word === '--mode' && modes.includes(rest[0])) options.mode = rest.shift();
    else if (word === '--calls') options.calls = JSON.parse(rest.shift());
    else if (word === '--url') options.url = new URL(rest.shift());
    else if (word === '--token') options.token = rest.shift();
    else if (word === '--' && rest.length > 0) options.server = rest.splice(0);
    else return usage(modes);
  }
  return options.url !== undefined || options.server.length > 0 ? options : usage(modes);
}

/** What an HTTP transport is made with. */
export function requestInit(options) {
  return { requestInit: { headers: options.token === undefined ? {} : { authorization: `Bearer ${options.token}` } } };
}

function usage(modes) {
  console.error(`usage: [--mode ${modes.join('|')}] [--calls JSON] (--url URL [--token TOKEN] | -- COMMAND ARG...)`);
  process.exit(2);
}

/** The calls that are asked for, then each other read tool that takes no argument; the names of those left over. */
function plan(tools, wanted) {
  const others = tools.filter((tool) => !wanted.some((call) => call.tool === tool.name) && tool.annotations?.readOnlyHint);
  const needs = (tool) => (tool.inputSchema.required ?? []).length > 0;
  const free = others.filter((tool) => !needs(tool)).map((tool) => ({ tool: tool.name, arguments: {} }));
  return { calls: [...wanted, ...free], skipped: others.filter(needs).map((tool) => tool.name) };
}

async function listTools(client) {
  const tools = [];
  for (let cursor; ;) {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
    if (cursor === undefined) return tools;
  }
}

async function call(client, line, one) {
  try {
    const result = await client.callTool({ name: one.tool, arguments: one.arguments ?? {} });
    const failed = result.isError === true;
    const outcome = failed ? 'error' : result.structuredContent === undefined ? 'text' : 'ok';
    line.called.push({ tool: one.tool, outcome });
    const text = (result.content ?? []).map((block) => block.text ?? '').join(' ');
    if (failed !== (one.expect === 'error')) line.errors.push(`${one.tool}: ${failed ? `an error result: ${text}` : 'no error result'}`);
  } catch (error) {
    line.errors.push(`${one.tool}: ${error.name}: ${error.message}`);
  }
}

/** The length of what stands behind a URI. */
const read = async (client, uri) => (await client.readResource({ uri })).contents[0].text.length;

/** The first value that an argument can have, after those that are known. */
async function first(client, ref, name, known) {
  const { completion } = await client.complete({ ref, argument: { name, value: '' }, context: { arguments: known } });
  return completion.values[0];
}

/** Reads the first resource, one of each template with what its variables are completed to, and each prompt. */
async function readAll(client, capabilities) {
  const { resources } = await client.listResources();
  const told = { listed: resources.length, read: resources.length > 0 ? await read(client, resources[0].uri) : 0 };
  if (capabilities.completions) {
    told.templates = [];
    for (const { uriTemplate } of (await client.listResourceTemplates()).resourceTemplates) {
      const values = {};
      for (const [, name] of uriTemplate.matchAll(/{(\w+)}/g)) {
        values[name] = await first(client, { type: 'ref/resource', uri: uriTemplate }, name, { ...values });
      }
      told.templates.push(await read(client, uriTemplate.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(values[name]))));
    }
  }
  if (capabilities.prompts) {
    told.prompts = [];
    for (const { name, arguments: taken } of (await client.listPrompts()).prompts) {
      const values = {};
      for (const one of taken ?? []) values[one.name] = await first(client, { type: 'ref/prompt', name }, one.name, {});
      told.prompts.push((await client.getPrompt({ name, arguments: values })).messages[0].content.text.length);
    }
  }
  return told;
}

/** Connects, calls everything, prints the report and ends the process with its exit code. */
export async function run({ name, options, client, transport, negotiated }) {
  const line = { client: name, mode: options.mode, protocolVersion: null, server: null, tools: [], called: [], skipped: [], resources: null, errors: [] };
  const finish = () => {
    console.log(JSON.stringify(line));
    process.exit(line.errors.length > 0 ? 1 : 0);
  };
  const late = setTimeout(() => {
    line.errors.push(`session: not done after ${MILLISECONDS_MAX} ms`);
    finish();
  }, MILLISECONDS_MAX);
  try {
    await client.connect(transport);
    line.protocolVersion = negotiated() ?? null;
    const server = client.getServerVersion();
    line.server = server ? { name: server.name, version: server.version } : null;
    const tools = await listTools(client);
    line.tools = tools.map((tool) => tool.name);
    const { calls, skipped } = plan(tools, options.calls);
    line.skipped = skipped;
    for (const one of calls) await call(client, line, one);
    const can = client.getServerCapabilities() ?? {};
    if (can.resources) line.resources = await readAll(client, can);
    await client.close();
  } catch (error) {
    line.errors.push(`session: ${error.name}: ${error.message}`);
  }
  clearTimeout(late);
  finish();
}
