import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ask, createTransport, type Path, say } from '../../../test/parts/ask-sandbox.ts'

describe('any JSON at all', () => {
  const messageLike = fc.record(
    {
      role: fc.oneof(fc.constantFrom('user', 'assistant', 'tool', 'system'), fc.jsonValue()),
      content: fc.oneof(
        fc.string(),
        fc.array(
          fc.record({ type: fc.constantFrom('text', 'tool_use', 'tool_result', 'thinking'), text: fc.jsonValue() }),
        ),
        fc.jsonValue(),
      ),
      tool_calls: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  const requestLike = fc.record(
    {
      model: fc.oneof(fc.constantFrom('echo', 'tools', 'think', 'cache'), fc.jsonValue()),
      max_tokens: fc.oneof(fc.nat(50), fc.jsonValue()),
      messages: fc.oneof(fc.array(messageLike), fc.jsonValue()),
      tools: fc.jsonValue(),
      tool_choice: fc.jsonValue(),
      system: fc.jsonValue(),
      stop: fc.jsonValue(),
      stream: fc.oneof(fc.boolean(), fc.jsonValue()),
      thinking: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )

  test.each<Path>(['/chat/completions', '/v1/messages', '/v1/messages/count_tokens'])('%s answers it', async (path) => {
    const transport = createTransport()
    await fc.assert(
      fc.asyncProperty(fc.oneof(requestLike, fc.jsonValue()), async (body) => {
        const response = await ask(transport, path, JSON.stringify(body) ?? '')
        expect([200, 400, 404]).toContain(response.status)
        expect((await response.text()).length).toBeGreaterThan(0)
      }),
      { numRuns: 500 },
    )
  })

  test.each<Path>(['/chat/completions', '/v1/messages'])(
    '%s answers what is nested deeper than the stack',
    async (path) => {
      const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
      const tool = (schema: string) =>
        path === '/v1/messages'
          ? `{"name":"f","input_schema":${schema}}`
          : `{"type":"function","function":{"name":"f","parameters":${schema}}}`
      const body = `{"model":"tools","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[${tool(`{"type":"object","x":${deep}}`)}]}`
      expect((await ask(createTransport(), path, body)).status).toBe(200)
    },
  )

  test.each<Path>(['/chat/completions', '/v1/messages'])(
    '%s refuses objects that pretend to be strings',
    async (path) => {
      const trick = { toString: 1, valueOf: 1 }
      for (const body of [
        { ...say(path, 'echo', 'hi'), tool_choice: { type: trick }, tools: [{ type: trick }] },
        { ...say(path, 'echo', ''), messages: [{ role: trick }] },
      ]) {
        expect((await ask(createTransport(), path, body)).status).toBe(400)
      }
    },
  )
})
