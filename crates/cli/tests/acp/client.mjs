// Drives `haft acp` with the official TypeScript library: node client.mjs HAFT SCRIPT DIRECTORY. Ends with 1 and words
// where something is not as it should be.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [, , haft, script, cwd] = process.argv;
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGNQDplnOyuD4eYs7fOBHgAjtgVbcmtnSQAAAABJRU5ErkJggg==";
const file = () => readFileSync(`${cwd}/a`, "utf8");

const child = spawn(haft, ["acp", "--script", script], { cwd, stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((done) => child.on("exit", (code) => done(code)));
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

let updates = [];
let answer = "allow";
const questions = [];
let atUpdate = () => {};
const of = (kind) => updates.filter((update) => update.sessionUpdate === kind);
const said = (kind) => of(kind).map((update) => update.content.text ?? "").join("");

const app = acp
  .client({ name: "test" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    questions.push(params);
    return { outcome: { outcome: "selected", optionId: answer } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    atUpdate(params.update);
  });

await app.connectWith(stream, async (agent) => {
  const { agent: methods } = acp.methods;
  const ask = (method, params) => {
    updates = [];
    return agent.request(method, params);
  };
  const begun = await ask(methods.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  assert.equal(begun.protocolVersion, 1);
  assert.equal(begun.agentInfo.name, "haft");

  const servers = [{ name: "files", command: haft, args: ["mcp", "serve", "--tools", "Read", "--cwd", cwd], env: [] }];
  const { sessionId, modes } = await ask(methods.session.new, { cwd, mcpServers: servers });
  assert.equal(modes.currentModeId, "default");
  const prompt = (...blocks) => ask(methods.session.prompt, { sessionId, prompt: blocks });
  const text = (text) => ({ type: "text", text });

  assert.equal((await prompt(text("hi"))).stopReason, "end_turn");
  assert.equal(said("agent_message_chunk"), "Hello");

  // Allowed, with the difference in the question and in the result.
  await prompt(text("edit"));
  const [diff] = questions[0].toolCall.content;
  assert.deepEqual([diff.type, diff.oldText, diff.newText], ["diff", "one\n", "two\n"]);
  const done = of("tool_call_update").findLast((update) => update.status === "completed");
  assert.deepEqual(done.content, [diff]);
  assert.equal(file(), "two\n");

  // Refused.
  answer = "reject";
  assert.equal((await prompt(text("edit again"))).stopReason, "end_turn");
  assert.equal(of("tool_call_update").at(-1).status, "failed");
  assert.equal(file(), "two\n");

  // Cancelled in the middle of a tool.
  answer = "allow";
  atUpdate = (update) => {
    if (update.status === "in_progress") agent.notify(methods.session.cancel, { sessionId });
  };
  assert.equal((await prompt(text("sleep"))).stopReason, "cancelled");
  atUpdate = () => {};

  // A picture.
  await prompt(text("what is this?"), { type: "image", data: pixel, mimeType: "image/png" });
  assert.equal(said("agent_message_chunk"), "Four pixels.");

  // Another mode: no question.
  await ask(methods.session.setMode, { sessionId, modeId: "acceptEdits" });
  const asked = questions.length;
  await prompt(text("edit once more"));
  assert.equal(questions.length, asked);
  assert.equal(file(), "three\n");
  const options = await ask(methods.session.setConfigOption, { sessionId, configId: "effort", value: "high" });
  assert.equal(options.configOptions.find((option) => option.id === "effort").currentValue, "high");

  // A tool of a server that came from here.
  await prompt(text("use the server"));
  assert.equal(of("tool_call_update").findLast((update) => update.status).status, "completed");

  // Closed, and gone on with.
  await ask(methods.session.close, { sessionId });
  const { sessions } = await ask(methods.session.list, { cwd });
  assert.equal(sessions[0].sessionId, sessionId);
  await ask(methods.session.load, { sessionId, cwd, mcpServers: [] });
  assert.ok(said("user_message_chunk").startsWith("hi"), said("user_message_chunk"));
  assert.ok(of("tool_call").length >= 5);
  assert.equal((await prompt(text("and now?"))).stopReason, "end_turn");
  assert.equal(said("agent_message_chunk"), "Hello");
  await assert.rejects(ask(methods.session.load, { sessionId: "nope", cwd, mcpServers: [] }), (error) => error.code === -32002);
});
child.stdin.end();
assert.equal(await ended, 0);
