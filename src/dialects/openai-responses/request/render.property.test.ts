import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyConversation, bodyWriter, expectSteadyPrefix } from '../../../../test/parts/any-conversation.ts'
import { noted, parseCut, parseWhole, requestId } from '../../../../test/parts/reply-notation.ts'
import { gpts, recorded, responsesTarget } from '../../../../test/parts/responses.ts'
import { openaiResponses } from '../index.ts'

const { renderRequest, parseStream } = openaiResponses.translation
const anyTarget = fc.constantFrom(...Object.values(gpts).map((rules) => responsesTarget(rules)))

const bodyOf = bodyWriter(renderRequest)

interface Part {
  type: string
  text?: string
  image_url?: string
  detail?: string
}
interface Item {
  type?: string
  role?: string
  content?: string | Part[]
  call_id?: string
  arguments?: string
  output?: string | Part[]
}
const bodyMembers = [
  ...['model', 'stream', 'store', 'include', 'max_output_tokens', 'reasoning', 'temperature', 'top_p', 'text'],
  ...['safety_identifier', 'tools', 'tool_choice', 'parallel_tool_calls', 'instructions', 'input'],
]
const partTypes = ['input_text', 'input_image', 'input_file']

function checkParts(content: string | Part[]): void {
  if (typeof content === 'string') return
  expect(content.length).toBeGreaterThan(0)
  for (const part of content) {
    expect(partTypes).toContain(part.type)
    expect(part.text).not.toBe('')
    if (part.type === 'input_image') expect(part.detail).toBe('auto')
  }
}

test('always sends a body that the provider accepts', () => {
  fc.assert(
    fc.property(anyConversation, anyTarget, (conversation, target) => {
      const body = JSON.parse(bodyOf(conversation, target)) as { input: Item[]; max_output_tokens: number }
      for (const name of Object.keys(body)) expect(bodyMembers).toContain(name)
      expect(body).toMatchObject({ model: 'gpt-x', stream: true, store: false })
      expect(body.max_output_tokens).toBeGreaterThanOrEqual(16)
      const open = new Set<string>()
      for (const item of body.input) {
        switch (item.type) {
          case 'function_call':
            JSON.parse(item.arguments ?? '')
            open.add(item.call_id ?? '')
            break
          case 'function_call_output':
            // Behind its call, and once.
            expect(open.delete(item.call_id ?? '')).toBe(true)
            checkParts(item.output ?? [])
            break
          case undefined:
            expect(['user', 'assistant', 'developer', 'system']).toContain(item.role ?? '')
            expect(item.content).not.toBe('')
            if (item.role === 'assistant') expect(item.content).toBeString()
            else expect(open.size).toBe(0)
            checkParts(item.content ?? [])
            break
          default:
            throw new Error(`an item of type ${item.type}`)
        }
      }
      expect(open.size).toBe(0)
    }),
    { numRuns: 300 },
  )
})

test('vector 99: the same history gives the same bytes, and a longer one begins with them', () => {
  expectSteadyPrefix(bodyOf, anyTarget)
})

test('vector 87: however a stream is cut, it says the same', () => {
  const parser = () => parseStream(responsesTarget(), requestId)
  const bytes = new TextEncoder().encode(recorded)
  const whole = noted(parseWhole(parser(), bytes))
  for (let cut = 1; cut < bytes.length; cut++) expect(noted(parseCut(parser(), bytes, [cut]))).toEqual(whole)
  const lines = new TextEncoder().encode(recorded.replaceAll('\n', '\r\n').replaceAll('data: ', 'data:'))
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(lines.length), { maxLength: 40 }), (places) => {
      const cuts = places.toSorted((a, b) => a - b)
      expect(noted(parseCut(parser(), lines, cuts))).toEqual(whole)
    }),
  )
})
