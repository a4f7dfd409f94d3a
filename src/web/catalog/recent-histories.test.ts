import { expect, test } from 'bun:test'
import { sandboxEntries } from '../../../test/parts/web.ts'
import { recentHistories } from './recent-histories.ts'

test('a history is read once for each turn of the catalog, and again where that failed', async () => {
  const reads: string[] = []
  let fails = false
  const historyIn = recentHistories(async (id) => {
    reads.push(id)
    if (fails) throw new Error('not now')
    return []
  })
  const turn = sandboxEntries()
  await Promise.all([1, 2, 3].map(() => historyIn(turn, 'sandbox/echo')))
  await historyIn(turn, 'sandbox/slow')
  await historyIn(turn, 'nobody/sells-this')
  expect(reads).toEqual(['sandbox/echo', 'sandbox/slow'])
  fails = true
  const later = [...turn]
  expect(historyIn(later, 'sandbox/echo')).rejects.toThrow('not now')
  await Bun.sleep(0)
  fails = false
  expect(await historyIn(later, 'sandbox/echo')).toEqual([])
  expect(reads).toHaveLength(4)
})
