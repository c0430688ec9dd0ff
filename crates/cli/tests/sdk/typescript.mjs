// The official TypeScript SDK drives the binary: the requests that only it makes, a store of sessions as its
// repository's examples use one, and what its documented examples show, with a model that is named and without.

import assert from 'node:assert/strict'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { HAFT_CASE_BINARY, HAFT_CASE_DIR, HAFT_CASE_URL, HAFT_CASE_SDK, HAFT_CASE_MODEL, HOME, PATH } = process.env
const { query, tool, createSdkMcpServer } = await import(pathToFileURL(join(HAFT_CASE_SDK, 'sdk.mjs')))
const { z } = await import(pathToFileURL(join(HAFT_CASE_SDK, '../../zod/index.js')))

const options = (more = {}) => ({
  pathToClaudeCodeExecutable: HAFT_CASE_BINARY,
  cwd: HAFT_CASE_DIR,
  model: HAFT_CASE_MODEL,
  env: { HOME, PATH, ANTHROPIC_BASE_URL: HAFT_CASE_URL, ANTHROPIC_API_KEY: 'key', CLAUDE_CODE_MAX_RETRIES: '0' },
  stderr: line => process.stderr.write(`stderr: ${line}`),
  ...more,
})

async function once(prompt, more) {
  const messages = []
  for await (const message of query({ prompt, options: options(more) })) messages.push(message)
  return messages
}

const result = messages => messages.findLast(message => message.type === 'result')

// A session in a store of the program's own, gone on with from there.
async function stored() {
  const kept = new Map()
  const name = key => [key.projectKey, key.sessionId, key.subpath ?? ''].join('/')
  const sessionStore = {
    async append(key, entries) {
      kept.set(name(key), [...(kept.get(name(key)) ?? []), ...structuredClone(entries)])
    },
    async load(key) {
      return kept.get(name(key)) ?? null
    },
  }
  const first = result(await once('Reply with exactly: pineapple', { sessionStore, maxTurns: 1 }))
  assert.equal(first.result, 'pineapple')
  assert.ok(kept.size > 0)
  const again = result(await once('Reply with exactly: again', { sessionStore, maxTurns: 1, resume: first.session_id }))
  assert.equal(again.session_id, first.session_id)
}

// What may be asked while a session goes on.
async function asked() {
  let say, close
  const queue = []
  async function* prompts() {
    for (;;) {
      const next = queue.shift() ?? (await new Promise(resolve => ((say = resolve), (close = () => resolve(null)))))
      if (next === null) return
      yield { type: 'user', message: { role: 'user', content: next }, parent_tool_use_id: null }
    }
  }
  const session = query({ prompt: prompts(), options: options() })
  const answer = async prompt => {
    say ? say(prompt) : queue.push(prompt)
    say = undefined
    for (;;) {
      const { value, done } = await session.next()
      assert.ok(!done, 'it ended')
      if (value.type === 'result') return value
    }
  }
  assert.equal((await answer('Reply with exactly: one')).result, 'one')
  const file = join(HAFT_CASE_DIR, 'a.txt')
  writeFileSync(file, 'forty-two\n')
  assert.equal((await session.readFile('a.txt')).contents, 'forty-two\n')
  await session.seedReadState(file, statSync(file).mtimeMs)
  await session.applyFlagSettings({ permissions: { deny: ['WebFetch'] } })
  mkdirSync(join(HAFT_CASE_DIR, '.claude/skills/new'), { recursive: true })
  writeFileSync(join(HAFT_CASE_DIR, '.claude/skills/new/SKILL.md'), '---\ndescription: New.\n---\nDo it.')
  const { skills } = await session.reloadSkills()
  assert.ok(skills.some(skill => skill.name === 'new'), JSON.stringify(skills))
  const styles = (await session.reloadOutputStyles()).available_output_styles
  assert.ok(styles.includes('Explanatory') && styles.includes('Learning'))
  assert.deepEqual((await session.reloadPlugins()).plugins, [])
  await session.updateSettings('localSettings', { outputStyle: 'Learning' })
  assert.ok((await session.supportedCommands()).length > 0)
  await session.setPermissionMode('acceptEdits')
  assert.equal((await answer('Reply with exactly: two')).result, 'two')
  close()
}

const text = messages => JSON.stringify(messages)

// A tool of the program's own.
async function ownTool(more) {
  const heard = []
  const add = tool('add', 'Adds two numbers', { a: z.number(), b: z.number() }, async ({ a, b }) => {
    heard.push([a, b])
    return { content: [{ type: 'text', text: `the sum is ${a + b}` }] }
  })
  const mcpServers = { calc: createSdkMcpServer({ name: 'calc', version: '1.0.0', tools: [add] }) }
  const messages = await once('Use the add tool', { mcpServers, allowedTools: ['mcp__calc__add'], ...more })
  assert.equal(heard.length, 1, text(messages))
  assert.ok(text(messages).includes('the sum is'), text(messages))
  assert.equal(result(messages).subtype, 'success')
}

