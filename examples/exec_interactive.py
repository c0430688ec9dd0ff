#!/usr/bin/env python3
"""A call that asks, reports progress and can be cancelled, all by lines of JSON.

    python3 examples/exec_interactive.py [DIRECTORY]

The program is `haft` on the PATH, or what HAFT names.
"""

import json
import os
import subprocess
import sys


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "."
    program = os.environ.get("HAFT", "haft")
    haft = subprocess.Popen(
        [program, "--cwd", directory, "exec", "--interactive-json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )

    def say(line):
        haft.stdin.write(json.dumps(line) + "\n")
        haft.stdin.flush()

    def answer():
        """The answer to the call that runs; what comes before it is handled here."""
        for text in haft.stdout:
            line = json.loads(text)
            match line.get("type"):
                case "permission_request":
                    print("asked:", line["name"], line["input"])
                    # A program would show this to a person. `deny` takes a `message` for the model.
                    say({"type": "permission_response", "request_id": line["request_id"], "behavior": "allow"})
                case "progress":
                    print("so far:", line.get("text") or line.get("note") or line.get("done"))
                case _:
                    return line
        raise RuntimeError("haft has ended; what it said is on stderr")

    say({"id": "a", "name": "Bash", "input": {"command": "touch made-by-haft && echo made"}})
    print("answer:", answer()["content"])

    say({"id": "b", "name": "Bash", "input": {"command": "sleep 60; true > slept"}})
    # At any time, also while a question waits; the call is answered all the same.
    say({"type": "cancel", "id": "b"})
    print("cancelled:", answer()["is_error"])

    haft.stdin.close()
    haft.wait()


if __name__ == "__main__":
    main()
