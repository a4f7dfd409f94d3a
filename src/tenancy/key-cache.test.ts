import { expect, test } from 'bun:test'
import type { Clock } from '../kernel/clock.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { StoredKey } from './find-key.ts'
import { createKeyCache } from './key-cache.ts'

const ttlMs = 5000

function stored(keyId: KeyId, projectId: ProjectId = 'prj_1', workspaceId: WorkspaceId = 'ws_1'): StoredKey {
  const caller = {
    keyId,
    keyName: 'k',
    projectId,
    projectName: 'p',
    workspaceId,
    workspaceName: 'w',
    allow: [],
    limits: [],
    sharesRoutes: false,
    sources: undefined,
  }
  return { caller, expiresAt: undefined, revokedAt: undefined, rotated: undefined }
}

/** A cache over a database that answers when it is told to. */
function createBench() {
  let nowMs = 0
  const clock: Clock = { now: () => nowMs, monotonicMs: () => nowMs }
  const asked: { verifier: string; answer: (key: StoredKey | undefined) => void; fail: (error: Error) => void }[] = []
  const load = (verifier: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<StoredKey | undefined>()
    asked.push({ verifier, answer: resolve, fail: reject })
    return promise
  }
  const cache = createKeyCache({ load, clock, ttlMs })
  /** Looks the key up and answers the question that this must lead to. */
  async function fill(verifier: string, key: StoredKey | undefined) {
    const found = cache.find(verifier)
    expect(found).toBeInstanceOf(Promise)
    asked.at(-1)?.answer(key)
    expect(await found).toBe(key)
  }
  const advance = (ms: number): void => {
    nowMs += ms
  }
  return { cache, asked, fill, advance }
}

test('A9: answers at once for five seconds, then asks again', async () => {
  const bench = createBench()
  const key = stored('key_1')
  await bench.fill('v1', key)
  bench.advance(ttlMs - 1)
  expect(bench.cache.find('v1')).toBe(key)
  expect(bench.asked).toHaveLength(1)
  bench.advance(1)
  await bench.fill('v1', undefined)
  expect(bench.cache.find('v1')).toBeUndefined()
  expect(bench.asked).toHaveLength(2)
})

test('A9: counts the age from the question, so a slow answer is not kept longer', async () => {
  const bench = createBench()
  const found = bench.cache.find('v1')
  bench.advance(4000)
  bench.asked[0]?.answer(stored('key_1'))
  await found
  bench.advance(1000)
  expect(bench.cache.find('v1')).toBeInstanceOf(Promise)
})

test('asks once for many that wait for the same key', async () => {
  const bench = createBench()
  const waiting = Array.from({ length: 100 }, () => bench.cache.find('v1'))
  expect(bench.asked).toHaveLength(1)
  const key = stored('key_1')
  bench.asked[0]?.answer(key)
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => key))
})

test('does not remember a failed question', async () => {
  const bench = createBench()
  const found = bench.cache.find('v1') as Promise<unknown>
  bench.asked[0]?.fail(new Error('gone'))
  await expect(found).rejects.toThrow('gone')
  await bench.fill('v1', stored('key_1'))
})

test('A9: an invalidated key is asked for at the next request, the others are not', async () => {
  const bench = createBench()
  await bench.fill('v1', stored('key_1'))
  await bench.fill('v2', stored('key_2'))
  bench.cache.invalidate('key_1')
  expect(bench.cache.find('v2')).not.toBeInstanceOf(Promise)
  await bench.fill('v1', stored('key_1'))
})

test('T6: a changed project or workspace is asked for by all of its keys, and by no others', async () => {
  const bench = createBench()
  const remembered = () => ['v1', 'v2', 'v3'].filter((verifier) => !(bench.cache.find(verifier) instanceof Promise))
  await bench.fill('v1', stored('key_1', 'prj_1', 'ws_1'))
  await bench.fill('v2', stored('key_2', 'prj_2', 'ws_1'))
  await bench.fill('v3', stored('key_3', 'prj_3', 'ws_2'))
  bench.cache.invalidate('prj_1')
  expect(remembered()).toEqual(['v2', 'v3'])
  bench.cache.invalidate('ws_1')
  expect(remembered()).toEqual(['v3'])
})

test('A9: an answer that was under way when the key was invalidated is neither kept nor shared', async () => {
  const bench = createBench()
  const before = bench.cache.find('v1')
  bench.cache.invalidate('key_1')
  const after = bench.cache.find('v1')
  expect(bench.asked).toHaveLength(2)
  const [old, revoked] = [stored('key_1'), { ...stored('key_1'), revokedAt: 1 }]
  bench.asked[1]?.answer(revoked)
  expect(await after).toBe(revoked)
  bench.asked[0]?.answer(old)
  expect(await before).toBe(old)
  expect(bench.cache.find('v1')).toBe(revoked)
})

test('A9: a flood of unknown keys is bounded and leaves the known ones in place', async () => {
  const bench = createBench()
  await bench.fill('known', stored('key_1'))
  for (let n = 0; n < 10_001; n++) await bench.fill(`invented ${n}`, undefined)
  expect(bench.cache.find('known')).not.toBeInstanceOf(Promise)
  expect(bench.cache.find('invented 1')).toBeUndefined()
  expect(bench.cache.find('invented 0')).toBeInstanceOf(Promise)
})

test('A9: known keys are bounded too; the oldest goes', async () => {
  const bench = createBench()
  for (let n = 0; n < 10_001; n++) await bench.fill(`v${n}`, stored(`key_${n}`))
  expect(bench.cache.find('v1')).not.toBeInstanceOf(Promise)
  expect(bench.cache.find('v0')).toBeInstanceOf(Promise)
})
