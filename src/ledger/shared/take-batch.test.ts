import { expect, test } from 'bun:test'
import type { RequestId, WorkspaceId } from '../../kernel/ids.ts'
import type { SharedOperation } from './operation.ts'
import { type Entry, takeBatch } from './take-batch.ts'

/** `hold a`: an operation and its request, of the workspace of the same name in capitals; `hold a!` is tried alone. */
function entriesOf(answered: string[], ...texts: readonly string[]): Entry[] {
  return texts.map((text) => {
    const [kind, name = ''] = text.replace('!', '').split(' ')
    const ids = { requestId: `req_${name}` as RequestId, workspaceId: `ws_${name.toUpperCase()}` as WorkspaceId }
    const operation = { kind, ...ids, answer: () => answered.push(text) } as unknown as SharedOperation
    return { operation, submittedMs: 0, tried: false, isAlone: text.endsWith('!') }
  })
}

const textOf = ({ operation: { kind, requestId } }: Entry) => `${kind} ${requestId.slice('req_'.length)}`

function take(texts: readonly string[], { waiting, apart }: { waiting?: string; apart?: string } = {}) {
  const answered: string[] = []
  const queue = entriesOf(answered, ...texts)
  const isWaiting = (id: WorkspaceId) => id === `ws_${waiting}`
  const isApart = (id: WorkspaceId) => apart?.includes(id.slice('ws_'.length)) ?? false
  const batch = takeBatch(queue, { isWaiting, isApart }).map(textOf)
  return { batch, left: queue.map(textOf), answered }
}

test('a batch is what comes first, up to a request that is in it already', () => {
  expect(take(['hold a', 'settle b', 'extend a', 'hold c'])).toEqual({
    batch: ['hold a', 'settle b'],
    left: ['extend a', 'hold c'],
    answered: [],
  })
})

test('the mark that a body was sent gives way to the end of its request', () => {
  expect(take(['sent a', 'sent b', 'hold c', 'settle a', 'release b'])).toEqual({
    batch: ['settle a', 'release b', 'hold c'],
    left: [],
    answered: ['sent a', 'sent b'],
  })
  // To nothing else: a hold that grows has still been sent.
  expect(take(['sent a', 'extend a', 'settle a'])).toEqual({
    batch: ['sent a'],
    left: ['extend a', 'settle a'],
    answered: [],
  })
})

test('while a wallet waits, its operations keep their places', () => {
  expect(take(['hold a', 'hold b', 'settle a'], { waiting: 'A' })).toEqual({
    batch: ['hold b'],
    left: ['hold a', 'settle a'],
    answered: [],
  })
})

test('a wallet that goes apart has a batch of its own, in its turn', () => {
  expect(take(['hold b', 'hold a', 'settle c', 'hold d'], { apart: 'AD' })).toEqual({
    batch: ['hold b', 'settle c'],
    left: ['hold a', 'hold d'],
    answered: [],
  })
  expect(take(['hold a', 'settle b', 'hold d', 'sent a'], { apart: 'AD' })).toEqual({
    batch: ['hold a'],
    left: ['settle b', 'hold d', 'sent a'],
    answered: [],
  })
})

test('an operation that is tried alone has a batch of its own', () => {
  expect(take(['hold a!', 'hold b!', 'hold c']).batch).toEqual(['hold a'])
  expect(take(['hold a', 'hold b!', 'hold c'])).toEqual({ batch: ['hold a'], left: ['hold b', 'hold c'], answered: [] })
})

test('no more than 256 at a time', () => {
  const { batch, left } = take(Array.from({ length: 300 }, (_, n) => `hold ${n}`))
  expect([batch.length, left.length, left[0]]).toEqual([256, 44, 'hold 256'])
})
