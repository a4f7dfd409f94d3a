// Claude Code itself completes a task with two tool calls through the messages surface onto an openai-chat route.

import { beforeAll, describe, expect, test } from 'bun:test'
import { failFirst, hiccups } from '../parts/failing-provider.ts'
import { claudeCode, findClaudeCode, recipeBlock, runTask, type Task } from './claude-code.ts'
import { documentedRow, renderRow } from './table.ts'

const found = await findClaudeCode()
const name = `${claudeCode.name} ${claudeCode.version}`

if ('reason' in found) test.skip(`${name}: ${found.reason}`, () => {})
else {
  describe(name, () => {
    let task: Task
    beforeAll(async () => {
      task = await runTask(found.program)
    })

    test('completes the task and prints the results of its tools', () => {
      expect(`${task.exitCode} ${task.printed}`).toStartWith('0 {')
      expect(task.result).toMatchObject({ type: 'result', subtype: 'success', is_error: false, num_turns: 3 })
      // It runs both at once and sends what is ready first; its Read numbers the lines.
      expect(task.result.result).toMatch(
        /^They said: 1\s+(the gate is open[^;]*; 1\s+all quiet|all quiet[^;]*; 1\s+the gate)/,
      )
    })

    test('reads the usage of both calls', () => {
      expect(task.result.usage).toMatchObject({ input_tokens: 18_000, output_tokens: 80 })
    })

    test('reaches the provider in its own dialect, streamed, with its tools', () => {
      expect(task.asked.map(({ stream }) => stream)).toEqual([true, true])
      expect(task.asked[0]?.tools.map((tool) => tool.function.name)).toEqual(expect.arrayContaining(['Read', 'Bash']))
    })

    test('sends both results behind the calls they belong to', () => {
      const messages = task.asked[1]?.messages ?? []
      const at = messages.findIndex(({ role }) => role === 'assistant')
      const [calls, ...results] = messages.slice(at, at + 3)
      expect(calls).toMatchObject({
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [
          { id: 'call_0', type: 'function', function: { name: 'Read' } },
          { id: 'call_1', type: 'function', function: { name: 'Read' } },
        ],
      })
      const byCall = results.sort((a, b) => String(a.tool_call_id).localeCompare(String(b.tool_call_id)))
      expect(byCall).toMatchObject([
        { role: 'tool', tool_call_id: 'call_0', content: expect.stringMatching(/^1\s+the gate is open/) },
        { role: 'tool', tool_call_id: 'call_1', content: expect.stringMatching(/^1\s+all quiet/) },
      ])
    })

    test('grows the conversation at its end, so that a prompt cache holds', () => {
      const [before = '', after = ''] = task.asked.map(({ messages }) => JSON.stringify(messages).slice(0, -1))
      expect(after.startsWith(before)).toBe(true)
      expect(JSON.stringify(task.asked[1]?.tools)).toBe(JSON.stringify(task.asked[0]?.tools))
    })

    test('does not show the provider its line for billing', () => {
      expect(JSON.stringify(task.asked)).not.toContain('x-anthropic-billing-header')
    })

    test.each(Object.keys(hiccups))(
      'completes the same task where each of its requests meets %s twice',
      async (hiccup) => {
        const disturbed = await runTask(found.program, (model) => failFirst(2, hiccup, model))
        expect(`${disturbed.exitCode} ${disturbed.printed}`).toStartWith('0 {')
        expect(disturbed.result).toMatchObject({ type: 'result', subtype: 'success', is_error: false, num_turns: 3 })
        expect(disturbed.result.usage).toMatchObject({ input_tokens: 18_000, output_tokens: 80 })
        // Two requests, each charged once after three calls: 9,000 tokens in at $1 and 40 out at $2 per million.
        expect(disturbed.asked).toHaveLength(6)
        expect(disturbed.records.map(({ status, cost }) => [status, cost])).toEqual([
          [200, '0.00908'],
          [200, '0.00908'],
        ])
      },
    )

    test('retries as the answer asks, and ends with one error if the provider stays down', async () => {
      const isDown = Number.POSITIVE_INFINITY
      const down = await runTask(found.program, (model) => failFirst(isDown, 'a 529', model), {
        CLAUDE_CODE_MAX_RETRIES: '1',
      })
      expect(down.result).toMatchObject({ type: 'result', is_error: true })
      expect(down.records.length).toBeGreaterThan(1)
      for (const { status, cost } of down.records) expect([status, cost ?? null]).toEqual([404, null])
      expect(down.asked).toHaveLength(3 * down.records.length)
    })

    test('is in the documentation', () => {
      expect(documentedRow(claudeCode, 'messages')).toBe(renderRow(claudeCode, 'messages', () => true))
    })
  })
}

test('both ways of setting it up set the same variables', () => {
  const exported = [...recipeBlock('sh').matchAll(/^export (\w+)=/gm)].map(([, variable]) => variable)
  const settings = JSON.parse(recipeBlock('json')) as { env: Record<string, string> }
  expect(exported).toContain('ANTHROPIC_BASE_URL')
  expect(Object.keys(settings.env)).toEqual(exported as string[])
})
