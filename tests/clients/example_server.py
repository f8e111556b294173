"""A small stdio server for checking the clients themselves: with `--bad`, what it answers does not fit its output schema.

The clients must pass against the one and fail against the other, or they prove nothing about runlore.
"""

import asyncio
import sys

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"], "additionalProperties": False}
NEEDS_RUN = {"type": "object", "properties": {"run": {"type": "string"}}, "required": ["run"]}
READS = types.ToolAnnotations(read_only_hint=True)
ROWS = "many" if "--bad" in sys.argv else 3


async def list_tools(_context, _params):
    tool = lambda name, schema: types.Tool(name=name, input_schema=schema, output_schema=SCHEMA, annotations=READS)
    return types.ListToolsResult(tools=[tool("history", {"type": "object"}), tool("show", NEEDS_RUN), tool("transcript", NEEDS_RUN)])


async def call_tool(_context, params):
    text = lambda words: [types.TextContent(type="text", text=words)]
    if params.name == "show" and params.arguments == {"run": "none"}:
        return types.CallToolResult(content=text("run: no run matches `none`"), is_error=True)
    return types.CallToolResult(content=text("3 rows"), structured_content={"rows": ROWS})


async def list_resources(_context, _params):
    return types.ListResourcesResult(resources=[types.Resource(uri="runlore://runs/a", name="a")])


async def read_resource(_context, params):
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="{}")])


async def main():
    handlers = {"on_list_tools": list_tools, "on_call_tool": call_tool, "on_list_resources": list_resources, "on_read_resource": read_resource}
    server = Server("example", version="1", **handlers)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


asyncio.run(main())
