"""The official Python SDK's server (`MCPServer`), stateless with JSON answers, one tool. `python_server.py PORT`"""

import sys

import uvicorn
from mcp.server import MCPServer
from mcp_types import CallToolResult, TextContent

COUNTS = {"passed": 8, "failed": 2, "infra": 0, "unscored": 0, "missing": 0}
RUN = {"kind": "recorded", "status": "completed", "createdAt": "2026-11-28T08:22:54Z", "startedAt": "2026-11-28T08:22:54Z",
       "completedAt": "2026-11-28T08:25:11Z", "durationMs": 137000, "git": None, "round": None, "evaluations": ["refund_policy"],
       "arms": ["mockllm/model"], "counts": COUNTS, "rate": 0.8}
server = MCPServer("peer", log_level="ERROR")


@server.tool()
def runs_list(limit: int = 20, since: str = "") -> CallToolResult:
    """Lists runs."""
    runs = [{"runId": f"bench-run-{n:04}", **RUN} for n in range(4)]
    answer = {"runs": runs, "returned": 4, "total": 4, "complete": True, "nextCursor": None}
    return CallToolResult(content=[TextContent(type="text", text="4 runs")], structured_content=answer)


STARTUP = uvicorn.Server.startup


async def startup(self, sockets=None):
    """Who started it waits for this word, once it listens."""
    await STARTUP(self, sockets=sockets)
    print("listening", file=sys.stderr, flush=True)


uvicorn.Server.startup = startup
server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]), stateless_http=True, json_response=True)
