"""The official Python SDK 1.x as a client of a stdio or HTTP server. It knows the `initialize` handshake only: mode legacy."""

import json
from datetime import timedelta
from importlib.metadata import version

import common
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import PromptReference, ResourceTemplateReference
from pydantic import AnyUrl

options = common.arguments(["legacy"])
report = common.Report(f"python {version('mcp')}", options.mode)


def text_of(result):
    return " ".join(getattr(block, "text", "") for block in result.content)


async def list_tools(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.nextCursor
        if not cursor:
            return tools


def described(tool):
    read_only = bool(tool.annotations and tool.annotations.readOnlyHint)
    return {"name": tool.name, "read_only": read_only, "required": tool.inputSchema.get("required", [])}


def transport():
    if options.url:
        return streamablehttp_client(options.url, headers=common.headers(options))
    return stdio_client(StdioServerParameters(command=options.server[0], args=options.server[1:]))


async def session():
    async with transport() as (read, write, *_):
        async with ClientSession(read, write, read_timeout_seconds=timedelta(seconds=30)) as client:
            hello = await client.initialize()
            report.line["protocolVersion"] = hello.protocolVersion
            report.line["server"] = {"name": hello.serverInfo.name, "version": hello.serverInfo.version}
            tools = [described(tool) for tool in await list_tools(client)]
            report.line["tools"] = [tool["name"] for tool in tools]
            calls, report.line["skipped"] = common.plan(tools, json.loads(options.calls))

            async def call(name, arguments):
                result = await client.call_tool(name, arguments)
                return bool(result.isError), result.structuredContent, text_of(result)

            await common.call_all(report, call, calls)
            can = hello.capabilities
            if can.resources is not None:
                await common.read_all(report, Own(client), can.completions is not None, can.prompts is not None)


class Own:
    def __init__(self, client):
        self.client = client

    async def resources(self):
        return [str(one.uri) for one in (await self.client.list_resources()).resources]

    async def templates(self):
        return [one.uriTemplate for one in (await self.client.list_resource_templates()).resourceTemplates]

    async def read(self, uri):
        return (await self.client.read_resource(AnyUrl(uri))).contents[0].text

    async def complete(self, reference, argument, known):
        kind = ResourceTemplateReference if reference["type"] == "ref/resource" else PromptReference
        return (await self.client.complete(kind(**reference), argument, known)).completion.values

    async def prompts(self):
        return [(one.name, [argument.name for argument in one.arguments or []]) for one in (await self.client.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text


common.finish(common.run(report, session))
