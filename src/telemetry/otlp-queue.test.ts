import { expect, test } from 'bun:test'
import { createSendQueue, type SendOutcome } from './otlp-queue.ts'

function openQueue(outcomes: readonly SendOutcome['kind'][] = []) {
  const sent: string[][] = []
  const left = [...outcomes]
  const queue = createSendQueue<string>({
    async send(batch) {
      sent.push([...batch])
      const kind = left.shift() ?? 'sent'
      return kind === 'sent' ? { kind } : { kind, why: 'x' }
    },
    ...{ itemsMax: 5, batchMax: 3, sizeMax: 100, batchSizeMax: 40 },
  })
  return { queue, sent }
}

test('sends in order, in batches of a number and a size', async () => {
  const { queue, sent } = openQueue()
  queue.push('a', 30)
  queue.push('b', 9)
  await queue.flush()
  queue.push('c', 39)
  await queue.flush()
  expect(sent).toEqual([['a', 'b'], ['c']])
  expect(queue.dropped()).toBe(0)
})

test('what is larger than a batch is sent alone', async () => {
  const { queue, sent } = openQueue()
  queue.push('a', 1)
  queue.push('b', 90)
  await queue.flush()
  expect(sent).toEqual([['a'], ['b']])
})

test('drops and counts what does not fit', async () => {
  const { queue, sent } = openQueue(['later', 'later'])
  queue.push('first', 20)
  await queue.flush()
  queue.push('too large', 81)
  for (const item of ['b', 'c', 'd', 'e', 'f']) queue.push(item, 1)
  expect(queue.dropped()).toBe(2)
  await queue.flush()
  await queue.flush()
  expect(sent.flat()).toEqual(['first', 'first', 'b', 'c', 'first', 'b', 'c', 'd', 'e'])
})

test('drops a batch that is refused at once, and one that fails three times', async () => {
  const { queue, sent } = openQueue(['refused', 'later', 'later', 'later'])
  queue.push('a')
  await queue.flush()
  expect(queue.dropped()).toBe(1)
  queue.push('b')
  for (let times = 0; times < 4; times++) await queue.flush()
  expect(sent).toEqual([['a'], ['b'], ['b'], ['b']])
  expect(queue.dropped()).toBe(2)
})

test('what waits at the end counts as dropped', () => {
  const { queue } = openQueue()
  queue.push('a')
  queue.drop()
  expect(queue.dropped()).toBe(1)
})
