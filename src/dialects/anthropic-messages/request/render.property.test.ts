import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  assistant,
  call,
  models,
  renderMessagesBody,
  result,
  system,
  user,
} from '../../../../test/parts/translation.ts'
import type { Conversation, FunctionTool, Turn } from '../../canonical/conversation.ts'

const words = fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('', ' ', '\ud83d', '"', 'long text'))
const id = fc.oneof(
  fc.constantFrom('call_1', 'call_2', 'a:b|c', 'x'.repeat(70)),
  fc.string({ minLength: 1, maxLength: 8 }),
)
const args = fc.oneof(fc.constantFrom('', '{}', '{bad', '[1]', '{"n":12345678901234567890}'), fc.json({ maxDepth: 2 }))
const toolName = fc.constantFrom('f', 'a.b', 'a/b', 'y'.repeat(80))

/** The turns that one round adds to a history: the user, sometimes the system, an answer, and calls with results. */
const round: fc.Arbitrary<Turn[]> = fc
  .record({
    question: words,
    aside: fc.option(words, { nil: undefined }),
    answer: words,
    signature: fc.option(fc.constantFrom('sigA', 'sigB'), { nil: undefined }),
    calls: fc.array(fc.tuple(id, args, toolName), { maxLength: 3 }),
  })
  .map(({ question, aside, answer, signature, calls }) => [
    user(`q${question}`),
    ...(aside === undefined ? [] : [system(aside)]),
    assistant(
      ...(signature === undefined ? [] : [{ kind: 'thinking', text: answer, signature } as const]),
      // An answer of nothing is no turn at all, and what stood around it comes together.
      calls.length > 0 ? answer : `a${answer}`,
      ...calls.map(([callId, text, name]) => call(callId, text, name)),
    ),
    ...calls.map(([callId]) => user(result(callId, answer))),
    ...(calls.length > 0 ? [assistant(`done ${answer}`)] : []),
  ])

const tools: FunctionTool[] = ['f', 'a.b'].map((name) => ({ kind: 'function', name }))

const rendered = (turns: readonly Turn[], rules: object) => {
  const parts: Partial<Conversation> = { turns, tools, system: [{ kind: 'text', text: 'S' }] }
  return renderMessagesBody(parts, rules)
}

test('vector 99: the same history gives the same bytes, and a longer one begins with them', () => {
  fc.assert(
    fc.property(
      fc.array(round, { minLength: 1, maxLength: 6 }),
      fc.constantFrom(models.opus55, models.s45),
      (rounds, rules) => {
        const last = user('now')
        let before: string[] = []
        for (let length = 1; length <= rounds.length; length++) {
          const history = rounds.slice(0, length).flat()
          const { json, body } = rendered([...history, last], rules)
          expect(rendered([...history, last], rules).json).toBe(json)
          const head = json.slice(0, json.indexOf('"messages":['))
          // The last message is the question that an answer takes the place of in the longer history.
          const messages = body.messages.map((message: object) => JSON.stringify(message))
          expect([head, ...messages].slice(0, before.length)).toEqual(before)
          before = [head, ...messages.slice(0, -1)]
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('always sends a body that the provider accepts', () => {
  fc.assert(
    fc.property(fc.array(round, { minLength: 1, maxLength: 4 }), (rounds) => {
      const { body } = rendered([...rounds.flat(), user('now')], models.opus55)
      const ids = new Set<string>()
      let open: string[] = []
      let previous = ''
      for (const { role, content } of body.messages) {
        expect(content.length).toBeGreaterThan(0)
        const results = content.filter(({ type }: { type: string }) => type === 'tool_result')
        // Results first, all of them, and only directly behind their calls.
        expect(content.slice(0, results.length)).toEqual(results)
        if (role === 'user') expect(results.map((one: { tool_use_id: string }) => one.tool_use_id).sort()).toEqual(open)
        if (role === 'user') open = []
        if (role === 'system') expect(previous).toBe('user')
        for (const one of content) {
          if (one.type === 'text') expect(one.text.trim()).not.toBe('')
          if (one.type !== 'tool_use') continue
          expect(one.id).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
          expect(one.name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
          expect(ids.has(one.id)).toBe(false)
          ids.add(one.id)
          open = [...open, one.id].sort()
        }
        previous = role
      }
    }),
  )
})
