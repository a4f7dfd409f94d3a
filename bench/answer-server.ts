// Answers every request itself, on the HTTP server of the gateway (`--server=own`) or on that of Bun (`--server=bun`): the
// same work but for the server. It reads the body as JSON, and answers with the reply of the fake upstream and seven headers.

import { HttpServer } from '../src/http/server/server.ts'
import { systemClock } from '../src/kernel/clock.ts'
import { Answer } from '../src/pipeline/answer.ts'
import { jsonReply } from './upstream-replies.ts'

const reply = jsonReply('chat')
const body = new Uint8Array(reply.subarray(reply.indexOf('\r\n\r\n') + 4))

/** As many headers as the gateway reads and writes. */
function answerHeaders(sent: Pick<Headers, 'get'>): Record<string, string> {
  for (const name of ['content-type', 'accept', 'x-api-key', 'anthropic-version', 'user-agent']) sent.get(name)
  return {
    'content-type': 'application/json',
    'x-request-id': 'req_0000000000000000000000',
    'request-id': 'req_0000000000000000000000',
    'x-tollgate-provider': 'fake',
    'x-tollgate-upstream-model': 'fake',
    'x-tollgate-attempts': '1',
    'x-authorized': String(sent.get('authorization') !== null),
  }
}

const isOwn = Bun.argv.includes('--server=own')

function startOwn(): number {
  const server = new HttpServer({
    host: '127.0.0.1',
    port: 0,
    sharesPort: false,
    clock: systemClock,
    idleSeconds: 60,
    connectionsMax: 10_000,
    requestsMax: 10_000,
    bodiesBytesMax: () => 2 ** 30,
    async serve(request) {
      JSON.parse(Buffer.from(await request.bytes()).toString())
      return new Answer(200, answerHeaders(request.headers), body)
    },
    onDefect(error) {
      throw error
    },
  })
  return server.port
}

function startBun(): number | undefined {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 255,
    async fetch(request) {
      JSON.parse(Buffer.from(await request.arrayBuffer()).toString())
      return new Response(body, { headers: answerHeaders(request.headers) })
    },
  })
  return server.port
}

console.log(`listening on http://127.0.0.1:${isOwn ? startOwn() : startBun()}`)
