// Row 14 of docs/reference/charges.md: while charges cannot be made durable no answer is completed and nothing new is sent to a
// provider. The disk is made to refuse by a lock that somebody else holds. A commit that waits for the lock after thirty
// seconds may still be made, so its error says that the outcome is unknown; requests behind it are certainly not charged.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createJumpClock, passTimeUntil } from '../parts/jump-clock.ts'
import { answerWith } from '../parts/upstream-words.ts'
import { allPaths, openTill } from './till.ts'

test('row 14: an answer that cannot be charged within thirty seconds ends with an error, on every path, and is not charged later', async () => {
  const clock = createJumpClock()
  const till = await openTill({ clock })
  till.upstream.handle(answerWith({ input: 7, output: 1 }))
  // Once before, so that what is tested is not the first start.
  const [usual] = allPaths
  if (usual) expect((await till.ask(usual)).status).toBe(200)

  const thief = new Database(join(till.gateway.dataFolder, 'tollgate.db'))
  thief.run('BEGIN IMMEDIATE')
  const answers = await passTimeUntil(clock, Promise.all(allPaths.map((path) => till.ask(path))))
  for (const [at, { status, text, headers }] of answers.entries()) {
    expect(text).toMatch(/"(code|reason)":"OVERLOADED"/)
    expect(text).toMatch(/Nothing was charged|it is not known yet whether it was charged/)
    expect(text).not.toMatch(/\[DONE\]|message_stop/)
    expect(status).toBe(allPaths[at]?.stream ? 200 : 503)
    if (!allPaths[at]?.stream) expect(headers.get('retry-after')).toMatch(/^[1-9]/)
  }

  const calls = till.upstream.calls.length
  for (const path of allPaths) {
    const refused = await till.ask(path)
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]/)
  }
  expect((await fetch(`${till.gateway.url}/readyz`)).status).toBe(503)
  expect(till.upstream.calls).toHaveLength(calls)

  // It stops when the last try has come back from the disk; only then may the lock go.
  await till.gateway.app.stop()
  thief.run('ROLLBACK')
  thief.close()
  for (const { requestId } of answers) expect(till.charges(requestId)).toEqual([])
  expect(till.chargeCount()).toBe(1)
  till.close()
})

test('the time that a commit takes is part of the duration, and named on the record when it was long', async () => {
  const clock = createJumpClock()
  const committed = Promise.withResolvers<void>()
  let settling = 0
  const till = await openTill({
    clock,
    wrapLedger: (real) => ({
      ...real,
      async settle(settlement) {
        settling += 1
        await committed.promise
        return await real.settle(settlement)
      },
    }),
  })
  till.upstream.handle(answerWith({ input: 7, output: 1 }))
  const asked = Promise.all(allPaths.map((path) => till.ask(path)))
  while (settling < allPaths.length) await Bun.sleep(5)
  clock.jump(6)
  committed.resolve()
  const answers = await asked
  await till.over(allPaths.length)
  for (const { requestId, status } of answers) {
    expect(status).toBe(200)
    const line = till.gateway.logged().find(({ request_id }) => request_id === requestId)
    expect(line?.total_ms).toBe(6_000)
    // Written when the row is there already.
    while (!(await till.line(requestId)).notes.includes('commit')) await Bun.sleep(5)
    expect(JSON.parse((await till.line(requestId)).notes)).toContain('the charge took 6.0 s to commit')
  }
  await till[Symbol.asyncDispose]()
})
