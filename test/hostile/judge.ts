// What must hold whatever a provider did: the client gets a legal answer or a legal error, nothing of the provider's
// headers, the charge is one the books can stand, memory is bounded, and no prototype has changed.

import { expect } from 'bun:test'
import { failureTable } from '../../src/kernel/failure.ts'
import { type SseEvent, SseReader } from '../../src/wire/sse.ts'
import { checkChatReply, checkChatStream } from '../conformance/checker/grammar-chat.ts'
import { checkMessagesReply, checkMessagesStream } from '../conformance/checker/grammar-messages.ts'
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
  readonly type?: string
  readonly error: { readonly type: string; readonly message: string; readonly code: keyof typeof failureTable }
}

/** An error of the vocabulary, as the surface's clients read it; `status` undefined = inside a stream. */
function expectError(path: Path, status: number | undefined, text: string): void {
  const { type, error } = JSON.parse(text) as ErrorBody
  const row = failureTable[error.code]
  expect(row).toBeDefined()
  if (status !== undefined) expect(row.status).toBe(status as never)
  expect(error.code).not.toBe('INTERNAL')
  expect(error.type).toBe(path.surface.name === 'chat' ? row.chatType : row.messageType)
  if (path.surface.name === 'messages') expect(type).toBe('error')
  expect(error.message.length).toBeLessThan(5_000)
  expect(text).not.toContain('upstream-secret')
}

function streamOutcome(path: Path, text: string): Outcome {
  const events = new SseReader().push(new TextEncoder().encode(text))
  expect(text.endsWith('\n\n')).toBe(true)
  const last = events.at(-1)
  if (last === undefined) throw new Error('a stream without an event')
  const isDone = path.surface.name === 'chat' ? last.data === '[DONE]' : last.event === 'message_stop'
  if (isDone) {
    expect(lawful(violationsOf(path, events))).toEqual([])
    return 'answered'
  }
  if (path.surface.name === 'messages') expect(last.event).toBe('error')
  expectError(path, undefined, last.data)
  expect(text).not.toMatch(/data: \[DONE\]|event: message_stop/)
  return events.length > 1 ? 'interrupted' : 'refused'
}

function violationsOf({ surface }: Path, events: readonly SseEvent[]): Violation[] {
  if (surface.name === 'chat') return checkChatStream(events, { wantsUsage: true, level: 'dialect' })
  return checkMessagesStream(events, 'dialect')
}

/** Arguments that a model wrote badly are its own; they pass as they are. */
function lawful(violations: readonly Violation[]): readonly Violation[] {
  return violations.filter(({ rule }) => rule !== 'tool-json')
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
    const check = path.surface.name === 'chat' ? checkChatReply : checkMessagesReply
    expect(lawful(check(reply, 'dialect'))).toEqual([])
  } else expect(text).toMatch(/^\s*\{/)
  return 'answered'
}

/** Only how it ends is ours. */
function byteStreamOutcome(path: Path, text: string): Outcome {
  const last = text.trimEnd().split('\n\n').at(-1) ?? ''
  const isDone = path.surface.name === 'chat' ? last.endsWith('data: [DONE]') : /^event: message_stop/m.test(last)
  if (isDone) return 'answered'
  const [, json = ''] = /^(?:event: error\n)?data: (\{.*\})$/s.exec(last) ?? []
  expectError(path, undefined, json)
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
