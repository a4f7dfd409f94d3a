// The body of a streamed reply: made record by record as it is read, so a slow reader holds nothing in memory. Ends
// like a fetch body does: the signal's abort makes reading fail with its reason, cancel() stops it silently.

import type { StreamItem } from './wire.ts'

/** Resolves after so many milliseconds, or at once when the signal aborts; never rejects. */
export type Delay = (ms: number, signal: AbortSignal) => Promise<void>

export const timerDelay: Delay = (ms, signal) =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })

export function streamBody(
  items: Iterator<StreamItem, void>,
  { delay, signal }: { readonly delay: Delay; readonly signal: AbortSignal },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const ended = new AbortController()
  let onAbort: (() => void) | undefined

  function end() {
    if (onAbort) signal.removeEventListener('abort', onAbort)
    // Wakes a pull that is waiting, so that no timer outlives its reader.
    ended.abort()
  }

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onAbort = () => {
          end()
          controller.error(signal.reason)
        }
        signal.addEventListener('abort', onAbort)
        if (signal.aborted) onAbort()
      },
      async pull(controller) {
        while (!ended.signal.aborted) {
          const { done, value } = items.next()
          if (done) {
            end()
            return controller.close()
          }
          if (value.kind === 'record') return controller.enqueue(encoder.encode(value.text))
          await delay(value.ms, ended.signal)
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}
