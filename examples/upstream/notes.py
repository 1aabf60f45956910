"""A small MCP server with one tool, over standard input and output. It needs nothing but Python."""

import json
import sys

NOTES = ["buy milk", "call Ada about the engine", "water the plants"]

SEARCH = {
    "name": "search",
    "description": "Searches the notes. Returns the notes that contain the text, one per line.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "the text to find"}},
        "required": ["text"],
    },
    "annotations": {"readOnlyHint": True},
}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": "1.0"},
        }
    if method == "tools/list":
        return {"tools": [SEARCH]}
    if method == "tools/call":
        found = [note for note in NOTES if params["arguments"]["text"] in note]
        return {"content": [{"type": "text", "text": "\n".join(found)}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    result = answer(request["method"], request.get("params", {}))
    if result is None:
        reply["error"] = {"code": -32601, "message": "unknown method"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
