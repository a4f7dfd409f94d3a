// For a client that left right behind the end of its answer: what the answer has cost stands in a record that is still on
// its way, and reading on for a moment is all it takes to learn it.

import type { OpenStream } from './attempt.ts'

/** Providers send the count in the same breath. */
const patienceMs = 2_000

export type Reading = ReturnType<OpenStream['reader']['read']>

/** `reading`: a read that is under way. Resolves at the stream's end, or when the time is up. */
export async function hearOut({ reader, relay, abort }: OpenStream, reading: Reading | undefined): Promise<void> {
  const timer = setTimeout(abort, patienceMs)
  try {
    let next = reading
    while (!relay.finished && !relay.fault) {
      const { done, value } = await (next ?? reader.read())
      next = undefined
      if (done) return void relay.end()
      if (value) relay.push(value)
    }
  } catch {
    // Cut off, by the provider or by the time: what was counted until then has to do.
  } finally {
    clearTimeout(timer)
  }
}
