// The report of `npm test`: which tests passed, failed and were skipped, how long each file took, and which
// times in test/slow-files.ts no longer hold.

import { slowFiles, slowSeconds } from '../slow-files.ts'

export interface Report {
  readonly passed: number
  readonly failed: readonly string[]
  readonly skipped: readonly string[]
  /** Duration of each file. */
  readonly seconds: ReadonlyMap<string, number>
}

/** Reads Bun's JUnit report. A file that could not be loaded is not in it and counts as failed if it is one of `files`. */
export function readReport(xml: string, files: readonly string[]): Report {
  const failed: string[] = []
  const skipped: string[] = []
  const seconds = new Map<string, number>()
  let passed = 0
  for (const [, attributes = '', inside = ''] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)) {
    const file = attribute(attributes, 'file')
    // Bun writes the inner group first.
    const groups = attribute(attributes, 'classname').split(' > ').filter(Boolean).reverse()
    const name = `${file}: ${[...groups, attribute(attributes, 'name')].join(' > ')}`
    seconds.set(file, 0)
    if (/<(?:failure|error)\b/.test(inside)) failed.push(name)
    else if (inside.includes('<skipped')) skipped.push(name)
    else passed += 1
  }
  // A file is a group too. The times of its tests do not add up to its time where they run concurrently.
  for (const [, attributes = ''] of xml.matchAll(/<testsuite ([^>]*)>/g)) {
    const file = attribute(attributes, 'file')
    if (attribute(attributes, 'name') === file && seconds.has(file))
      seconds.set(file, Number(attribute(attributes, 'time')))
  }
  for (const file of files) {
    if (!seconds.has(file)) failed.push(`${file}: could not be loaded, or holds no test`)
  }
  return { passed, failed, skipped, seconds }
}

/** A run whose failed files ran again, each by itself. */
export interface Tests extends Report {
  /** Tests that failed in the run and passed by themselves. */
  readonly unsteady: readonly string[]
}

/** `failedAgain`: what failed when the files ran by themselves, be it the same tests or others. */
export function mergeRepeated(first: Report, failedAgain: readonly string[]): Tests {
  const unsteady = first.failed.filter((name) => !failedAgain.includes(name))
  return { ...first, passed: first.passed + unsteady.length, failed: failedAgain, unsteady }
}

/** The file of a test, by the test's name in a report. */
export function fileOf(name: string): string {
  return name.split(': ', 1)[0] ?? name
}

const entities: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&apos;': "'", '&amp;': '&' }

function attribute(attributes: string, name: string): string {
  const value = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
  return value.replace(/&\w+;/g, (entity) => entities[entity] ?? entity)
}

/** Tests that may be skipped where TOLLGATE_TEST_SKIPS=none, by the beginning of their names, and why. */
const excused: Readonly<Record<string, string>> = {
  'test/deploy/files.test.ts: kubectl builds': 'Debian has no package for kubectl',
  'test/deploy/files.test.ts: systemd': 'systemd-analyze comes with an init system, which containers do not have',
  'test/recipes/python.test.ts: ': 'the packages it fetches are not in the lock file, and their registry may be down',
  'test/recipes/claude-code.test.ts: ': 'the same',
  'test/agents/real-agents.test.ts: ': 'the same',
  'test/crash/outages.test.ts: a full disk': 'mounting a small disk needs privileges that containers seldom have',
}

/** The skipped tests that are not excused. A skipped test proves nothing, so a complete run must not skip silently. */
export function unexcused(skipped: readonly string[]): readonly string[] {
  return skipped.filter((name) => !Object.keys(excused).some((beginning) => name.startsWith(beginning)))
}

/** Times differ between machines and runs, but not by more than this. */
const factor = 2

/** Files whose time differs from that in test/slow-files.ts. A slow file that starts last delays the whole run. */
export function staleTimes(seconds: ReadonlyMap<string, number>): readonly string[] {
  const stale: string[] = []
  for (const [file, took] of seconds) {
    const listed = slowFiles[file]
    const isOff = took > factor * (listed ?? slowSeconds) || (listed !== undefined && took < listed / factor)
    if (isOff) stale.push(`${took.toFixed(0)} s  ${file}  ${listed === undefined ? 'not listed' : `${listed} s there`}`)
  }
  for (const file of Object.keys(slowFiles)) if (!seconds.has(file)) stale.push(`gone  ${file}`)
  return stale
}
