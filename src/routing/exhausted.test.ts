import { expect, test } from 'bun:test'
import { openaiChat } from '../dialects/openai-chat/index.ts'
import type { Candidate } from './candidate.ts'
import { Exhausted, exhaustedFailure } from './exhausted.ts'
import { classifyFault } from './fault.ts'

test('a refusal without a word, or cut off before it, is told as such', () => {
  const candidate = { provider: { id: 'acme' }, dialect: openaiChat } as unknown as Candidate
  const fault = classifyFault(openaiChat.readFault(400, new Headers(), ''))
  const failure = exhaustedFailure('acme/large', new Exhausted([{ candidate, fault }]))
  expect(openaiChat.renderFailure(failure, 'req_1')).toContain(
    'Provider acme refused the request (400): It did not say why.',
  )
})
