import { expect, test } from 'bun:test'
import { chargedRowOf, createTestClock, createTestPace } from '../../../test/parts/ledger.ts'
import { zeroNano } from '../../kernel/money.ts'
import { createWriteHealth } from '../write-health.ts'
import { createGroupCommit, type Submission } from './group-commit.ts'

/** `faults`: what the first commits throw. */
function open(faults: unknown[] = []) {
  const clock = createTestClock()
  const defects: unknown[] = []
  const failing: unknown[] = []
  const writer = {
    async commitBatch(operations: readonly unknown[]) {
      const fault = faults.shift()
      if (fault !== undefined) throw fault
      return operations.map(() => undefined)
    },
  }
  const commits = createGroupCommit({
    ...{ writer, clock, writeHealth: createWriteHealth(clock), pace: createTestPace() },
    onDefect: (thrown) => void defects.push(thrown),
    onFailing: (thrown) => void failing.push(thrown),
  })
  return { commits, defects, failing }
}

function submission(onCommitted: () => void): Submission {
  const never = () => {
    throw new Error('not expected')
  }
  const charge = { workspaceId: 'ws_1', charge: zeroNano, writtenOff: zeroNano, budgets: null } as const
  return { row: chargedRowOf('req_1', charge), onCommitted, onRefused: never, onGivenUp: never, onOverdue: never }
}

test('a callback that throws stops neither the other callbacks of its commit nor later commits', async () => {
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
      // The defect is reported last, because it may end the process.
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

test('reports the first failure of each outage, and commits when it is over', async () => {
  const { commits, failing } = open(['full', 'full', 'still full'])
  let committed = 0
  commits.submit(submission(() => committed++))
  await commits.idle()
  expect([committed, ...failing]).toEqual([1, 'full'])
})
