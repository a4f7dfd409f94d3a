// Recorded upstream streams through a dialect's relay, cut at every byte and at random: the client gets the recording
// except for the named spans, and the usage is what was worked out by hand.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { modelFromEntry } from '../../src/catalog/entry.ts'
import { priceUsage } from '../../src/catalog/price.ts'
import type { StreamRelay } from '../../src/dialects/reply/relay.ts'
import { assert } from '../../src/kernel/failure.ts'
import { formatUsd } from '../../src/kernel/money.ts'
import type { Usage } from '../../src/kernel/usage.ts'
import { pieceBytes, piecesOf } from '../parts/pieces.ts'
import { context } from '../parts/reply-events.ts'
import { expectedBytes, type Recording, recordedBytes, streams, surfaceOf, surfaces } from './recordings.ts'

const priced = modelFromEntry(
  {
    id: 'test/priced',
    price: { input: '1.00', output: '2.00', cache_read: '0.10', cache_write: '1.25', cache_write_1h: '2.00' },
    routes: [{ provider: 'any', model: 'any' }],
  },
  'this test',
)

function quotedUsd(usage: Usage): string {
  assert(priced.price, 'the model has a price')
  return formatUsd(priceUsage(priced.price, usage))
}

function openRelay(recording: Recording, wantsStreamUsage: boolean): StreamRelay {
  const { dialect, model } = surfaces[surfaceOf(recording)]
  return dialect.relayStream({
    modelJson: new TextEncoder().encode(JSON.stringify(model)),
    wantsStreamUsage,
    envelope: { choices: 1 },
    quotedUsd,
    quoteUsage: context.quoteUsage,
  })
}

/** All that a client gets when the provider's bytes come in these chunks. */
function relayed(relay: StreamRelay, chunks: readonly Uint8Array[]): Buffer {
  const got: Uint8Array[] = chunks.map((chunk) => relay.push(chunk))
  got.push(relay.end(), relay.terminal)
  return Buffer.concat(got)
}

/** Fails with the place where the bytes part, which a diff of two buffers would bury. */
function expectSame(got: Buffer, expected: Buffer, how: string): void {
  if (got.equals(expected)) return
  let at = 0
  while (got[at] === expected[at]) at++
  const around = (bytes: Buffer) => JSON.stringify(bytes.subarray(Math.max(0, at - 40), at + 40).toString())
  expect.unreachable(`${how}: differs at byte ${at}: got ${around(got)}, expected ${around(expected)}`)
}

for (const recording of streams) {
  for (const wantsUsage of [true, false]) {
    describe(`${recording.file}, usage ${wantsUsage ? 'asked for' : 'not asked for'}`, () => {
      const bytes = recordedBytes(recording)
      const expected = expectedBytes(recording, wantsUsage)

      test('passes in one piece', () => {
        const relay = openRelay(recording, wantsUsage)
        expectSame(relayed(relay, [bytes]), expected, 'whole')
        expect(relay.usage).toEqual(recording.usage)
        expect([relay.meaningful, relay.finished, relay.fault]).toEqual([true, true, undefined])
      })

      test('passes cut at every byte', () => {
        for (let first = 0; first < pieceBytes; first++) {
          const relay = openRelay(recording, wantsUsage)
          expectSame(relayed(relay, piecesOf(bytes, first)), expected, `cut every ${pieceBytes} bytes from ${first} on`)
          expect(relay.usage).toEqual(recording.usage)
          expect(relay.finished).toBe(true)
        }
      })

      test('passes as single bytes', () => {
        const relay = openRelay(recording, wantsUsage)
        const single = Array.from(bytes, (byte) => Uint8Array.of(byte))
        expectSame(relayed(relay, single), expected, 'single bytes')
        expect(relay.usage).toEqual(recording.usage)
      })

      test('passes in any chunks', () => {
        fc.assert(
          fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 40 }), (cuts) => {
            const borders = [0, ...cuts.sort((a, b) => a - b), bytes.length]
            const chunks = borders.slice(1).map((border, at) => bytes.subarray(borders[at], border))
            const relay = openRelay(recording, wantsUsage)
            expectSame(relayed(relay, chunks), expected, `cut at ${cuts}`)
            expect(relay.usage).toEqual(recording.usage)
          }),
          { numRuns: 100 },
        )
      })
    })
  }
}

describe('the terminal bytes', () => {
  test('are kept back until the charge is made, and are the last record of the recording', () => {
    for (const recording of streams) {
      const relay = openRelay(recording, true)
      relay.push(recordedBytes(recording))
      relay.end()
      const all = expectedBytes(recording, true).toString()
      const last = { chat: 'data: [DONE]', messages: 'event: message_stop', gemini: 'data: ' }[surfaceOf(recording)]
      expect(Buffer.from(relay.terminal).toString()).toBe(all.slice(all.lastIndexOf(last)))
    }
  })

  test('are missing when a Messages provider closes before them, so that nothing is made up', () => {
    for (const recording of streams.filter((one) => surfaceOf(one) === 'messages')) {
      const bytes = recordedBytes(recording)
      const relay = openRelay(recording, true)
      relay.push(bytes.subarray(0, bytes.lastIndexOf('event: message_stop')))
      relay.end()
      expect([relay.finished, relay.terminal.length]).toEqual([false, 0])
      expect(relay.usage).toEqual(recording.usage)
    }
  })

  test('are ours where a chat provider closes behind all the rest', () => {
    for (const recording of streams.filter((one) => surfaceOf(one) === 'chat')) {
      const bytes = recordedBytes(recording)
      const relay = openRelay(recording, true)
      const passed = [relay.push(bytes.subarray(0, bytes.lastIndexOf('data: [DONE]'))), relay.end()]
      const expected = expectedBytes(recording, true)
      expectSame(Buffer.concat(passed), expected.subarray(0, expected.lastIndexOf('data: [DONE]')), recording.file)
      expect(Buffer.from(relay.terminal).toString()).toBe('data: [DONE]\n\n')
      expect([relay.finished, relay.usage]).toEqual([true, recording.usage])
    }
  })
})
