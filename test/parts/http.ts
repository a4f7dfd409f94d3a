// Requests and answers for tests that call a handler without a server, and a server for those that call one.

import { HttpServer } from '../../src/http/server/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { Answer, type AnswerStream } from '../../src/pipeline/answer.ts'
import type { ClientRequest } from '../../src/pipeline/client-request.ts'

/** What a test sends, as the server hands it to a handler. */
export function received(sent: Request, address?: string): ClientRequest {
  return Object.assign(sent, { connection: { address } })
}

/** An answer as a client reads it. */
export function responseOf({ status, headers, body }: Answer): Response {
  const lines = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((each) => [name, each]))
  const hasBody = status !== 204 && status !== 304
  const sent = body instanceof Uint8Array ? new Uint8Array(body) : bodyOf(body)
  return new Response(hasBody ? sent : null, { status, headers: lines as [string, string][] })
}

/** Takes a piece at each read. */
export function bodyOf(stream: AnswerStream): ReadableStream<Uint8Array> {
  let isRunning = false
  let taken = Promise.withResolvers<void>()
  let hasEnded = false
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const write = (bytes: Uint8Array): Promise<void> | undefined => {
          if (bytes.length === 0) return undefined
          controller.enqueue(bytes)
          taken = Promise.withResolvers()
          return taken.promise
        }
        const end = (last?: Uint8Array): void => {
          if (hasEnded) return
          hasEnded = true
          if (last && last.length > 0) controller.enqueue(last)
          controller.close()
        }
        taken.resolve()
        if (isRunning) return
        isRunning = true
        void stream.run({ write, end }).then(
          () => end(),
          (error) => controller.error(error),
        )
      },
      cancel: () => stream.clientLeft(),
    },
    { highWaterMark: 0 },
  )
}

/** A handler on a port of its own; undefined is answered with a 404. */
export function serveAnswers(handle: (request: ClientRequest) => Promise<Answer | undefined>) {
  const server = new HttpServer({
    host: '127.0.0.1',
    port: 0,
    sharesPort: false,
    clock: systemClock,
    idleSeconds: 60,
    connectionsMax: 1000,
    requestsMax: 1000,
    bodiesBytesMax: () => 2 ** 30,
    serve: async (request) => (await handle(request)) ?? new Answer(404, {}, 'nothing is served here'),
    onDefect: (error) => new Answer(500, {}, String(error)),
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    stop(): void {
      void server.stop()
      server.terminate()
    },
  }
}
