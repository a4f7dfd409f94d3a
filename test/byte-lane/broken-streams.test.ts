// Recorded streams that break off at every byte: the client gets whole records only, every one that came whole, and the
// failure behind them is a separate record that any reader can recognise. Never half an event, never a made-up end.

import { describe, expect, test } from 'bun:test'
import type { StreamRelay } from '../../src/dialects/reply/relay.ts'
import { Failure } from '../../src/kernel/failure.ts'
import { type SseEvent, SseReader } from '../../src/wire/sse.ts'
import { context } from '../parts/reply-events.ts'
import { expectedBytes, type Recording, recordedBytes, streams, surfaceOf, surfaces } from './recordings.ts'

const failure = new Failure('STREAM_INTERRUPTED', 'Provider test broke off.')

function openRelay(recording: Recording): StreamRelay {
  const { dialect, model } = surfaces[surfaceOf(recording)]
  const modelJson = new TextEncoder().encode(JSON.stringify(model))
  return dialect.relayStream({ ...context, modelJson, wantsStreamUsage: true, envelope: { choices: 1 } })
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

/** How many of the events it takes until the provider has said that its answer is complete. */
function eventsUntilEnd(recording: Recording, all: readonly SseEvent[]): number {
  if (surfaceOf(recording) === 'messages') return all.length
  return all.findIndex(({ data }) => /"finish_?reason": ?"/i.test(data)) + 1
}

for (const recording of streams) {
  describe(recording.file, () => {
    const bytes = recordedBytes(recording)
    const all = expectedEvents(recording)
    const untilEnd = eventsUntilEnd(recording, all)
    const { dialect } = surfaces[surfaceOf(recording)]

    test('that breaks off anywhere is passed in whole records, and its failure is one more', () => {
      for (let cut = 0; cut < bytes.length; cut++) {
        const relay = openRelay(recording)
        const passed = [relay.push(bytes.subarray(0, cut)), relay.end()]
        const last = relay.finished ? relay.terminal : dialect.renderStreamFailure(failure, 'req_1')
        const got = events(Buffer.concat([...passed, last]))
        const wholeRecords = events(bytes.subarray(0, cut)).length

        // An end that only lacks its marker gets it from us, and the usage before it where that has not come either.
        const failureAt = got.findIndex((event, at) => !Bun.deepEquals(event, all[at]))
        const own = failureAt < 0 ? got : got.slice(0, failureAt)
        expect(got.length - own.length).toBeLessThanOrEqual(relay.finished ? 2 : 1)
        expect(own.length).toBeGreaterThanOrEqual(wholeRecords)
        expect(relay.finished).toBe(own.length >= untilEnd)
        expect(got.at(-1)).toEqual(relay.finished ? all.at(-1) : events(last)[0])
      }
    })
  })
}
