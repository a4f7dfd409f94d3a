import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { anyConversation, bodyWriter, expectSteadyPrefix } from '../../../../test/parts/any-conversation.ts'
import { geminis, geminiTarget } from '../../../../test/parts/gemini.ts'
import { gemini } from '../index.ts'

const anyTarget = fc.constantFrom(...Object.values(geminis).map((rules) => geminiTarget(rules)))

const bodyOf = bodyWriter(gemini.translation.renderRequest)

interface Part {
  text?: string
  thought?: true
  thoughtSignature?: string
  inlineData?: { mimeType: string; data: string }
  fileData?: { mimeType?: string; fileUri: string }
  functionCall?: { id: string; name: string; args: object }
  functionResponse?: { id: string; name: string; response: object }
}
const kinds = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse']
const bodyMembers = ['systemInstruction', 'tools', 'toolConfig', 'generationConfig', 'serviceTier', 'contents']

test('any conversation is rendered in a form that the provider accepts', () => {
  fc.assert(
    fc.property(anyConversation, anyTarget, (conversation, target) => {
      const body = JSON.parse(bodyOf(conversation, target)) as { contents: { role: string; parts: Part[] }[] }
      for (const name of Object.keys(body)) expect(bodyMembers).toContain(name)
      let open: string[] = []
      for (const [i, { role, parts }] of body.contents.entries()) {
        // The user first and last, and the two in turns.
        expect(role).toBe(i % 2 === 0 ? 'user' : 'model')
        expect(parts.length).toBeGreaterThan(0)
        for (const part of parts) {
          expect(Object.keys(part).filter((name) => kinds.includes(name))).toHaveLength(1)
          expect(part.text).not.toBe('')
        }
        const responses = parts.flatMap(({ functionResponse }) => functionResponse ?? [])
        const calls = parts.flatMap(({ functionCall }) => functionCall ?? [])
        expect(role === 'user' ? calls : responses).toEqual([])
        // One response for each call of the content before, in their order, in front of everything else.
        if (role === 'user') expect(responses.map(({ id, name }) => `${id} ${name}`)).toEqual(open)
        expect(parts.slice(0, responses.length).every((part) => part.functionResponse)).toBe(true)
        open = calls.map(({ id, name }) => `${id} ${name}`)
        for (const { args } of calls) expect(Array.isArray(args) || typeof args !== 'object').toBe(false)
        const signed = parts
          .filter(({ functionCall }) => functionCall)
          .map((part) => part.thoughtSignature !== undefined)
        const isNeeded = target.rules === geminis.g3
        expect(signed).toEqual(calls.map((_, n) => isNeeded && n === 0))
      }
      expect(open).toEqual([])
      expect(body.contents.length % 2).toBe(1)
    }),
    { numRuns: 300 },
  )
})

test('vector 99: the same history gives the same bytes, and a longer one begins with them', () => {
  expectSteadyPrefix(bodyOf, anyTarget)
})

test('the path names the model, and says whether to stream', () => {
  expect(gemini.generationPath('gemini-3-pro', true)).toBe('/models/gemini-3-pro:streamGenerateContent?alt=sse')
  expect(gemini.generationPath('gemini-3-pro', false)).toBe('/models/gemini-3-pro:generateContent')
})
