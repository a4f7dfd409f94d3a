import { expect, test } from 'bun:test'
import { ReceivedBody } from './received-body.ts'

class TestBody extends ReceivedBody {
  protected readonly source = undefined

  async cancel(): Promise<void> {}

  receive(text: string): void {
    this.receivePiece(new TextEncoder().encode(text))
  }

  complete(): void {
    this.completeBody()
  }

  fail(error: Error): void {
    this.failBody(error)
  }
}

const textOf = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes)

test('a waiting read takes piece after piece and ends with what take returns', async () => {
  const body = new TestBody()
  const taken: string[] = []
  const reading = body.read((piece) => {
    taken.push(textOf(piece))
    return taken.length < 3 ? undefined : new TextEncoder().encode('rest')
  })
  for (const text of ['one', 'two', 'three', 'four']) body.receive(text)
  expect(textOf((await reading).value)).toBe('rest')
  expect(taken).toEqual(['one', 'two', 'three'])
  // The fourth came after the end of the read.
  expect(textOf((await body.read()).value)).toBe('four')
})

test('a piece that came before the read is returned, not taken', async () => {
  const body = new TestBody()
  const taken: string[] = []
  body.receive('early')
  const { value } = await body.read((piece) => void taken.push(textOf(piece)))
  expect(textOf(value)).toBe('early')
  body.receive('late')
  expect(taken).toEqual([])
  expect(textOf((await body.read()).value)).toBe('late')
})

test('an error of take rejects the read, and the next piece is kept', async () => {
  const body = new TestBody()
  const reading = body.read(() => {
    throw new Error('not today')
  })
  body.receive('one')
  body.receive('two')
  await expect(reading).rejects.toThrow('not today')
  expect(textOf((await body.read()).value)).toBe('two')
})

test('the end and the failure of a body end a read that takes', async () => {
  const complete = new TestBody()
  const last = complete.read(() => undefined)
  complete.receive('one')
  complete.complete()
  expect(await last).toEqual({ done: true, value: undefined })

  const broken = new TestBody()
  const reading = broken.read(() => undefined)
  broken.receive('one')
  broken.fail(new Error('reset'))
  await expect(reading).rejects.toThrow('reset')
})

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('a large piece is taken in several turns of the event loop, and the end comes after it', async () => {
  const body = new TestBody()
  const sizes: number[] = []
  const reading = body.read((piece) => void sizes.push(piece.length))
  body.receive('x'.repeat(100_000))
  body.complete()
  const perTurn: number[] = []
  while (perTurn.at(-1) !== 100_000) {
    perTurn.push(sizes.reduce((sum, size) => sum + size, 0))
    await turn()
  }
  expect(perTurn.slice(0, 4)).toEqual([32_768, 65_536, 98_304, 100_000])
  expect(await reading).toEqual({ done: true, value: undefined })
})

test('a reader that asks again at once gets no more in a turn than one that takes', async () => {
  const body = new TestBody()
  body.receive('x'.repeat(50_000))
  body.receive('y'.repeat(50_000))
  body.fail(new Error('broken'))
  let length = 0
  const reading = (async () => {
    for (;;) length += (await body.read()).value?.length ?? 0
  })()
  reading.catch(() => {})
  for (let n = 0; n < 20; n++) await Promise.resolve()
  expect(length).toBe(32_768)
  await expect(reading).rejects.toThrow('broken')
  expect(length).toBe(100_000)
})

test('a body that is read as a whole is not cut', async () => {
  const body = new TestBody()
  const reading = body.bytes()
  body.receive('x'.repeat(100_000))
  body.complete()
  let isDone = false
  void reading.then(() => {
    isDone = true
  })
  for (let n = 0; n < 20; n++) await Promise.resolve()
  expect(isDone).toBe(true)
  expect((await reading).length).toBe(100_000)
})
