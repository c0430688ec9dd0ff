#!/usr/bin/env node
// Tools for an agent written in JavaScript: one `haft exec`, calls in, answers out.
//
//     node examples/exec.mjs [DIRECTORY]
//
// The program is `haft` on the PATH, or what HAFT names.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A session: what was read in it is remembered until it ends. */
class Haft {
  #process;
  #waiting = [];

  constructor(directory = ".", ...flags) {
    const program = process.env.HAFT ?? "haft";
    this.#process = spawn(program, ["--cwd", directory, ...flags, "exec"], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface({ input: this.#process.stdout });
    // Answers come in the order of the lines.
    lines.on("line", (line) => this.#waiting.shift()?.resolve(JSON.parse(line)));
    const fail = (error) => this.#waiting.splice(0).forEach(({ reject }) => reject(error));
    this.#process.on("error", fail);
    lines.on("close", () => fail(new Error("haft has ended; what it said is on stderr")));
  }

  /** Sends one line and waits for its answer. */
  ask(line) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#process.stdin.write(JSON.stringify(line) + "\n");
    });
  }

  /** One call. An error is an answer, too: hand it to the model. */
  async call(name, input) {
    const { content, is_error: isError } = await this.ask({ name, input });
    return { content, isError };
  }

  end() {
    this.#process.stdin.end();
    return new Promise((resolve) => this.#process.on("exit", resolve));
  }
}

const haft = new Haft(process.argv[2] ?? ".");
const { content: files } = await haft.call("Glob", { pattern: "**/*.md" });
console.log(`Markdown files:\n${files}`);

// As an Anthropic model says it; an OpenAI message with `tool_calls` works the same way.
const answer = await haft.ask({
  role: "assistant",
  content: [
    { type: "tool_use", id: "t1", name: "LS", input: {} },
    { type: "tool_use", id: "t2", name: "Read", input: { file_path: "missing.txt" } },
  ],
});
for (const result of answer.content) {
  console.log(result.tool_use_id, result.is_error ? "failed" : "worked");
}
await haft.end();
