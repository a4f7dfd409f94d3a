import { expect, test } from 'bun:test'
import { createBodyRoom } from './body-room.ts'
import { BodyFault, readBody } from './read-body.ts'

const kibibyte = 1024
const bytesMax = 1024 * kibibyte

/** A body that is sent piece by piece, with or without saying how much is to come. */
function upload(announced?: number) {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const headers: Record<string, string> = announced === undefined ? {} : { 'content-length': String(announced) }
  return {
    request: new Request('http://gateway/', { method: 'POST', body: readable, headers }),
    send: (bytes: number) => writer.write(new Uint8Array(bytes)),
    end: () => writer.close(),
    cut: () => writer.abort(new Error('cut')),
  }
}

const outcome = (body: Uint8Array | BodyFault) => (body instanceof BodyFault ? body.reason : body.length)

test('what is announced is taken before a byte has come, and given back when all has', async () => {
  const room = createBodyRoom(300 * kibibyte)
  const [first, second, third] = [upload(200 * kibibyte), upload(200 * kibibyte), upload(200 * kibibyte)]
  const reading = readBody(first.request, { bytesMax, room })
  expect(outcome(await readBody(second.request, { bytesMax, room }))).toBe('no-room')
  void first.send(200 * kibibyte)
  void first.end()
  expect(outcome(await reading)).toBe(200 * kibibyte)
  void third.send(200 * kibibyte)
  void third.end()
  expect(outcome(await readBody(third.request, { bytesMax, room }))).toBe(200 * kibibyte)
})

test('a large one takes room as it comes, however much it announces', async () => {
  const room = createBodyRoom(2048 * kibibyte)
  const limits = { bytesMax: 32 * bytesMax, room }
  const [slow, other] = [upload(4096 * kibibyte), upload(1024 * kibibyte)]
  const reading = readBody(slow.request, limits)
  await slow.send(100 * kibibyte)
  void other.send(1024 * kibibyte)
  void other.end()
  expect(outcome(await readBody(other.request, limits))).toBe(1024 * kibibyte)
  // Nobody else is there now.
  void slow.send(3996 * kibibyte)
  void slow.end()
  expect(outcome(await reading)).toBe(4096 * kibibyte)
})

test('a body of unknown length takes room as it grows, and gives all of it back when it is cut off or refused', async () => {
  const room = createBodyRoom(300 * kibibyte)
  for (let time = 0; time < 3; time++) {
    const [large, growing] = [upload(200 * kibibyte), upload()]
    const readings = [readBody(large.request, { bytesMax, room }), readBody(growing.request, { bytesMax, room })]
    void growing.send(90 * kibibyte).catch(() => {})
    void growing.send(90 * kibibyte).catch(() => {})
    expect(outcome((await readings[1]) as Uint8Array)).toBe('no-room')
    void large.cut().catch(() => {})
    expect(outcome((await readings[0]) as Uint8Array)).toBe('aborted')
  }
})

test('small bodies need no room, and one alone is let in whatever its size', async () => {
  const room = createBodyRoom(100 * kibibyte)
  const large = upload(200 * kibibyte)
  const reading = readBody(large.request, { bytesMax, room })
  for (const small of [upload(64 * kibibyte), upload()]) {
    void small.send(64 * kibibyte)
    void small.end()
    expect(outcome(await readBody(small.request, { bytesMax, room }))).toBe(64 * kibibyte)
  }
  void large.send(200 * kibibyte)
  void large.end()
  expect(outcome(await reading)).toBe(200 * kibibyte)
})
