// Recorded streams, broken off at random: at any byte, in any framing, by a clean end or a reset, on every way from
// provider to caller. Every answer that is not whole must end with an error; what looks whole must be whole.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '../parts/ask.ts'
import { failoverConfig, type Gateway, startGateway } from '../parts/gateway.ts'
import { chat, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../parts/upstream.ts'

const fixtures = join(import.meta.dir, '../fixtures')

interface Recording {
  readonly name: string
  readonly upstream: 'chat' | 'messages'
  /** Whether it is an event stream, or a whole answer. */
  readonly streams: boolean
  readonly bytes: Uint8Array
  /** Where the provider has said that the answer is whole; with fewer bytes it may not pass for one. */
  readonly wholeAt: number
}

/** Some chat hosts close behind their finish reason: nothing of the answer is missing then but the marker. */
const saysWhole = { chat: /"finish_reason":\s*"\w+"/g, messages: /"message_stop"/g }
const terminals = { chat: '[DONE]', messages: '"message_stop"' }

export function readRecordings(): readonly Recording[] {
  return (['chat', 'messages'] as const).flatMap((upstream) =>
    readdirSync(join(fixtures, upstream))
      .sort()
      .map((file) => {
        const bytes = new Uint8Array(readFileSync(join(fixtures, upstream, file)))
        const name = `${upstream}/${file}`
        const text = Buffer.from(bytes).toString('latin1')
        if (file.endsWith('.json')) {
          return { name, upstream, streams: false, bytes, wholeAt: text.lastIndexOf('}') + 1 }
        }
        const said = [...text.matchAll(saysWhole[upstream])].at(-1)
        if (!said || !text.includes(terminals[upstream])) throw new Error(`${file} has no end`)
        return { name, upstream, streams: true, bytes, wholeAt: said.index + said[0].length }
      }),
  )
}

const framings = ['chunked', 'sized', 'until close'] as const
const endings = ['proper end', 'close', 'reset'] as const

/** One random break. */
export interface Interruption {
  readonly recording: Recording
  /** Bytes of the recording that are sent. */
  readonly at: number
  readonly framing: (typeof framings)[number]
  readonly ending: (typeof endings)[number]
  /** Where the bytes are split into packets. */
  readonly split: number
  readonly surface: 'chat' | 'messages'
  readonly stream: boolean
}

/** A linear congruential generator: a seed names a run for ever. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

export function drawInterruption(recordings: readonly Recording[], random: () => number): Interruption {
  const pick = <Item>(list: readonly Item[]): Item => list[Math.floor(random() * list.length)] as Item
  const recording = pick(recordings)
  const at = Math.floor(random() * (recording.bytes.length + 1))
  // Between different dialects the provider always gets a request for a stream; otherwise for what the caller wants.
  const surface = recording.streams ? pick(['chat', 'messages'] as const) : recording.upstream
  const isSame = surface === recording.upstream
  return {
    recording,
    at,
    framing: pick(framings),
    ending: pick(endings),
    split: Math.floor(random() * (at + 1)),
    surface,
    stream: isSame ? recording.streams : random() < 0.5,
  }
}

/** `chat/azure.sse cut at 120 of 900, chunked, reset, messages surface, streamed` */
export function describeInterruption({ recording, at, framing, ending, surface, stream }: Interruption): string {
  const size = recording.bytes.length
  return `${recording.name} cut at ${at} of ${size}, ${framing}, ${ending}, ${surface} surface, ${stream ? 'streamed' : 'whole'}`
}

async function sendPart({ recording, at, framing, ending, split }: Interruption, reply: UpstreamReply): Promise<void> {
  const sent = recording.bytes.subarray(0, at)
  const pieces = [sent.subarray(0, split), sent.subarray(split)].filter((piece) => piece.length > 0)
  const head = { chunked: 'transfer-encoding: chunked', sized: `content-length: ${recording.bytes.length}` }
  const framed = framing === 'until close' ? 'connection: close' : head[framing]
  const type = recording.streams ? 'text/event-stream' : 'application/json'
  await reply.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\n${framed}\r\n\r\n`)
  for (const piece of pieces) await (framing === 'chunked' ? reply.chunk(piece) : reply.write(piece))
  if (ending === 'reset') return reply.reset()
  if (framing === 'chunked' && ending === 'proper end') return reply.finish()
  reply.cut()
}

/** Whether nothing is wrong with how the connection ends. */
function isProper({ framing, ending }: Interruption): boolean {
  return ending === 'proper end' || (framing !== 'chunked' && ending === 'close')
}

/** The caller's knowledge: that the answer is whole, that it is not, or, which must never happen, nothing. */
export type Verdict = 'whole' | 'reported' | 'silent'

export interface InterruptionLab {
  /** The verdict on an interruption; `violation` = a forbidden result. */
  run(interruption: Interruption): Promise<{ readonly verdict: Verdict; readonly violation: string | undefined }>
  stop(): Promise<void>
}

const surfaces: Readonly<Record<Interruption['surface'], TestSurface>> = { chat, messages }

export async function startLab(): Promise<InterruptionLab> {
  const running = new Map<string, Interruption>()
  const upstream: Upstream = startUpstream((call, reply) => {
    upstream.calls.length = 0
    const interruption = running.get(JSON.stringify(call.json().messages).replace(/\D/g, ''))
    return interruption ? sendPart(interruption, reply) : reply.json(500, {})
  })
  const gateway = await startGateway({ config: failoverConfig([upstream.url]) })
  let count = 0
  return {
    async run(interruption) {
      const id = String(++count)
      running.set(id, interruption)
      const { verdict, text } = await answerTo(gateway, interruption, id)
      running.delete(id)
      const isMadeUp = verdict === 'whole' && interruption.at < interruption.recording.wholeAt
      const isLost =
        verdict === 'reported' && interruption.at === interruption.recording.bytes.length && isProper(interruption)
      const violation =
        verdict === 'silent' ? 'silent' : isMadeUp ? 'a made-up ending' : isLost ? 'a whole answer lost' : undefined
      return {
        verdict,
        violation: violation && `${violation}: ${describeInterruption(interruption)}\n${text.slice(-400)}`,
      }
    },
    async stop() {
      await gateway.stop()
      upstream.stop()
    },
  }
}

async function answerTo(
  gateway: Gateway,
  interruption: Interruption,
  id: string,
): Promise<{ verdict: Verdict; text: string }> {
  const surface = surfaces[interruption.surface]
  const body = {
    model: `test/${interruption.recording.upstream}`,
    stream: interruption.stream,
    max_tokens: 500,
    messages: [{ role: 'user', content: id }],
  }
  const response = await post(gateway, surface.path, body, surface.headers)
  const text = await response.text()
  return { text, verdict: verdictOf(response.status, text, interruption) }
}

function verdictOf(status: number, text: string, { surface, stream }: Interruption): Verdict {
  if (status !== 200) return text.includes('"NOT_FOUND"') ? 'reported' : 'silent'
  if (!stream) return isJson(text) ? 'whole' : 'silent'
  const last =
    text
      .trimEnd()
      .split(/\r?\n\r?\n/)
      .at(-1) ?? ''
  // OVERLOADED: the charge could not be recorded in time.
  if (last.includes('"error"') && /"(?:STREAM_INTERRUPTED|OVERLOADED)"/.test(last)) return 'reported'
  return last.includes(terminals[surface]) ? 'whole' : 'silent'
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export interface InterruptionSummary {
  readonly counts: Readonly<Record<Verdict, number>>
  readonly violations: readonly string[]
}

export interface InterruptionOptions {
  readonly count: number
  readonly seed: number
  onProgress?(done: number, summary: InterruptionSummary): void
}

/** As many at once as keeps two cores busy. */
const workers = 16

export async function runInterruptions({ count, seed, onProgress }: InterruptionOptions): Promise<InterruptionSummary> {
  const random = seededRandom(seed)
  const recordings = readRecordings()
  const counts: Record<Verdict, number> = { whole: 0, reported: 0, silent: 0 }
  const violations: string[] = []
  const lab = await startLab()
  let begun = 0
  let done = 0
  const work = async (): Promise<void> => {
    while (begun++ < count) {
      const { verdict, violation } = await lab.run(drawInterruption(recordings, random))
      counts[verdict]++
      if (violation !== undefined) violations.push(violation)
      onProgress?.(++done, { counts, violations })
    }
  }
  try {
    await Promise.all(Array.from({ length: workers }, work))
  } finally {
    await lab.stop()
  }
  return { counts, violations }
}
