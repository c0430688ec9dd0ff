#!/usr/bin/env python3
"""Tools for an agent written in Python: one `haft exec`, calls in, answers out.

    python3 examples/exec.py [DIRECTORY]

The program is `haft` on the PATH, or what HAFT names.
"""

import json
import os
import subprocess
import sys


class Haft:
    """A session: what was read in it is remembered until it ends."""

    def __init__(self, directory=".", *flags):
        program = os.environ.get("HAFT", "haft")
        self.process = subprocess.Popen(
            [program, "--cwd", directory, *flags, "exec"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, line):
        """Sends one line and waits for its answer."""
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("haft has ended; what it said is on stderr")
        return json.loads(answer)

    def call(self, name, **arguments):
        """One call. An error is an answer, too: hand it to the model."""
        answer = self.ask({"name": name, "input": arguments})
        return answer["content"], answer["is_error"]

    def message(self, assistant):
        """A model's whole message; its calls run side by side where that is harmless."""
        return self.ask(assistant)


def main():
    directory = sys.argv[1] if len(sys.argv) > 1 else "."
    with Haft(directory) as haft:
        files, _ = haft.call("Glob", pattern="**/*.md")
        print("Markdown files:", files, sep="\n")

        # As an Anthropic model says it; an OpenAI message with `tool_calls` works the same way.
        answer = haft.message(
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "t1", "name": "LS", "input": {}},
                    {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "missing.txt"}},
                ],
            }
        )
        for result in answer["content"]:
            print(result["tool_use_id"], "failed" if result.get("is_error") else "worked")


if __name__ == "__main__":
    main()
