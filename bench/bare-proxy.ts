// The yardstick: the least a Bun program can do and still do a gateway's JSON work. It parses and writes again every
// request and JSON reply; streams are passed through (`--streams=pass`) or parsed and written again event by event
// (`--streams=rewrite`), or read and handed on by JavaScript without a look at them (`--streams=loop`). No keys, limits,
// money or records: what those cost is the gateway's ratio to this. `--durable=FOLDER` writes two rows per request and
// syncs them to the disk before the answer ends: what any program pays that promises not to lose a charge.
// `--journal=FOLDER` does the same with a journal in front of the database.

import { openDurableRows, type WriteRow } from './durable-rows.ts'
import { UPSTREAM_MODEL } from './upstream-replies.ts'

type Fields = Record<string, unknown>

type Streams = 'pass' | 'loop' | 'rewrite'

function startBareProxy(upstreamUrl: string, streams: Streams, writeRow: WriteRow | undefined): void {
  let tokensSeen = 0

  async function handle(request: Request): Promise<Response> {
    const body = (await request.json()) as Fields
    const model = body.model
    body.model = UPSTREAM_MODEL
    const reply = await fetch(upstreamUrl + new URL(request.url).pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: request.headers.get('authorization') ?? '' },
      body: JSON.stringify(body),
    })
    const contentType = reply.headers.get('content-type') ?? ''
    if (contentType.startsWith('text/event-stream') && reply.body) {
      const stream = streamOf(reply.body, streams, model)
      return new Response(stream, { status: reply.status, headers: { 'content-type': contentType } })
    }
    const answer = (await reply.json()) as Fields
    answer.model = model
    const usage = answer.usage as Fields | undefined
    tokensSeen += Number(usage?.total_tokens ?? usage?.output_tokens ?? 0)
    if (writeRow) {
      const now = Date.now()
      await writeRow([Bun.randomUUIDv7(), now, 'key', String(model), reply.status, JSON.stringify(usage)])
    }
    return new Response(JSON.stringify(answer), {
      status: reply.status,
      headers: { 'content-type': 'application/json', 'x-tokens-seen': String(tokensSeen) },
    })
  }

  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 255, fetch: handle })
  console.log(`listening on ${server.url.origin}`)
}

function streamOf(upstream: ReadableStream<Uint8Array>, streams: Streams, model: unknown): ReadableStream<Uint8Array> {
  if (streams === 'pass') return upstream
  return streams === 'loop' ? handedOn(upstream) : rewritten(upstream, model)
}

/** As the gateway's own loop, without what it does to an event. */
function handedOn(upstream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = upstream.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        while ((controller.desiredSize ?? 0) > 0) {
          const { done, value } = await reader.read()
          if (done) return controller.close()
          controller.enqueue(value)
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 64 * 1024, size: (chunk) => chunk?.byteLength ?? 0 },
  )
}

function rewritten(upstream: ReadableStream<Uint8Array>, model: unknown): ReadableStream<Uint8Array> {
  const reader = upstream.getReader()
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  let unfinished = ''
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return controller.close()
        const events = (unfinished + decoder.decode(value, { stream: true })).split('\n\n')
        unfinished = events.pop() ?? ''
        if (events.length === 0) continue
        let text = ''
        for (const event of events) text += `${rewrittenEvent(event, model)}\n\n`
        return controller.enqueue(encoder.encode(text))
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

function rewrittenEvent(event: string, model: unknown): string {
  const data = event.indexOf('data: {')
  if (data < 0) return event
  const fields = JSON.parse(event.slice(data + 6)) as Fields
  if ('model' in fields) fields.model = model
  const message = fields.message as Fields | undefined
  if (message && 'model' in message) message.model = model
  return `${event.slice(0, data)}data: ${JSON.stringify(fields)}`
}

const [upstreamUrl = '', ...options] = Bun.argv.slice(2)
const optionOf = (name: string) => options.find((option) => option.startsWith(name))?.slice(name.length)
const [durable, journal] = [optionOf('--durable='), optionOf('--journal=')]
const writeRow = journal ? openDurableRows(journal, 'journal') : durable ? openDurableRows(durable) : undefined
startBareProxy(upstreamUrl, (optionOf('--streams=') ?? 'pass') as Streams, writeRow)
