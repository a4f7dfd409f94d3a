import { expect, test } from 'bun:test'
import { eventFrame } from '../../../test/parts/event-frames.ts'
import { type EventFrame, EventFrameReader, FrameFault } from './event-frames.ts'

const shown = (frames: readonly EventFrame[]) =>
  frames.map(({ headers, payload }) => [Object.fromEntries(headers), Buffer.from(payload).toString()])

// Encoded messages that AWS's own libraries are tested with.
test.each([
  ['a payload alone', '0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936', [{}, "{'foo':'bar'}"]],
  [
    'a header',
    '0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1',
    [{ 'content-type': 'application/json' }, "{'foo':'bar'}"],
  ],
  ['nothing', '000000100000000005c248eb7d98c8ff', [{}, '']],
] as const)('reads AWS’s example of %s', (_, hex, expected) => {
  expect(shown(new EventFrameReader().push(Buffer.from(hex, 'hex')))).toEqual([[...expected]])
})

const frames = Buffer.concat([eventFrame({ ':event-type': 'chunk' }, '{"a":1}'), eventFrame({}, 'zwei')])
const both = [
  [{ ':event-type': 'chunk' }, '{"a":1}'],
  [{}, 'zwei'],
]

test('reads the same wherever the bytes are cut', () => {
  for (let cut = 0; cut <= frames.length; cut++) {
    const reader = new EventFrameReader()
    const read = [...reader.push(frames.subarray(0, cut)), ...reader.push(frames.subarray(cut))]
    expect(shown(read)).toEqual(both)
    expect(reader.isBetweenFrames).toBe(true)
  }
})

test('knows that a frame is not complete', () => {
  const reader = new EventFrameReader()
  reader.push(frames.subarray(0, frames.length - 1))
  expect(reader.isBetweenFrames).toBe(false)
})

test('one changed byte anywhere is found', () => {
  for (let at = 0; at < frames.length; at++) {
    const damaged = Buffer.from(frames)
    damaged[at] = (damaged[at] as number) ^ 0x01
    const reader = new EventFrameReader()
    let isFound = false
    try {
      reader.push(damaged)
      // A length that was made larger asks for bytes that never come.
      isFound = !reader.isBetweenFrames
    } catch (error) {
      isFound = error instanceof FrameFault
    }
    expect(isFound).toBe(true)
  }
})

test('other kinds of headers are passed over', () => {
  // true, a byte of 8 bits, and a time of 64 bits, in front of a text.
  const headers = Buffer.concat([
    Buffer.from([1, 0x61, 0]),
    Buffer.from([1, 0x62, 2, 9]),
    Buffer.from([1, 0x63, 8, 0, 0, 0, 0, 0, 0, 0, 1]),
    Buffer.from([1, 0x64, 7, 0, 1, 0x78]),
  ])
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(12 + headers.length + 4, 0)
  prelude.writeUInt32BE(headers.length, 4)
  prelude.writeUInt32BE(Bun.hash.crc32(prelude.subarray(0, 8)), 8)
  const before = Buffer.concat([prelude, headers])
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(Bun.hash.crc32(before))
  expect(shown(new EventFrameReader().push(Buffer.concat([before, crc])))).toEqual([[{ d: 'x' }, '']])
})
