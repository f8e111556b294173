"""What the Python clients share: the command line, the plan of calls, and the one line that they print.

Promises: an answer that the SDK refuses, an error result that was not expected and a call that cannot be made are all named.
Does not: know an SDK; each client hands in its own way to list, call and read.
"""

import argparse
import asyncio
import json
import re
import sys
from urllib.parse import quote

SECONDS_MAX = 60


def arguments(modes):
    parser = argparse.ArgumentParser(description="Calls every read tool of an MCP server; prints one JSON line.")
    parser.add_argument("--mode", choices=modes, default=modes[0])
    parser.add_argument("--calls", default="[]", help='JSON: [{"tool": name, "arguments": {}, "expect": "error"?}]')
    parser.add_argument("--url", help="speak Streamable HTTP to this endpoint, in place of starting COMMAND")
    parser.add_argument("--token", help="the bearer token that goes with every request to it")
    parser.add_argument("server", nargs="*", metavar="-- COMMAND ARG...")
    options = parser.parse_args()
    if bool(options.url) == bool(options.server):
        parser.error("either --url or -- COMMAND")
    return options


def headers(options):
    return {"Authorization": f"Bearer {options.token}"} if options.token else {}


def plan(tools, wanted):
    """The calls that are asked for, then each other read tool that takes no argument; the names of those left over."""
    asked = {call["tool"] for call in wanted}
    others = [tool for tool in tools if tool["name"] not in asked and tool["read_only"]]
    free = [{"tool": tool["name"], "arguments": {}} for tool in others if not tool["required"]]
    return wanted + free, [tool["name"] for tool in others if tool["required"]]


class Report:
    def __init__(self, client, mode):
        self.line = {"client": client, "mode": mode, "protocolVersion": None, "server": None, "tools": [],
                     "called": [], "skipped": [], "resources": None, "errors": []}

    def called(self, call, is_error, structured, text):
        expected = call.get("expect") == "error"
        outcome = "error" if is_error else "ok" if structured is not None else "text"
        self.line["called"].append({"tool": call["tool"], "outcome": outcome})
        if is_error != expected:
            self.line["errors"].append(f"{call['tool']}: {'an error result: ' + text if is_error else 'no error result'}")

    def failed(self, where, error):
        self.line["errors"].append(f"{where}: {type(error).__name__}: {error}")


def filled(template, values):
    """The URI of a template: RFC 6570, simple expansion."""
    for name, value in values.items():
        template = template.replace("{" + name + "}", quote(value, safe="-._~"))
    return template


async def read_all(report, own, completes, prompts):
    """Reads the first resource, one of each template with what its variables are completed to, and each prompt; `own` is the SDK's way."""
    listed = await own.resources()
    told = {"listed": len(listed), "read": len(await own.read(listed[0])) if listed else 0}
    report.line["resources"] = told
    if completes:
        told["templates"] = []
        for template in await own.templates():
            values = {}
            for name in re.findall(r"{(\w+)}", template):
                reference = {"type": "ref/resource", "uri": template}
                values[name] = (await own.complete(reference, {"name": name, "value": ""}, dict(values)))[0]
            told["templates"].append(len(await own.read(filled(template, values))))
    if prompts:
        told["prompts"] = []
        for name, arguments in await own.prompts():
            reference, values = {"type": "ref/prompt", "name": name}, {}
            for argument in arguments:
                values[argument] = (await own.complete(reference, {"name": argument, "value": ""}, {}))[0]
            told["prompts"].append(len(await own.prompt(name, values)))


async def call_all(report, call, calls):
    for one in calls:
        try:
            report.called(one, *await call(one["tool"], one.get("arguments") or {}))
        except Exception as error:  # whatever the SDK raises is what the report is for
            report.failed(one["tool"], error)


def run(report, session):
    """Runs the coroutine function `session`, prints the report, and gives the exit code."""
    try:
        asyncio.run(asyncio.wait_for(session(), SECONDS_MAX))
    except BaseException as error:  # also an exception group of the SDK's task groups
        report.failed("session", error)
    print(json.dumps(report.line), flush=True)
    return 1 if report.line["errors"] else 0


def finish(code):
    sys.exit(code)
