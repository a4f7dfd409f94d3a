// The same recordings through the real gateway and real sockets: streams cut at a sample of places, and whole replies.
// The request says in its metadata, or in its text, which pass untouched, what the fake provider is to answer.

import { afterAll, describe, expect, test } from 'bun:test'
import { totalInputTokens } from '../../src/kernel/usage.ts'
import { ask as askGateway } from '../parts/ask.ts'
import { geminiConfig, startGateway, stopAll } from '../parts/gateway.ts'
import { chat, gemini, messages } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamCall } from '../parts/upstream.ts'
import { wantsStream } from '../parts/upstream-words.ts'
import {
  expectedBytes,
  type Recording,
  recordedBytes,
  streams,
  surfaceOf,
  surfaces,
  wholeReplies,
} from './recordings.ts'

const cutStep = 97

const upstream = startUpstream(async (call, reply) => {
  const { file, cut } = wantedBy(call)
  const recording = [...streams, ...wholeReplies].find((each) => each.file === file)
  if (!recording) throw new Error(`no recording ${file}`)
  const bytes = recordedBytes(recording)
  if (!wantsStream(call)) return await reply.send(200, { 'content-type': 'application/json' }, bytes)
  await reply.startStream({ 'set-cookie': 'a=b', 'openai-organization': 'org-secret', 'x-request-id': 'upstream-id' })
  await reply.chunk(bytes.subarray(0, cut))
  // The gateway gets its turn to read before the rest is sent.
  await Bun.sleep(1)
  await reply.chunk(bytes.subarray(cut))
  await reply.finish()
})
// Searches are offered, and cost nothing.
const config = geminiConfig(upstream.url).replaceAll('cache_write_1h: "2.00"', '$&, web_search: "0"')
const gateway = await startGateway({ config })

afterAll(() => stopAll(gateway, upstream))

interface Wanted {
  readonly file: string
  readonly cut: number
}

function wantedBy(call: UpstreamCall): Wanted {
  const { metadata, contents } = call.json() as { metadata?: Wanted; contents?: { parts: { text: string }[] }[] }
  return metadata ?? (JSON.parse(contents?.[0]?.parts[0]?.text ?? '') as Wanted)
}

interface Asked {
  readonly stream: boolean
  readonly wantsUsage?: boolean
  readonly cut?: number
}

function ask(recording: Recording, { stream, wantsUsage = false, cut = 0 }: Asked): Promise<Response> {
  const surface = surfaceOf(recording)
  const { model } = surfaces[surface]
  const wanted: Wanted = { file: recording.file, cut }
  if (surface === 'gemini') {
    const contents = [{ role: 'user', parts: [{ text: JSON.stringify(wanted) }] }]
    return askGateway(gateway, gemini, { model, stream, contents, generationConfig: { maxOutputTokens: 1000 } })
  }
  return askGateway(gateway, surface === 'chat' ? chat : messages, {
    model,
    messages: [{ role: 'user', content: 'hi' }],
    max_tokens: 1000,
    // The tokens that a search adds are not in the body.
    ...(recording.file.includes('server-tools') && { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
    ...(surface === 'chat' && stream && { stream_options: { include_usage: wantsUsage } }),
    stream,
    metadata: wanted,
  })
}

function expectRecorded(response: Response, { usage, cost }: Recording): void {
  const id = response.headers.get('x-request-id')
  const record = gateway.logged().find((line) => line.request_id === id)
  expect(record).toMatchObject({
    status: 200,
    input_tokens: totalInputTokens(usage),
    output_tokens: usage.outputTokens,
    cost,
  })
}

describe('a stream', () => {
  for (const recording of streams) {
    // On the messages surface usage is always part of the stream.
    const usageOptions = surfaceOf(recording) === 'chat' ? [true, false] : [true]
    for (const wantsUsage of usageOptions) {
      const how = wantsUsage ? 'with usage' : 'without usage'
      test(`passes through sockets as recorded, ${recording.file} ${how}`, async () => {
        const length = recordedBytes(recording).length
        const cuts = Array.from({ length: Math.ceil(length / cutStep) }, (_, at) => 1 + at * cutStep)
        const expected = expectedBytes(recording, wantsUsage).toString()
        for (let at = 0; at < cuts.length; at += 8) {
          await Promise.all(
            cuts.slice(at, at + 8).map(async (cut) => {
              const response = await ask(recording, { stream: true, wantsUsage, cut })
              expect(response.status).toBe(200)
              expect(`cut at ${cut}\n${Buffer.from(await response.bytes())}`).toBe(`cut at ${cut}\n${expected}`)
              expectRecorded(response, recording)
            }),
          )
        }
      })
    }
  }

  test('has headers of our own making and none of the provider', async () => {
    const response = await ask(streams[0] as Recording, { stream: true, cut: 500 })
    await response.bytes()
    const { headers } = response
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(headers.get('cache-control')).toBe('no-cache, no-transform')
    expect(headers.get('x-accel-buffering')).toBe('no')
    expect(headers.get('x-tollgate-provider')).toBe('chatty')
    expect(headers.get('x-tollgate-upstream-model')).toBe('upstream-chat-1')
    expect(headers.get('x-tollgate-attempts')).toBe('1')
    expect(headers.get('x-request-id')).toMatch(/^req_[0-9A-Z]{26}$/)
    expect(headers.get('request-id')).toBe(headers.get('x-request-id'))
    for (const name of ['set-cookie', 'openai-organization', 'content-length']) expect(headers.get(name)).toBeNull()
  })
})

describe('a whole reply', () => {
  for (const recording of wholeReplies) {
    test(`passes as recorded but for model and cost, ${recording.file}`, async () => {
      const response = await ask(recording, { stream: false })
      expect(response.status).toBe(200)
      expect(Buffer.from(await response.bytes()).toString()).toBe(expectedBytes(recording, true).toString())
      expect(response.headers.get('content-type')).toBe('application/json')
      expect(response.headers.get('x-tollgate-cost')).toBe(recording.cost)
      expectRecorded(response, recording)
    })
  }
})
