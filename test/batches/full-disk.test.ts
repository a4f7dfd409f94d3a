// A disk that fills up while a file is uploaded, and while a batch runs: nothing of the upload is stored, and every line of the
// batch has one answer and one charge once there is room again. SQLite only: PostgreSQL has its data elsewhere.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../src/store/open-database.ts'
import { mayMount, mountSmallDisk } from '../parts/crash-disk.ts'
import { everyConfig, startGateway, stopAll } from '../parts/gateway.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'
import { batchesOn, call, chatLine, createOf, formOf, linesIn, until } from './parts.ts'

const lines = 12

test.skipIf(!mayMount())('a full disk stores nothing by halves, and costs no line its answer', async () => {
  using disk = mountSmallDisk()
  if (!disk) throw new Error('no file system could be mounted')
  const dataFolder = join(disk.path, 'data')
  const upstream = startUpstream(answerHello)
  const gateway = await startGateway({
    config: everyConfig(upstream.url),
    env: { ...batchesOn, TOLLGATE_DATA: dataFolder },
  })
  const as = { url: gateway.url, key: readFileSync(join(dataFolder, 'first-key'), 'utf8').trim() }
  try {
    disk.fill()
    const refused = await call(as, 'POST', '/files', { body: formOf(chatLine('1', 'x'.repeat(4_000_000))) })
    expect([refused.status, refused.body.error.code]).toEqual([503, 'OVERLOADED'])
    expect(refused.body.error.message).toContain('no room on its disk')
    disk.empty()
    expect((await call(as, 'GET', '/files')).body.data).toEqual([])

    const [begun, full] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    upstream.handle(async (asked, reply) => {
      begun.resolve()
      await full.promise
      await answerHello(asked, reply)
    })
    const { id } = (
      await createOf(
        as,
        Array.from({ length: lines }, (_, at) => chatLine(`${at}`, 'hi')),
      )
    ).body
    await begun.promise
    disk.fill()
    full.resolve()
    // An answer that cannot be stored is not charged, and its line is tried again.
    while (!gateway.logged().some(({ code }) => code === 'OVERLOADED')) await Bun.sleep(20)
    disk.empty()
    const done = await until(as, id, 'completed')
    expect(done.request_counts).toEqual({ total: lines, completed: lines, failed: 0 })
    const answers = linesIn((await call(as, 'GET', `/files/${done.output_file_id}/content`)).text)
    expect(new Set(answers.map(({ custom_id }) => custom_id)).size).toBe(lines)
    const database = await openDatabase({ url: undefined, dataFolder })
    try {
      const [sums] = await database.sql`SELECT COUNT(*) AS charged,
        (SELECT COUNT(*) FROM batch_lines l JOIN requests r ON r.id = l.request_id
          WHERE l.batch_id = ${id} AND r.charge IS NOT NULL) AS answered,
        CAST(SUM(charge) AS BIGINT) - (SELECT CAST(SUM(5000000000 - posted) AS BIGINT) FROM balances) AS missing
        FROM requests WHERE batch_id = ${id} AND charge IS NOT NULL`
      expect(sums).toEqual({ charged: BigInt(lines), answered: BigInt(lines), missing: 0n })
    } finally {
      await database.close()
    }
  } finally {
    await stopAll(gateway, upstream)
  }
})
