"""The official Python SDK 2.x as a client of a stdio or HTTP server. Modes: auto (its default), legacy, 2026-07-28 (pinned)."""

import json
from importlib.metadata import version

import common
from mcp import Client, StdioServerParameters
from mcp_types import PromptReference, ResourceTemplateReference
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

options = common.arguments(["auto", "legacy", "2026-07-28"])
report = common.Report(f"python {version('mcp')}", options.mode)


def text_of(result):
    return " ".join(getattr(block, "text", "") for block in result.content)


async def list_tools(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            return tools


def described(tool):
    read_only = bool(tool.annotations and tool.annotations.read_only_hint)
    return {"name": tool.name, "read_only": read_only, "required": tool.input_schema.get("required", [])}


def transport():
    if options.url:
        return streamable_http_client(options.url, http_client=create_mcp_http_client(headers=common.headers(options)))
    return StdioServerParameters(command=options.server[0], args=options.server[1:])


async def session():
    server = transport()
    async with Client(server, mode=options.mode, read_timeout_seconds=30) as client:
        info = client.server_info
        report.line["protocolVersion"] = client.protocol_version
        report.line["server"] = info and {"name": info.name, "version": info.version}
        tools = [described(tool) for tool in await list_tools(client)]
        report.line["tools"] = [tool["name"] for tool in tools]
        calls, report.line["skipped"] = common.plan(tools, json.loads(options.calls))

        async def call(name, arguments):
            result = await client.call_tool(name, arguments)
            return bool(result.is_error), result.structured_content, text_of(result)

        await common.call_all(report, call, calls)
        # A pinned client never asks what the server can.
        can, unasked = client.server_capabilities, options.mode == "2026-07-28"
        if unasked or can.resources is not None:
            await common.read_all(report, Own(client), unasked or can.completions is not None, unasked or can.prompts is not None)


class Own:
    def __init__(self, client):
        self.client = client

    async def resources(self):
        return [str(one.uri) for one in (await self.client.list_resources()).resources]

    async def templates(self):
        return [one.uri_template for one in (await self.client.list_resource_templates()).resource_templates]

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    async def complete(self, reference, argument, known):
        kind = ResourceTemplateReference if reference["type"] == "ref/resource" else PromptReference
        return (await self.client.complete(kind(**reference), argument, known)).completion.values

    async def prompts(self):
        return [(one.name, [argument.name for argument in one.arguments or []]) for one in (await self.client.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text


common.finish(common.run(report, session))
