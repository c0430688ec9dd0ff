#!/usr/bin/env python3
"""A real session of haft at the pace of a real model: `session.py HAFT FOLDER`, where FOLDER is the project.
`session.py --serve FILE` serves the model alone, writes its address into the file, and ends after ten minutes.

The model is a server in this process that says what `session.json` says, word by word; haft, its tools, its
permissions and its transcript are real. Questions are answered after the time a person takes. Prints the session's id.
"""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

SCRIPT = json.loads((pathlib.Path(__file__).parent / "session.json").read_text())
MODEL = "claude-sonnet-4-5"
FIRST_WORD, WORD, PERSON = 0.9, 0.03, 2.4
# Nothing takes longer.
LONGEST = 120


class Provider(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(json.dumps({"data": [{"id": MODEL, "type": "model", "display_name": MODEL}], "has_more": False}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not request.get("stream"):
            return self.answer(json.dumps({"input_tokens": 1000}))
        turn = next_turn(request["messages"])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        used = {"input_tokens": turn["input"], "output_tokens": 1, "cache_read_input_tokens": turn["cached"]}
        time.sleep(FIRST_WORD)
        message = {"id": f"msg_{id(turn)}", "type": "message", "role": "assistant", "model": request["model"], "content": [], "usage": used}
        self.event("message_start", message=message)
        words = 0
        for index, block in enumerate(turn["content"]):
            kind = block["type"]
            shell = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {**block, "input": {}}}[kind]
            if kind == "tool_use":
                shell["id"] = f"toolu_{id(turn)}_{index}"
            self.event("content_block_start", index=index, content_block={"type": kind, **shell})
            whole = json.dumps(block["input"]) if kind == "tool_use" else block[kind]
            part, name = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking"), "tool_use": ("input_json_delta", "partial_json")}[kind]
            for piece in re.findall(r"\S*\s*", whole):
                self.event("content_block_delta", index=index, delta={"type": part, name: piece})
                words += 1
                time.sleep(WORD)
            self.event("content_block_stop", index=index)
        stop = "tool_use" if any(block["type"] == "tool_use" for block in turn["content"]) else "end_turn"
        self.event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage={"output_tokens": words * 2 + 20})
        self.event("message_stop")

    def event(self, kind, **more):
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode())
        self.wfile.flush()

    def answer(self, body):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())


def next_turn(messages):
    first = json.dumps(messages[0])
    turns = next((one["turns"] for one in SCRIPT["conversations"] if one["when"] in first), SCRIPT["turns"])
    said = sum(message["role"] == "assistant" for message in messages)
    content = turns[min(said, len(turns) - 1)]
    read = len(json.dumps(messages)) // 4
    return {"content": content, "input": read // 4 + 300, "cached": 9000 + read}


def main():
    haft, folder = sys.argv[1:]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if haft == "--serve":
        pathlib.Path(folder).write_text(f"http://127.0.0.1:{server.server_port}")
        return time.sleep(600)
    environment = {
        **os.environ,
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        "ANTHROPIC_API_KEY": "none",
    }
    command = [haft, "-p", "--model", MODEL, "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    command += ["--permission-prompt-tool", "stdio", "--allowed-tools", "Bash(./test.sh)"]
    run = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    bound = threading.Timer(LONGEST, run.kill)
    bound.start()

    def say(message):
        run.stdin.write(json.dumps(message) + "\n")
        run.stdin.flush()

    prompts = list(SCRIPT["prompts"])
    session = None
    say({"type": "user", "message": {"role": "user", "content": prompts.pop(0)}})
    for line in run.stdout:
        message = json.loads(line)
        session = message.get("session_id", session)
        if message["type"] == "control_request" and message["request"]["subtype"] == "can_use_tool":
            time.sleep(PERSON)
            response = {"behavior": "allow", "updatedInput": message["request"]["input"]}
            say({"type": "control_response", "response": {"subtype": "success", "request_id": message["request_id"], "response": response}})
        if message["type"] == "result":
            if not prompts:
                break
            say({"type": "user", "message": {"role": "user", "content": prompts.pop(0)}})
    run.stdin.close()
    run.wait()
    bound.cancel()
    server.shutdown()
    print(session)


main()
