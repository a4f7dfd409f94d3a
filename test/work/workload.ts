// The requests whose work is counted, and a provider on the loopback that answers them at once and counts what it says.
// Each surface as bytes and translated, streamed and whole.

import { type Ask, askForReceipt, askKinds } from '../parts/crash-client.ts'
import { orderedWords, orderOf } from '../parts/crash-upstream.ts'
import { responses } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from '../parts/upstream.ts'

export interface Kind {
  readonly name: string
  readonly ask: Ask
}

const pieces = 20
/** Long enough to outweigh what is the same for every request. */
const piece = 'some words of an answer '.repeat(10)
const whole = piece.repeat(20)

const asked = [...askKinds, { surface: responses, model: 'test/responses' }, { surface: responses, model: 'test/chat' }]

export const kinds: readonly Kind[] = asked.flatMap(({ surface, model }) =>
  [false, true].map((stream) => ({
    name: `${surface.name} from ${model.slice('test/'.length)}, ${stream ? 'streamed' : 'whole'}`,
    ask: {
      surface,
      model,
      stream,
      order: { inputTokens: 7, outputTokens: 5, pieces: stream ? pieces : 1, pauseMs: 0 },
    },
  })),
)

export interface Provider {
  readonly url: string
  /** Bytes of all answers so far. */
  saidBytes(): number
  /** Answers wait until so many calls are there, and then all come at once. */
  gather(calls: number): void
  stop(): void
}

export function startProvider(): Provider {
  let saidBytes = 0
  let gathered = { left: 0, all: Promise.withResolvers<void>() }
  const answer = async (call: UpstreamCall, reply: UpstreamReply): Promise<void> => {
    if (gathered.left > 0) {
      if (--gathered.left === 0) gathered.all.resolve()
      await gathered.all.promise
    }
    const order = orderOf(call)
    const words = orderedWords(call, order)
    const wholeText = words.whole.replace('"hello"', JSON.stringify(whole))
    const say = async (text: string) => {
      saidBytes += text.length
      await reply.chunk(text)
    }
    if (call.json().stream !== true) {
      saidBytes += wholeText.length
      return await reply.send(200, { 'content-type': 'application/json' }, wholeText)
    }
    await reply.startStream()
    await say(words.opening)
    for (let at = 0; at < order.pieces; at++) {
      await say(words.says(piece))
      // An event each is a packet each, as a rule.
      await Bun.sleep(1)
    }
    await say(words.ending)
    await reply.finish()
  }
  const upstream = startUpstream(answer)
  return {
    url: upstream.url,
    saidBytes: () => saidBytes,
    gather(calls) {
      upstream.calls.length = 0
      gathered = { left: calls, all: Promise.withResolvers<void>() }
    },
    stop: () => upstream.stop(),
  }
}

const refusalsMax = 1000
const refusedPauseMs = 500

export interface Target {
  readonly url: string
  readonly key: string
}

/** So many at once, all of them to the end; answers with how often one was turned away or broken off and sent again. */
export async function send(target: Target, asks: readonly Ask[], atOnce: number): Promise<number> {
  let next = 0
  let refusals = 0
  const sendSome = async () => {
    for (let ask = asks[next++]; ask !== undefined; ask = asks[next++]) {
      for (;;) {
        const { end, status, text } = await askForReceipt(target, ask)
        if (end === 'complete') break
        // On a machine that is short of time the gateway says so, also in the middle of a stream.
        if ((status !== 503 && end !== 'failed') || refusals++ > refusalsMax)
          throw new Error(`a call came to nothing: ${end} ${status} ${text.slice(-300)}`)
        await Bun.sleep(refusedPauseMs)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sendSome))
  return refusals
}

export function mixed(count: number): readonly Ask[] {
  return Array.from({ length: count }, (_, at) => (kinds[at % kinds.length] as Kind).ask)
}
