"""The official Python SDK 2.x asks its user before a tool writes: it shows the form that the server asks for, and sends the answer.

Prints one JSON line: what was shown, and the result of the call.
"""

import argparse
import asyncio
import json

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import ElicitResult

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--url", required=True)
parser.add_argument("--token", required=True)
parser.add_argument("--tool", required=True)
parser.add_argument("--arguments", type=json.loads, required=True)
parser.add_argument("--answer", choices=["yes", "no", "decline", "cancel"], required=True)
options = parser.parse_args()

ANSWERS = {
    "yes": ElicitResult(action="accept", content={"approve": True}),
    "no": ElicitResult(action="accept", content={"approve": False}),
    "decline": ElicitResult(action="decline"),
    "cancel": ElicitResult(action="cancel"),
}
shown = []


async def user(context, params):
    shown.append({"message": params.message, "schema": params.requested_schema})
    return ANSWERS[options.answer]


async def session():
    server = streamable_http_client(options.url, http_client=create_mcp_http_client(headers={"Authorization": f"Bearer {options.token}"}))
    async with Client(server, mode="2026-07-28", read_timeout_seconds=30, elicitation_callback=user) as client:
        await client.list_tools()
        result = await client.call_tool(options.tool, options.arguments)
        text = " ".join(getattr(block, "text", "") for block in result.content)
        print(json.dumps({"shown": shown, "error": bool(result.is_error), "structured": result.structured_content, "text": text}))


asyncio.run(asyncio.wait_for(session(), 60))
