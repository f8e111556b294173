"""The official Python SDK 2.x as a client of a stdio or HTTP server. Modes: auto (its default), legacy, 2026-07-28 (pinned)."""

import json
from importlib.metadata import version

import common
from mcp import Client, StdioServerParameters
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
        if client.server_capabilities.resources is not None:
            await read_one(client)


async def read_one(client):
    found = (await client.list_resources()).resources
    read = len((await client.read_resource(str(found[0].uri))).contents) if found else 0
    report.line["resources"] = {"listed": len(found), "read": read}


common.finish(common.run(report, session))
