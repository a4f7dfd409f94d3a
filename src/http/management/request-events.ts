// Requests as events of a stream, for pages that stay open. A reader that is too slow misses some and can list them.

import type { LoggedRequest } from '../../telemetry/request-row.ts'
import type { RequestTail } from '../../telemetry/request-tail.ts'
import { shownRequest } from './explain-request.ts'
import type { RequestFilters } from './request-filters.ts'

/** Answers with a stream; undefined = too many listen already. */
export type FollowRequests = (filters: RequestFilters, signal: AbortSignal) => ReadableStream<Uint8Array> | undefined

/** Words that wait for a slow reader: what a few looks of the tail found. */
const waitingMax = 8
/** In looks of the tail, one a second: proxies, and the gateway itself, take a silent connection for dead. */
const looksPerWord = 15

const encoder = new TextEncoder()

export function createFollowRequests(tail: RequestTail): FollowRequests {
  /** Written out once, however many follow. */
  const written = new WeakMap<LoggedRequest, string>()
  const eventOf = (request: LoggedRequest): string => {
    const event = written.get(request) ?? `event: request\ndata: ${JSON.stringify(shownRequest(request))}\n\n`
    written.set(request, event)
    return event
  }

  return (filters, signal) => {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined
    let looks = 0
    const send = (text: string): void => {
      if (controller && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(text))
    }
    const leave = tail.listen({
      onRequests(requests) {
        looks++
        // All that a look found goes out at once: each word is a write to the socket.
        const events = requests.filter((request) => passes(request, filters)).map(eventOf)
        if (looks % looksPerWord === 0) events.push(': still here\n\n')
        if (events.length > 0) send(events.join(''))
      },
      onEnd: () => controller?.close(),
    })
    if (!leave) return undefined
    signal.addEventListener('abort', leave, { once: true })
    return new ReadableStream<Uint8Array>(
      {
        start(own) {
          controller = own
          send('retry: 2000\n: listening\n\n')
        },
        cancel: leave,
      },
      new CountQueuingStrategy({ highWaterMark: waitingMax }),
    )
  }
}

function passes(request: LoggedRequest, { workspaceId, projectId, keyId, model, outcome }: RequestFilters): boolean {
  return (
    (workspaceId === undefined || request.workspaceId === workspaceId) &&
    (projectId === undefined || request.projectId === projectId) &&
    (keyId === undefined || request.keyId === keyId) &&
    (model === undefined || request.model === model) &&
    (outcome === undefined || (request.code === undefined) === (outcome === 'ok'))
  )
}
