// Conditions that hold whatever a provider did: the client gets a legal answer or a legal error, none of the provider's
// headers, the charge is one the books can stand, memory is bounded, and no prototype has changed.

import { expect } from 'bun:test'
import { failureTable } from '../../src/kernel/failure.ts'
import { type SseEvent, SseReader } from '../../src/wire/sse.ts'
import { checkChatReply, checkChatStream } from '../conformance/checker/grammar-chat.ts'
import { checkGeminiReply, checkGeminiStream } from '../conformance/checker/grammar-gemini.ts'
import { checkMessagesReply, checkMessagesStream } from '../conformance/checker/grammar-messages.ts'
import { checkResponsesReply, checkResponsesStream } from '../conformance/checker/grammar-responses.ts'
import type { Violation } from '../conformance/checker/violation.ts'
import type { Answer, Path, Till } from '../money/till.ts'
import type { Outcome } from './turn.ts'

/** Everything the gateway itself may say in a header; the names of a provider are not among them. */
const ownHeaders = new Set([
  ...[
    'content-type',
    'content-length',
    'transfer-encoding',
    'date',
    'connection',
    'cache-control',
    'x-accel-buffering',
  ],
  ...['x-request-id', 'request-id', 'retry-after', 'retry-after-ms', 'x-should-retry'],
])

function expectOwnHeaders(headers: Headers): void {
  const foreign = [...headers.keys()].filter((name) => !ownHeaders.has(name) && !name.startsWith('x-tollgate-'))
  expect(foreign).toEqual([])
  expect(JSON.stringify([...headers])).not.toContain('canary')
}

interface ErrorBody {
  readonly type: string
  readonly message: string
  readonly code: keyof typeof failureTable
}

type FailedResponse = Omit<ErrorBody, 'code'> & { readonly metadata: Pick<ErrorBody, 'code'> }

interface Rules {
  /** Whether the last record of a stream is its proper end. */
  isDone(last: SseEvent): boolean
  /** The name of the event that ends a failed stream. */
  readonly failureEvent: string | undefined
  /** The error in the data of that event, with the code of the vocabulary. */
  errorIn(data: { readonly error: ErrorBody; readonly response: { readonly error: FailedResponse } }): ErrorBody
  checkStream(events: readonly SseEvent[]): Violation[]
  checkReply(reply: unknown): Violation[]
}

const rules: Readonly<Record<Path['surface']['name'], Rules>> = {
  chat: {
    isDone: ({ data }) => data === '[DONE]',
    failureEvent: undefined,
    errorIn: ({ error }) => error,
    checkStream: (events) => checkChatStream(events, { wantsUsage: true, level: 'dialect' }),
    checkReply: (reply) => checkChatReply(reply, 'dialect'),
  },
  messages: {
    isDone: ({ event }) => event === 'message_stop',
    failureEvent: 'error',
    errorIn: ({ error }) => error,
    checkStream: (events) => checkMessagesStream(events, 'dialect'),
    checkReply: (reply) => checkMessagesReply(reply, 'dialect'),
  },
  responses: {
    isDone: ({ event, data }) => data === '[DONE]' || event === 'response.completed' || event === 'response.incomplete',
    failureEvent: 'response.failed',
    errorIn: ({ response: { error } }) => ({ ...error, code: error.metadata.code }),
    checkStream: (events) => checkResponsesStream(events, 'dialect'),
    checkReply: (reply) => checkResponsesReply(reply, 'dialect'),
  },
  gemini: {
    isDone: ({ data }) => data.includes('"finishReason"') || data.includes('"blockReason"'),
    failureEvent: undefined,
    errorIn: geminiError,
    checkStream: (events) => checkGeminiStream(events, 'dialect'),
    checkReply: (reply) => checkGeminiReply(reply, 'dialect'),
  },
}

/** Its `code` is a status, and it has no types. */
function geminiError(data: object): ErrorBody {
  const { error } = data as { error: { message: string; details: { reason: ErrorBody['code'] }[] } }
  const code = error.details[0]?.reason ?? 'INTERNAL'
  return { code, message: error.message, type: failureTable[code].chatType }
}

