// Finds out what callers get when a provider fails.

import { wantsStream } from '../parts/upstream-words.ts'
import { dialectOfPath, type Pair, type Stage } from './cells.ts'
import { listOf, membersOf } from './checker/violation.ts'
import { type FaultFixture, type FaultOutcome, wordsOf } from './replies/faults.ts'
import { type Mode, readReply } from './replies/read-reply.ts'

export interface ReadFault {
  readonly outcome: FaultOutcome
  /** The message. */
  readonly said: string
  /** Faults of the answer. */
  readonly wrong: readonly string[]
  readonly headers: Headers
}

export async function readFault(stage: Stage, pair: Pair, fixture: FaultFixture, { stream }: Mode): Promise<ReadFault> {
  const begin = provideFault(stage, fixture, { stream })
  const response = await stage.ask(pair, faultBody({ stream }, pair))
  begin()
  const { headers } = response
  const text = await response.text()
  if (response.status !== 200) {
    const error = membersOf(membersOf(JSON.parse(text)).error)
    const isGemini = pair.surface === 'gemini'
    const type = isGemini ? error.status : error.type
    const code = isGemini ? membersOf(listOf(error.details)[0]).reason : error.code
    const wrong = typeof error.message === 'string' && typeof type === 'string' ? [] : [text]
    return { outcome: `${response.status} ${code}`, said: String(error.message), wrong, headers }
  }
  if (!stream) return { outcome: '200 OK', said: '', wrong: [text], headers }
  const { content, violations } = readReply(pair.surface, text, { stream })
  const terminal = terminals[pair.surface]
  return {
    outcome: `stream ${content.error?.code}`,
    said: String(content.error?.message),
    // The opening is the fake provider's own, which is not as tidy as a real one's; the ending is what counts here.
    wrong: [
      ...violations.filter(({ rule }) => endRules.includes(rule)).map(({ rule, what }) => `${rule}: ${what}`),
      ...(text.includes(terminal) ? [`a false ${terminal}`] : []),
      ...(content.text === 'half' ? [] : [`the text ${content.text}`]),
    ],
    headers,
  }
}

/** Lets the provider fail in this way; answers with what to call when the caller has the head of its answer. */
export function provideFault(stage: Stage, fixture: FaultFixture, { stream }: Mode): () => void {
  stage.calm()
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  // The head of a whole reply comes when all is over.
  if (!stream) resolve()
  stage.upstream.handle((call, reply) => {
    const asked = { stream: wantsStream(call), begun }
    return fixture.answer(reply, wordsOf[dialectOfPath(call.path)], asked)
  })
  return resolve
}

const terminals = {
  chat: '[DONE]',
  messages: 'message_stop',
  responses: 'response.completed',
  gemini: '"finishReason"',
}

export function faultBody({ stream }: Mode, { surface }: Pick<Pair, 'surface'>): object {
  if (surface === 'responses') return { max_output_tokens: 9, input: 'go', stream }
  if (surface === 'gemini')
    return { contents: [{ parts: [{ text: 'go' }] }], generationConfig: { maxOutputTokens: 9 }, stream }
  return { max_tokens: 9, messages: [{ role: 'user', content: 'go' }], stream }
}

const endRules = ['after-end', 'done-last', 'stop-last', 'error-keys', 'terminal']
