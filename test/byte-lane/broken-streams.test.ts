// Recorded streams that break off at every byte: the client gets whole records only, every one that came whole, and the
// failure behind them is a record of its own that any reader can tell apart. Never half an event, never a made-up end.

import { describe, expect, test } from 'bun:test'
import type { StreamRelay } from '../../src/dialects/byte-lane/relay.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { type SseEvent, SseReader } from '../../src/wire/sse-reader.ts'
import { context } from '../parts/reply-events.ts'
import { expectedBytes, type Recording, recordedBytes, streams, surfaceOf, surfaces } from './recordings.ts'

const failure = new Failure('STREAM_INTERRUPTED', 'Provider test broke off.')

function openRelay(recording: Recording): StreamRelay {
  const { dialect, model } = surfaces[surfaceOf(recording)]
  const modelJson = new TextEncoder().encode(JSON.stringify(model))
  return dialect.relayStream({ ...context, modelJson, wantsStreamUsage: true })
}

/** The events a client that keeps to the standard sees: a record counts when its blank line has come. */
function events(bytes: Uint8Array): SseEvent[] {
  return new SseReader().push(bytes)
}

/** The recording with the cost this test's context gives to every usage. */
function expectedEvents(recording: Recording): SseEvent[] {
  const cost = (text: string): string => text.replace(/"cost":[0-9.]+/, '"cost":0.000012345')
  const spans = recording.spans.map((span) => ({ ...span, to: cost(span.to) }))
  return events(expectedBytes({ ...recording, spans }, true))
}

for (const recording of streams) {
  describe(recording.file, () => {
    const bytes = recordedBytes(recording)
    const all = expectedEvents(recording)
    const { dialect } = surfaces[surfaceOf(recording)]

    test('that breaks off anywhere is passed in whole records, and its failure is one more', () => {
      for (let cut = 0; cut < bytes.length; cut++) {
        const relay = openRelay(recording)
        const passed = [relay.push(bytes.subarray(0, cut)), relay.end()]
        const last = relay.finished ? relay.terminal : dialect.renderStreamFailure(failure, 'req_1')
        const got = events(Buffer.concat([...passed, last]))
        const wholeRecords = events(bytes.subarray(0, cut)).length

        const own = relay.finished ? got : got.slice(0, -1)
        // Several times faster than toEqual, which only has to explain.
        if (!Bun.deepEquals(own, all.slice(0, own.length))) expect(own).toEqual(all.slice(0, own.length))
        expect(own.length).toBeGreaterThanOrEqual(wholeRecords)
        expect(relay.finished).toBe(own.length === all.length)
        if (!relay.finished) expect(events(last)).toEqual(got.slice(-1))
      }
    }, 30_000)
  })
}
