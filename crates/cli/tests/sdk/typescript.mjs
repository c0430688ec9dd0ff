// The official TypeScript SDK drives the binary: the requests that only it makes, and a store of sessions as its
// repository's examples use one.

import assert from 'node:assert/strict'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { HAFT_CASE_BINARY, HAFT_CASE_DIR, HAFT_CASE_URL, HAFT_CASE_SDK, HAFT_CASE_MODEL, HOME, PATH } = process.env
const { query } = await import(pathToFileURL(join(HAFT_CASE_SDK, 'sdk.mjs')))

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

const simple = await once('Reply with exactly: hello')
assert.equal(result(simple).result, 'hello')
assert.equal(simple.filter(message => message.subtype === 'init').length, 1)
await stored()
await asked()
console.log('done')
process.exit(0)
