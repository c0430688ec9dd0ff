"""An MCP server that lies, or dies at the step that its argument names."""
import json, os, sys

mode = sys.argv[1]


def out(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def send(message):
    out(json.dumps(message) + "\n")


def answer(request, result):
    if mode == "ids":
        # Answers that no one asked for, and one that was answered already.
        for wrong in (0, -1, 10**18, "x", str(request["id"]), None, [1], request["id"] + 1000):
            send({"jsonrpc": "2.0", "id": wrong, "result": {"tools": [{"name": "wrong"}]}})
        send({"jsonrpc": "2.0", "id": request["id"], "result": result})
        send({"jsonrpc": "2.0", "id": request["id"], "result": {"again": True}})
        return
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def tools(request):
    plain = {"type": "object"}
    cursor = int(request["params"].get("cursor", 0))
    if mode == "endless":
        page = [{"name": f"t{cursor}_{n}", "inputSchema": plain} for n in range(500)]
        return {"tools": page, "nextCursor": str(cursor + 1)}
    if mode == "names":
        odd = ["\x1b[2Jclear", "a\nb", "\u202egnp", "", "x" * 5000, "a b", "a_b", "mcp__other__tool", "Bash", 7, None, "\u0000"]
        return {"tools": [{"name": name, "description": "\x1b]0;title\x07", "inputSchema": plain} for name in odd] + ["no tool", 3, None]}
    if mode == "schemas":
        loop = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
        tree = {"type": "object", "properties": {"child": {"$ref": "#"}}}
        slow = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}}
        schemas = {"self": {"$ref": "#"}, "loop": loop, "tree": tree, "slow": slow, "text": "schema", "list": [1], "none": None, "wrong": {"type": 7}, "far": {"$ref": "file:///etc/passwd"}}
        return {"tools": [{"name": name, "inputSchema": schema, "outputSchema": schema} for name, schema in schemas.items()]}
    return {"tools": [{"name": "t", "inputSchema": plain}]}


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method", "")
    if mode == "die-" + method.replace("/", "-"):
        sys.stderr.write("dying at " + method + "\n")
        sys.stderr.flush()
        os._exit(9)
    if mode == "half-" + method.replace("/", "-"):
        out('{"jsonrpc": "2.0", "id": %d, "resu' % message["id"])
        os._exit(9)
    if mode == "mute-" + method.replace("/", "-"):
        continue
    if mode == "deep-" + method.replace("/", "-"):
        out('{"jsonrpc": "2.0", "id": %d, "result": ' % message["id"] + '[' * 5000 + ']' * 5000 + '}\n')
        continue
    if "id" not in message:
        continue
    if method == "initialize":
        answer(message, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "prompts": {}}, "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        answer(message, tools(message))
    elif method == "prompts/list":
        answer(message, {"prompts": []})
    elif method == "tools/call":
        answer(message, {"content": [{"type": "text", "text": "fine"}]})
    else:
        send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})
