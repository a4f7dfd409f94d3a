import { expect, test } from 'bun:test'
import { createTestClock, createTestPace } from '../../../test/parts/ledger.ts'
import { createWriteHealth } from '../write-health.ts'
import { createGroupCommit, type Submission } from './group-commit.ts'

function open() {
  const clock = createTestClock()
  const defects: unknown[] = []
  const writer = { commitBatch: async (operations: readonly unknown[]) => operations.map(() => undefined) }
  const commits = createGroupCommit({
    ...{ writer, clock, writeHealth: createWriteHealth(clock), pace: createTestPace() },
    onDefect: (thrown) => void defects.push(thrown),
  })
  return { commits, defects }
}

function submission(onCommitted: () => void): Submission {
  const never = () => {
    throw new Error('not expected')
  }
  const operation = { wallet: '', amount: 0n, budgets: [], transfers: [], requests: [] }
  return { operation, onCommitted, onRefused: never, onGivenUp: never, onOverdue: never }
}

test('a callback that throws keeps no other member of its commit from being told, and no later commit from being made', async () => {
  const { commits, defects } = open()
  const told: string[] = []
  const defect = new Error('assertion failed')
  commits.submit(submission(() => void told.push('first')))
  commits.submit(
    submission(() => {
      throw defect
    }),
  )
  commits.submit(
    submission(() => {
      // The defect is reported last: whoever ends the process for it must not take the others with it.
      expect(defects).toEqual([])
      told.push('third')
    }),
  )
  await commits.idle()
  expect(told).toEqual(['first', 'third'])
  expect(defects).toEqual([defect])
  commits.submit(submission(() => void told.push('later')))
  await commits.idle()
  expect(told).toEqual(['first', 'third', 'later'])
})
