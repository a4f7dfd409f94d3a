// A client that keeps what it received, even if the gateway dies in the middle. Whether an answer is complete is decided
// by its bytes alone, as in a real client.

import { parseUsd } from '../../src/kernel/money.ts'
import { costOf, type Order, promptOf } from './crash-upstream.ts'
import { chat, messages, type TestSurface } from './surfaces.ts'

export interface Receipt {
  /** undefined = not even headers came. */
  readonly requestId: string | undefined
  readonly status: number | undefined
  /** complete: all of it was seen · refused: a failure in place of an answer · failed: an error event after content ·
   *  left: the client went · cut: the connection ended in the middle of it. */
  readonly end: 'complete' | 'refused' | 'failed' | 'left' | 'cut'
  /** The cost in the answer, in nano-dollars; undefined = none. */
  readonly quoted: bigint | undefined
  /** The cost if it completes. */
  readonly expected: bigint
  readonly headers: Headers | undefined
  readonly text: string
}

/** One call: which surface it comes in by, which model it names, and how. */
export interface Ask {
  readonly surface: TestSurface
  readonly model: string
  readonly stream: boolean
  readonly order: Order
  /** The client goes after so many bytes; absent = it stays. */
  readonly leaveAfterBytes?: number
  /** Sent as its `Idempotency-Key`. */
  readonly idempotencyKey?: string
}

/** Every surface with every upstream dialect: both lanes. */
export const askKinds: readonly Pick<Ask, 'surface' | 'model'>[] = [chat, messages].flatMap((surface) => [
  { surface, model: 'test/chat' },
  { surface, model: 'test/messages' },
])

export interface AskHooks {
  /** Bytes of an answer have come. */
  onBytes?(): void
}

/** Never rejects: a dead gateway is an outcome here. */
export async function askForReceipt(
  { url, key }: { readonly url: string; readonly key: string },
  ask: Ask,
  { onBytes = () => {} }: AskHooks = {},
): Promise<Receipt> {
  const leave = new AbortController()
  let response: Response | undefined
  let text = ''
  try {
    response = await fetch(url + ask.surface.path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...ask.surface.headers,
        ...(ask.idempotencyKey !== undefined && { 'idempotency-key': ask.idempotencyKey }),
      },
      body: JSON.stringify(bodyOf(ask)),
      signal: leave.signal,
    })
    const decoder = new TextDecoder()
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes, { stream: true })
      onBytes()
      if (text.length >= (ask.leaveAfterBytes ?? Number.POSITIVE_INFINITY)) leave.abort()
    }
  } catch {
    // Events before that count.
  }
  return {
    requestId: response?.headers.get('x-request-id') ?? undefined,
    status: response?.status,
    end: endOf(ask, response, text, leave.signal.aborted),
    quoted: quotedCost(text),
    expected: costOf(ask.order),
    headers: response?.headers,
    text,
  }
}

function bodyOf({ surface, model, stream, order }: Ask): object {
  if (surface.name === 'responses') {
    return { model, stream, store: false, max_output_tokens: 2000, input: [{ role: 'user', content: promptOf(order) }] }
  }
  const body = { model, stream, max_tokens: 2000, messages: [{ role: 'user', content: promptOf(order) }] }
  return stream && surface.name === 'chat' ? { ...body, stream_options: { include_usage: true } } : body
}

function endOf({ surface, stream }: Ask, response: Response | undefined, text: string, left: boolean): Receipt['end'] {
  if (response === undefined) return 'cut'
  if (response.status !== 200) return 'refused'
  if (isWhole(surface, stream, text)) return 'complete'
  if (left) return 'left'
  return /^(data: \{"error"|event: error)/m.test(text) ? 'failed' : 'cut'
}

/** What only the end of a complete stream has. */
const streamEnds: Readonly<Record<TestSurface['name'], RegExp>> = {
  chat: /^data: \[DONE\]$/m,
  messages: /^event: message_stop$/m,
  responses: /^event: response\.(?:completed|incomplete)$/m,
  gemini: /^data: .*"finishReason":/m,
}

/** Whether all of an answer came, by its bytes alone. */
export function isWhole({ name }: TestSurface, stream: boolean, text: string): boolean {
  if (stream) return streamEnds[name].test(text)
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The digits as they were written: a number would already be rounded. The last one is the final one. */
function quotedCost(text: string): bigint | undefined {
  const digits = [...text.matchAll(/"cost":([0-9.]+)/g)].at(-1)?.[1]
  return digits === undefined ? undefined : parseUsd(digits)
}
