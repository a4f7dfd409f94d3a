import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { slowFiles } from '../slow-files.ts'
import { fileOf, mergeRepeated, readReport, staleTimes, unexcused } from './report.ts'

const xml = `<testsuites><testsuite name="a.test.ts" file="a.test.ts" time="3.5">
  <testsuite name="outer" file="a.test.ts" time="9">
    <testcase name="says &quot;no&quot;" classname="inner &gt; x &gt; outer" file="a.test.ts" time="1"><failure /></testcase>
    <testcase name="passes" classname="outer" file="a.test.ts" time="1" />
    <testcase name="is left out" classname="outer" file="a.test.ts" time="0"><skipped /></testcase>
  </testsuite>
</testsuite></testsuites>`

test('reads a report with the names as they were written, outer group first', () => {
  const { passed, failed, skipped, seconds } = readReport(xml, ['a.test.ts', 'b.test.ts'])
  expect(passed).toBe(1)
  expect(failed).toEqual([
    'a.test.ts: outer > x > inner > says "no"',
    'b.test.ts: could not be loaded, or holds no test',
  ])
  expect(skipped).toEqual(['a.test.ts: outer > is left out'])
  expect([...seconds]).toEqual([['a.test.ts', 3.5]])
})

test('a test that fails again fails the run, one that passes by itself is unsteady', () => {
  const first = readReport(xml.replaceAll('<skipped />', '<failure />'), [])
  const [again = '', steady = ''] = first.failed
  expect(first.failed.map(fileOf)).toEqual(['a.test.ts', 'a.test.ts'])
  expect(mergeRepeated(first, [again, 'a.test.ts: another'])).toMatchObject({
    passed: 2,
    failed: [again, 'a.test.ts: another'],
    unsteady: [steady],
  })
})

// The time limit of all tests is in test/time-limit.ts. A shorter one fails on a busy machine.
test('no test sets a separate time limit', async () => {
  const limit = /^ *\}, [\d_]{5,}\)$|^ *\},\n *[\d_]{5,},\n *\)$|^setDefaultTimeout\(/m
  const root = join(import.meta.dir, '../..')
  const limited: string[] = []
  for await (const file of new Bun.Glob('{src,test}/**/*.test.{ts,tsx}').scan({ cwd: root })) {
    if (limit.test(await Bun.file(join(root, file)).text())) limited.push(file)
  }
  expect(limited).toEqual([])
})

test('excuses only skipped tests on the list', () => {
  const disk = 'test/crash/outages.test.ts: a full disk > under load nothing is lost and nothing is unpaid'
  const other = 'test/crash/outages.test.ts: PostgreSQL stopped > under load nothing is lost and nothing is unpaid'
  expect(unexcused([disk, other])).toEqual([other])
})

test('a time is stale when it is off by more than a factor of two, not listed, or its file is gone', () => {
  const [[file, listed] = ['', 0], ...others] = Object.entries(slowFiles)
  const asListed = new Map(others)
  const quick = 'src/quick.test.ts'
  expect(staleTimes(new Map([...asListed, [file, 1.9 * listed], [quick, 9]]))).toEqual([])
  expect(staleTimes(new Map([...asListed, [file, 2.1 * listed], [quick, 11]]))).toHaveLength(2)
  expect(staleTimes(new Map([...asListed, [file, 0.4 * listed]]))).toHaveLength(1)
  expect(staleTimes(asListed)).toEqual([`gone  ${file}`])
})
