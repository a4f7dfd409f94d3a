// Finds out what callers read of each answer in each direction from provider to caller.

import type { UpstreamHandler } from '../parts/upstream.ts'
import { wantsStream } from '../parts/upstream-words.ts'
import { type DialectName, dialectOfPath, type Pair, type Stage, withModel } from './cells.ts'
import { askBody, clientsOf, type Mode, meaningOf, readByClient, readReply, withValues } from './replies/read-reply.ts'
import { isMadeOf, type Meaning, type ProviderBytes, type ReplyFixture } from './replies/reply-fixture.ts'
import type { Cell } from './request-cells.ts'

/** Answers each call in its dialect, streamed or whole as it was asked. */
export function answerWith(
  bytesOf: (dialect: DialectName) => ProviderBytes | undefined,
  cuts: readonly number[] = [],
): UpstreamHandler {
  return async (call, reply) => {
    const bytes = bytesOf(dialectOfPath(call.path))
    if (!bytes) throw new Error(`no answer for ${call.path}`)
    if (!wantsStream(call)) return reply.send(200, { 'content-type': 'application/json' }, bytes.whole)
    await reply.startStream()
    const stream = Buffer.from(bytes.stream)
    for (const [at, cut] of [...cuts, stream.length].entries()) {
      if (at > 0) await Bun.sleep(0)
      await reply.chunk(stream.subarray(at === 0 ? 0 : cuts[at - 1], cut))
    }
    await reply.finish()
  }
}

export interface Reading {
  /** `bytes`, or the name of a client. */
  readonly by: string
  readonly mode: Mode
  /** Faults of the answer; empty = all is well. */
  readonly wrong: readonly string[]
}

/** undefined: the pair cannot have such an answer. */
export async function readings(stage: Stage, of: Pair, fixture: ReplyFixture): Promise<Reading[] | undefined> {
  const pair = withModel(of, fixture.models?.[of.upstream] ?? of.upstreamModel)
  // A model that lacks something shows nothing where the provider's own words pass as they are.
  const passes = pair.surface === pair.upstream
  if (!fixture[pair.upstream] || (passes && isMadeOf(fixture, pair.upstream))) return undefined
  const bodies = [{ stream: true }, { stream: false }].map((mode) => ({ mode, body: askBody(pair, fixture, mode) }))
  if (bodies.some(({ body }) => !body)) return undefined
  stage.upstream.handle(answerWith((dialect) => fixture[dialect]))
  const list: Reading[] = []
  for (const { mode, body = {} } of bodies) {
    list.push({ by: 'bytes', mode, wrong: await readBytes(stage, pair, fixture, { body, mode }) })
    for (const client of mode.stream && fixture.beyondAccumulators ? [] : clientsOf[pair.surface]) {
      const content = await readByClient(stage, client, { model: pair.model, ...body }, mode)
      const received = knownToClient(withValues(meaningOf(content)), pair, mode)
      const meant = knownToClient(withValues(saidOn(pair, fixture)), pair, mode)
      list.push({ by: client, mode, wrong: differences(received, meant) })
    }
  }
  return list
}

async function readBytes(
  stage: Stage,
  pair: Pair,
  fixture: ReplyFixture,
  { body, mode }: { readonly body: object; readonly mode: Mode },
): Promise<string[]> {
  const response = await stage.ask(pair, body)
  const text = await response.text()
  if (response.status !== 200) return [`status ${response.status}: ${text}`]
  const { content, violations } = readReply(pair.surface, text, mode)
  const meant = meaningOf(content)
  const says = saidOn(pair, fixture)
  // Gemini's calls, and those of a whole Messages reply, hold the arguments as an object, whose text the reader cannot give.
  const isObject = pair.surface === 'gemini' || (pair.surface === 'messages' && !mode.stream)
  const wrong = isObject ? differences(withValues(meant), withValues(says)) : differences(meant, says)
  for (const call of isObject ? fixture.says.calls : []) {
    if (!text.includes(call.arguments)) wrong.push(`the text of the arguments ${call.arguments}`)
  }
  if (content.models.join() !== pair.model) wrong.push(`the model ${content.models}`)
  const isTheirs = fixture.untidy && pair.surface === pair.upstream
  if (!isTheirs) wrong.push(...violations.map(({ rule, what }) => `${rule}: ${what}`))
  return wrong
}

/** Responses and Gemini have no word for the sequence that matched, and Gemini counts no cache writes of their own. */
function saidOn({ surface }: Pair, { says }: ReplyFixture): Meaning {
  if (surface !== 'responses' && surface !== 'gemini') return says
  const { usage } = says
  const input = usage.input + usage.cacheWrite
  return { ...says, stopSequence: undefined, usage: surface === 'gemini' ? { ...usage, input, cacheWrite: 0 } : usage }
}

/** Accumulators keep the last value of members they do not know, and drop what the end adds to usage. */
function knownToClient(meant: Meaning, { surface }: Pair, { stream }: Mode): Meaning {
  if (!stream) return meant
  return surface === 'chat' ? { ...meant, reasoning: '' } : { ...meant, usage: { ...meant.usage, cost: undefined } }
}

function differences(received: Meaning, meant: Meaning): string[] {
  return Object.entries(meant).flatMap(([name, wanted]) => {
    const got = received[name as keyof Meaning]
    return Bun.deepEquals(got, wanted) ? [] : `${name}: ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`
  })
}

export function cellOfReadings(pair: Pair, fixture: ReplyFixture, list: readonly Reading[] | undefined): Cell {
  if (!list) return { mark: '–', notes: [] }
  const wrong = list.flatMap((reading) => reading.wrong)
  if (wrong.length > 0) return { mark: 'lost', notes: wrong }
  return { mark: isMadeOf(fixture, pair.upstream) ? 'E' : 'P', notes: [] }
}
