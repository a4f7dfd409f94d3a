// A provider that does what the prompt says: so many pieces at such a pace, and so many tokens on the bill. The one who
// asks therefore knows what the answer must cost before it comes.

import { startUpstream, type Upstream, type UpstreamCall, type UpstreamReply } from './upstream.ts'
import { type Words, wordsFor } from './upstream-words.ts'

/** The shape of one answer. */
export interface Order {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly pieces: number
  readonly pauseMs: number
}

export function promptOf({ inputTokens, outputTokens, pieces, pauseMs }: Order): string {
  return `order:${inputTokens}:${outputTokens}:${pieces}:${pauseMs}`
}

export function orderOf(call: UpstreamCall): Order {
  const text = new TextDecoder().decode(call.body)
  const [, ...numbers] = /order:(\d+):(\d+):(\d+):(\d+)/.exec(text) ?? []
  const [inputTokens = 1, outputTokens = 1, pieces = 1, pauseMs = 0] = numbers.map(Number)
  return { inputTokens, outputTokens, pieces, pauseMs }
}

/** $1.00 and $2.00 per million tokens, as in upstreamConfig: 1,000 and 2,000 nano-dollars per token. */
export function costOf({ inputTokens, outputTokens }: Order): bigint {
  return 1000n * BigInt(inputTokens) + 2000n * BigInt(outputTokens)
}

/** The words of the call's dialect with the usage of the order: they are written for 3 tokens in and 2 out. */
export function orderedWords(call: UpstreamCall, { inputTokens, outputTokens }: Order): Words {
  const words = wordsFor(call)
  const rewrite = (text: string) =>
    text
      .replace('"prompt_tokens":3', `"prompt_tokens":${inputTokens}`)
      .replace('"completion_tokens":2', `"completion_tokens":${outputTokens}`)
      .replace('"total_tokens":5', `"total_tokens":${inputTokens + outputTokens}`)
      .replace('"input_tokens":3', `"input_tokens":${inputTokens}`)
      .replace('"output_tokens":2', `"output_tokens":${outputTokens}`)
  return { ...words, opening: rewrite(words.opening), ending: rewrite(words.ending), whole: rewrite(words.whole) }
}

export interface CrashUpstream {
  readonly upstream: Upstream
  /** While closed, answers stop before their end and wait. */
  closeGate(): void
  openGate(): void
  /** How many answers wait at the closed gate. */
  atGate(): number
  /** From now on a stream ends only while more than this many are open; 0 = whenever it is complete. */
  keepOpen(streams: number): void
}

export function startCrashUpstream(): CrashUpstream {
  let gate: PromiseWithResolvers<void> | undefined
  let atGate = 0
  let open = 0
  let openLeast = 0
  /** Complete but for their end, oldest first. */
  const ending = new Set<() => void>()
  const endOldest = () => {
    for (const end of ending) {
      if (open <= openLeast) return
      open--
      ending.delete(end)
      end()
    }
  }
  const mayEnd = async (call: UpstreamCall): Promise<void> => {
    const turn = Promise.withResolvers<void>()
    ending.add(turn.resolve)
    endOldest()
    await Promise.race([turn.promise, call.closed])
    // The connection closed first.
    if (ending.delete(turn.resolve)) open--
  }
  const answer = async (call: UpstreamCall, reply: UpstreamReply): Promise<void> => {
    const order = orderOf(call)
    const words = orderedWords(call, order)
    const isStreamed = call.json().stream === true
    if (isStreamed) {
      open++
      endOldest()
      await reply.startStream()
      await reply.chunk(words.opening)
    }
    for (let piece = 0; piece < order.pieces && !call.isClosed(); piece++) {
      if (isStreamed) await reply.chunk(words.says(`word${piece} `))
      await Bun.sleep(order.pauseMs)
    }
    if (gate) {
      atGate++
      await gate.promise
      atGate--
    }
    if (isStreamed) await mayEnd(call)
    if (!isStreamed) return await reply.send(200, { 'content-type': 'application/json' }, words.whole)
    await reply.chunk(words.ending)
    await reply.finish()
  }
  return {
    upstream: startUpstream(answer),
    closeGate() {
      gate ??= Promise.withResolvers()
    },
    openGate() {
      gate?.resolve()
      gate = undefined
    },
    atGate: () => atGate,
    keepOpen(streams) {
      openLeast = streams
      endOldest()
    },
  }
}
