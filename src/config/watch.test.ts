import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { contentDigest, watchConfigFile } from './watch.ts'

const root = mkdtempSync(join(tmpdir(), 'tollgate-watch-'))
afterAll(() => rmSync(root, { recursive: true }))

let folders = 0
function folder(): string {
  const path = join(root, String(folders++))
  mkdirSync(path)
  return path
}

/** Watches and counts; `next` waits for the change after the ones already waited for. */
function watching(path: string, content: string | undefined) {
  let seen = 0
  let waitedFor = 0
  let wake: (() => void) | undefined
  const watch = watchConfigFile(path, {
    onChange() {
      seen++
      wake?.()
    },
    known: { digest: content === undefined ? undefined : contentDigest(content) },
    // Longer than a step of the file times, so that two writes of a test can be told apart.
    intervalMs: 20,
  })
  return {
    count: () => seen,
    close: () => watch.close(),
    async next(): Promise<void> {
      waitedFor++
      while (seen < waitedFor) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

/** A second watch of the same pace: when it has noticed three changes, every other one has looked several times. */
async function severalLooks(base: string): Promise<void> {
  const path = join(base, 'pace')
  const pace = watching(path, undefined)
  for (const beat of ['a', 'b', 'c']) {
    writeFileSync(path, beat)
    await pace.next()
  }
  pace.close()
  rmSync(path)
}

test('notices a write in place', async () => {
  const base = folder()
  const path = join(base, 'tollgate.yaml')
  writeFileSync(path, 'one')
  const watch = watching(path, 'one')
  await severalLooks(base)
  writeFileSync(path, 'two')
  await watch.next()
  writeFileSync(path, 'six')
  await watch.next()
  watch.close()
  expect(watch.count()).toBe(2)
})

test('notices a file that is renamed over it', async () => {
  const base = folder()
  const path = join(base, 'tollgate.yaml')
  writeFileSync(path, 'one')
  const watch = watching(path, 'one')
  await severalLooks(base)
  writeFileSync(`${path}.new`, 'two')
  renameSync(`${path}.new`, path)
  await watch.next()
  watch.close()
  expect(watch.count()).toBe(1)
})

test('notices that a link on the way points elsewhere, as mounted ConfigMaps do', async () => {
  const base = folder()
  for (const version of ['v1', 'v2']) {
    mkdirSync(join(base, version))
    writeFileSync(join(base, version, 'tollgate.yaml'), version)
  }
  symlinkSync('v1', join(base, '..data'))
  symlinkSync('..data/tollgate.yaml', join(base, 'tollgate.yaml'))
  const watch = watching(join(base, 'tollgate.yaml'), 'v1')
  await severalLooks(base)
  symlinkSync('v2', join(base, '..data_new'))
  renameSync(join(base, '..data_new'), join(base, '..data'))
  await watch.next()
  watch.close()
  expect(watch.count()).toBe(1)
})

test('notices that the file appears, disappears and comes back', async () => {
  const path = join(folder(), 'tollgate.yaml')
  const watch = watching(path, undefined)
  writeFileSync(path, 'one')
  await watch.next()
  rmSync(path)
  await watch.next()
  writeFileSync(path, 'one')
  await watch.next()
  watch.close()
  expect(watch.count()).toBe(3)
})

test('notices what changed between reading the file and watching it', async () => {
  const path = join(folder(), 'tollgate.yaml')
  writeFileSync(path, 'two')
  const watch = watching(path, 'one')
  await watch.next()
  watch.close()
  expect(watch.count()).toBe(1)
})

test('a file written again with the same content is not a change', async () => {
  const base = folder()
  const path = join(base, 'tollgate.yaml')
  writeFileSync(path, 'one')
  const watch = watching(path, 'one')
  utimesSync(path, 1, 1)
  await severalLooks(base)
  writeFileSync(`${path}.new`, 'one')
  renameSync(`${path}.new`, path)
  await severalLooks(base)
  watch.close()
  expect(watch.count()).toBe(0)
})

test('a closed watch is silent', async () => {
  const path = join(folder(), 'tollgate.yaml')
  writeFileSync(path, 'one')
  const closed = watching(path, 'one')
  closed.close()
  const open = watching(path, 'one')
  writeFileSync(path, 'two')
  await open.next()
  writeFileSync(path, 'three')
  await open.next()
  open.close()
  expect(closed.count()).toBe(0)
})
