import { expect, test } from 'bun:test'
import { createTestClock } from '../../test/parts/ledger.ts'
import { createId } from '../kernel/ids.ts'
import { createLog } from './log.ts'
import { logRequest, RequestRecord } from './request-record.ts'

function openLog() {
  const texts: string[] = []
  const log = createLog({ format: 'pretty', clock: createTestClock(), write: (text) => void texts.push(text) })
  return {
    log,
    written() {
      log.flush()
      return texts.join('')
    },
  }
}

const forged = 'a\u001b[31m\n12:00:00  200  forged\r\u009b2J\u202e\u2028\u007f'
const shown = String.raw`a\u001b[31m\u000a12:00:00  200  forged\u000d\u009b2J\u202e\u2028\u007f`

test('a request is one line, whatever the caller sends', () => {
  const { log, written } = openLog()
  const record = new RequestRecord(createId('req'), 0, '/v1/messages')
  logRequest(log, Object.assign(record, { status: 404, model: forged, code: 'NOT_FOUND', reason: forged }))
  const lines = written().split('\n')
  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain(`  404  ${shown}  NOT_FOUND: ${shown}  `)
})

test('further lines of a message are indented', () => {
  const { log, written } = openLog()
  log.error('a defect', { error: 'Error: x\u001b[2J\n12:00:00  200  forged\n    at file.ts' })
  const [first = '', ...more] = written().split('\n')
  expect(first).toMatch(/^\d\d:\d\d:\d\d {2}error {2}a defect {2}error=Error: x\\u001b\[2J$/)
  expect(more).toEqual(['    12:00:00  200  forged', '        at file.ts', ''])
})
