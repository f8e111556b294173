"""The public Python SDK of the tool API (evalgate-sdk) as a client: lists the tools, page by page too, and calls them.

Promises: prints one JSON line: what was listed, and for each call its result or the error as the SDK understands it.
Does not: judge; the test does.
"""

import argparse
import asyncio
import json
from importlib.metadata import version

from evalgate_sdk.errors import EvalGateError
from evalgate_sdk.openapi_client import OpenApiClient

SECONDS_MAX = 60


def arguments():
    parser = argparse.ArgumentParser(description="Lists and calls the tools of a tool API; prints one JSON line.")
    parser.add_argument("--url", required=True, help="the server, such as http://127.0.0.1:4986")
    parser.add_argument("--token", required=True, help="the bearer token that goes with every request")
    parser.add_argument("--calls", default="[]", help='JSON: [{"tool": name, "arguments": {}?, "key": idempotency key?}]')
    return parser.parse_args()


async def call(client, one):
    body = {name: one[name] for name in ("tool", "arguments") if name in one}
    try:
        answer = await client.request("post_mcp_call", body=body, idempotency_key=one.get("key"))
    except EvalGateError as error:
        return {"error": {"class": type(error).__name__, "code": error.code, "status": error.status_code,
                          "message": str(error), "requestId": error.request_id}}
    whole, text = answer["content"]
    # The text is the same result for people.
    same = answer["ok"] is True and (whole["type"], text["type"]) == ("json", "text") and json.loads(text["text"]) == whole["json"]
    return {"result": whole["json"], "same": same}


async def session(options):
    async with OpenApiClient(api_key=options.token, base_url=options.url, timeout=30) as client:
        listed = await client.request("get_mcp_tools", query={"limit": 1, "offset": 7})
        pages = [page async for page in client.paginate("get_mcp_tools", limit=1)]
        return {
            "client": f"evalgate-sdk {version('evalgate-sdk')}",
            "listed": listed,
            "pages": len(pages),
            "alike": all(page == listed for page in pages),
            "called": [await call(client, one) for one in json.loads(options.calls)],
        }


async def bounded():
    options = arguments()
    try:
        return await asyncio.wait_for(session(options), SECONDS_MAX)
    except EvalGateError as error:
        return {"refused": {"class": type(error).__name__, "status": error.status_code, "requestId": error.request_id}}


print(json.dumps(asyncio.run(bounded())))
