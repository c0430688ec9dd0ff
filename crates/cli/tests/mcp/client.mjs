// The official TypeScript client against `haft mcp serve`: over a pipe, or over HTTP where HAFT_CASE_URL is set.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const { HAFT_CASE_BINARY, HAFT_CASE_DIR, HAFT_CASE_URL, HAFT_CASE_TOKEN } = process.env;

const transport = () =>
  HAFT_CASE_URL
    ? new StreamableHTTPClientTransport(new URL(HAFT_CASE_URL), {
        requestInit: { headers: { Authorization: `Bearer ${HAFT_CASE_TOKEN}` } },
      })
    : new StdioClientTransport({ command: HAFT_CASE_BINARY, args: ["mcp", "serve"], cwd: HAFT_CASE_DIR });

const connect = async (capabilities, answer) => {
  const client = new Client({ name: "case", version: "1" }, { capabilities });
  if (answer) client.setRequestHandler(ElicitRequestSchema, async (request) => answer(request.params));
  await client.connect(transport());
  return client;
};

const call = (client, name, args, options) =>
  client.callTool({ name, arguments: args }, undefined, options);

// A client without forms: the rules decide.
const plain = await connect({});
const { tools } = await plain.listTools();
const read = tools.find((tool) => tool.name === "Read");
assert.equal(read.annotations.readOnlyHint, true);
assert.equal(tools.find((tool) => tool.name === "Bash").annotations.destructiveHint, true);
assert.ok(tools.some((tool) => tool.name === "Undo") && !tools.some((tool) => tool.name === "ToolSearch"));
const text = (result) => result.content[0].text;
const seen = await call(plain, "Read", { file_path: "a.txt" });
assert.match(text(seen), /forty-two/);
assert.equal(seen.structuredContent.file.numLines, 1);
const refused = await call(plain, "Write", { file_path: "b.txt", content: "x" });
assert.equal(refused.isError, true);
assert.match(text(refused), /What would allow it/);
await assert.rejects(() => plain.readResource({ uri: "haft://results/none.txt" }));

// A long result is kept, linked and read.
const long = await call(plain, "Bash", { command: "seq 1 20000" });
const link = long.content.find((block) => block.type === "resource_link");
assert.ok(link, JSON.stringify(long).slice(0, 300));
const { resources } = await plain.listResources();
assert.ok(resources.some((one) => one.uri === link.uri));
const whole = await plain.readResource({ uri: link.uri });
assert.ok(whole.contents[0].text.endsWith("20000\n") || whole.contents[0].text.endsWith("20000"));

// Progress, and one call that is cancelled while another goes on.
const reports = [];
const onprogress = (report) => reports.push(report);
await call(plain, "Bash", { command: "echo one; sleep 1; echo two" }, { onprogress });
assert.ok(reports.length >= 1 && reports[0].message.includes("one"), JSON.stringify(reports));
assert.ok(reports.every((one, at) => at === 0 || one.progress > reports[at - 1].progress));
const abort = new AbortController();
const slow = call(plain, "Bash", { command: "sleep 60" }, { signal: abort.signal });
slow.catch(() => {});
setTimeout(() => abort.abort("enough"), 300);
await assert.rejects(slow);
const after = await call(plain, "Read", { file_path: "a.txt" });
assert.match(text(after), /forty-two/);
await plain.ping();
await plain.setLoggingLevel("warning");

// A client with forms: its person decides.
const asked = [];
const person = await connect({ elicitation: {} }, (params) => {
  asked.push(params);
  return { action: "accept", content: { decision: "Allow once" } };
});
const written = await call(person, "Write", { file_path: "c.txt", content: "x\n" });
assert.notEqual(written.isError, true, JSON.stringify(written));
assert.equal(asked.length, 1);
assert.match(asked[0].message, /c\.txt/);

// Sessions are on their own: what one has read the other has not.
const other = await connect({ elicitation: {} }, () => ({ action: "decline" }));
const unread = await call(other, "Edit", { file_path: "c.txt", old_string: "x", new_string: "y" });
assert.equal(unread.isError, true);
await Promise.all([plain.close(), person.close(), other.close()]);
console.log("ok");
process.exit(0);