/** An error of the vocabulary, as the surface's clients read it; `status` undefined = inside a stream. */
function expectError({ surface: { name } }: Path, status: number | undefined, text: string): void {
  const data = JSON.parse(text)
  const isOwnForm = status === undefined || name === 'gemini'
  const error = isOwnForm ? rules[name].errorIn(data) : (data.error as ErrorBody)
  const row = failureTable[error.code]
  expect(row).toBeDefined()
  if (status !== undefined) expect(row.status).toBe(status as never)
  expect(error.code).not.toBe('INTERNAL')
  expect(error.type).toBe(name === 'messages' ? row.messagesType : row.chatType)
  if (name === 'messages') expect(data.type).toBe('error')
  expect(error.message.length).toBeLessThan(5_000)
  expect(text).not.toContain('upstream-secret')
}

function streamOutcome(path: Path, text: string): Outcome {
  const { isDone, failureEvent, checkStream } = rules[path.surface.name]
  const events = new SseReader().push(new TextEncoder().encode(text))
  expect(text.endsWith('\n\n')).toBe(true)
  const last = events.at(-1)
  if (last === undefined) throw new Error('a stream without an event')
  if (isDone(last)) {
    expect(lawful(checkStream(events))).toEqual([])
    return 'answered'
  }
  if (failureEvent !== undefined) expect(last.event).toBe(failureEvent)
  expectError(path, undefined, last.data)
  expect(text).not.toMatch(/data: \[DONE\]|event: message_stop|event: response\.(completed|incomplete)|"finishReason"/)
  return events.length > 1 ? 'interrupted' : 'refused'
}

/** Arguments that a model wrote badly are its own; they pass as they are. */
function lawful(violations: readonly Violation[]): readonly Violation[] {
  return violations.filter(({ rule }) => rule !== 'tool-json' && rule !== 'arguments')
}

/** Where the dialects are the same the provider's own records pass, and what is inside them is between it and the client. */
function isTranslated({ surface, provider }: Path): boolean {
  return surface.name !== provider
}

export function outcomeOf(path: Path, { status, headers, text }: Answer): Outcome {
  expectOwnHeaders(headers)
  if (status !== 200) {
    expectError(path, status, text)
    return 'refused'
  }
  if (headers.get('content-type')?.startsWith('text/event-stream')) {
    if (isTranslated(path)) return streamOutcome(path, text)
    return byteStreamOutcome(path, text)
  }
  // The checkers go down into what they check, and would not come back from this.
  if (isTranslated(path) && !text.includes('['.repeat(10_000))) {
    const reply: unknown = JSON.parse(text)
    expect(lawful(rules[path.surface.name].checkReply(reply))).toEqual([])
  } else expect(text).toMatch(/^\s*\{/)
  return 'answered'
}

/** Only how it ends is ours. */
function byteStreamOutcome(path: Path, text: string): Outcome {
  const last = text.trimEnd().split('\n\n').at(-1) ?? ''
  const [, event = '', data = ''] = /^(?:event: (.*)\n)?data: (.*)$/s.exec(last) ?? []
  if (rules[path.surface.name].isDone({ event, data })) return 'answered'
  expectError(path, undefined, data)
  return text.includes('hello') ? 'interrupted' : 'refused'
}

/** Never negative, never above what was held, and nothing for nothing. */
export async function expectFairBooks(till: Till, answer: Answer, outcome: Outcome): Promise<void> {
  const { charge, held } = await till.line(answer.requestId)
  const charges = till.charges(answer.requestId)
  if (outcome === 'refused') expect(charges).toEqual([])
  if (outcome === 'answered') expect(charges).toHaveLength(1)
  for (const { amount } of charges) {
    expect(amount).toBeGreaterThanOrEqual(0n)
    expect(amount).toBeLessThanOrEqual(held ?? 0n)
    expect(charge).toBe(amount)
  }
}

const prototypes = [Object.prototype, Array.prototype, Function.prototype, String.prototype, Headers.prototype]
const namesBefore = prototypes.map((prototype) => Object.getOwnPropertyNames(prototype).sort())

export function expectPrototypesIntact(): void {
  expect(prototypes.map((prototype) => Object.getOwnPropertyNames(prototype).sort())).toEqual(namesBefore)
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
}

export function residentBytes(): number {
  Bun.gc(true)
  return process.memoryUsage.rss()
}