// A callback that permits, changes or refuses.
async function permissionCallback(more) {
  const asked = []
  const canUseTool = async (name, input) => {
    asked.push(name)
    return input.command.includes('refused')
      ? { behavior: 'deny', message: 'not this one' }
      : { behavior: 'allow', updatedInput: { ...input, command: 'echo changed > made.txt; cat made.txt' } }
  }
  async function* one(words) {
    yield { type: 'user', message: { role: 'user', content: words }, parent_tool_use_id: null }
  }
  const permitted = await once(one('Run this command: touch asked.txt'), { canUseTool, ...more })
  assert.ok(text(permitted).includes('changed'), text(permitted))
  const refused = await once(one('Run this command: touch refused.txt'), { canUseTool, ...more })
  assert.ok(text(refused).includes('not this one'), text(refused))
  assert.equal(result(refused).permission_denials.length, 1)
  assert.deepEqual(asked, ['Bash', 'Bash'])
}

// Hooks: one blocks a call, one adds what the model reads.
async function hooks(more) {
  const events = []
  const block = async input => {
    events.push(input.hook_event_name)
    if (!input.tool_input.command.includes('blocked')) return {}
    return {
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'deny',
        permissionDecisionReason: 'blocked by a hook',
      },
    }
  }
  const after = async input => {
    events.push(input.hook_event_name)
    return {}
  }
  const set = { PreToolUse: [{ matcher: 'Bash', hooks: [block] }], PostToolUse: [{ matcher: 'Bash', hooks: [after] }] }
  const options = { hooks: set, allowedTools: ['Bash'], ...more }
  const ran = await once('Run this command: echo fine', options)
  assert.ok(text(ran).includes('fine'), text(ran))
  const stopped = await once('Run this command: echo blocked', options)
  assert.ok(text(stopped).includes('blocked by a hook'), text(stopped))
  assert.deepEqual(events, ['PreToolUse', 'PostToolUse', 'PreToolUse'])
}

// Agents that the program defines.
async function subagents(more) {
  const agents = { reviewer: { description: 'Reviews code', prompt: 'You review code.', tools: ['Read', 'Grep'] } }
  const messages = await once('Use the reviewer agent to look at it', { agents, allowedTools: ['Agent', 'Task'], ...more })
  const init = messages.find(message => message.subtype === 'init')
  assert.ok(init.agents.includes('reviewer'), text(init))
  const started = messages.find(message => message.subtype === 'task_started')
  assert.equal(started?.subagent_type, 'reviewer', text(messages))
  assert.equal(result(messages).subtype, 'success')
}

// A session that is gone on with, and one that branches off.
async function resumed(more) {
  const first = result(await once('Reply with exactly: first', more))
  const again = result(await once('Reply with exactly: again', { resume: first.session_id, ...more }))
  assert.equal(again.session_id, first.session_id)
  const forked = result(await once('Reply with exactly: other', { resume: first.session_id, forkSession: true, ...more }))
  assert.notEqual(forked.session_id, first.session_id)
  assert.equal(forked.result, 'other')
}

// Parts of messages as they come, an answer of a given shape, a system prompt with a word added.
async function shapes(more) {
  const partial = await once('Reply with exactly: hello', { includePartialMessages: true, ...more })
  const parts = partial.filter(message => message.type === 'stream_event')
  assert.ok(parts.some(part => part.event.type === 'content_block_delta'), text(partial))
  const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false }
  const shaped = await once('Who is it?', { outputFormat: { type: 'json_schema', schema }, ...more })
  assert.equal(typeof result(shaped).structured_output.name, 'string', text(shaped))
  const systemPrompt = { type: 'preset', preset: 'claude_code', append: 'Be short.' }
  assert.equal(result(await once('Reply with exactly: short', { systemPrompt, ...more })).result, 'short')
}

// A run that takes too long is interrupted, and one that is abandoned ends.
async function ended() {
  let over
  const isOver = new Promise(resolve => (over = resolve))
  async function* prompts() {
    yield { type: 'user', message: { role: 'user', content: 'Count from 1 to 1000' }, parent_tool_use_id: null }
    await isOver
  }
  const session = query({ prompt: prompts(), options: options({ includePartialMessages: true }) })
  let [interrupted, results] = [false, 0]
  try {
    for await (const message of session) {
      if (!interrupted && message.type === 'stream_event' && message.event.type === 'content_block_delta') {
        interrupted = true
        await session.interrupt()
      }
      if (message.type === 'result') {
        results += 1
        over()
      }
    }
  } catch (error) {
    // A run that was interrupted is an error result.
    assert.equal(results, 1, String(error))
  }
  assert.equal(results, 1)
  const abortController = new AbortController()
  await assert.rejects(async () => {
    const aborted = query({ prompt: 'Count from 1 to 1000', options: options({ includePartialMessages: true, abortController }) })
    for await (const message of aborted) if (message.type === 'stream_event') abortController.abort()
  })
}

const simple = await once('Reply with exactly: hello')
assert.equal(result(simple).result, 'hello')
assert.equal(simple.filter(message => message.subtype === 'init').length, 1)
await stored()
await asked()
for (const more of [{}, { model: undefined }]) {
  await ownTool(more)
  await permissionCallback(more)
  await hooks(more)
  await subagents(more)
  await resumed(more)
  await shapes(more)
}
await ended()
console.log('done')
process.exit(0)
