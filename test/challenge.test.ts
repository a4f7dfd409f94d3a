// The overspend challenge as a stranger runs it: short against Tollgate on both engines, and against a gateway that keeps no
// limit and forgets what it served, which it has to find out.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forEachEngine } from './parts/engines.ts'
import { freePort } from './parts/free-port.ts'

const program = join(import.meta.dir, '../challenge/overspend.js')

interface Row {
  readonly attack: string
  readonly served: string
  readonly delivered: string
  readonly spent: string
  readonly over: string
  readonly uncharged: string
  readonly twice: string
}

async function challenge(...args: string[]) {
  const child = Bun.spawn(['node', program, ...args, '--out', '-'], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  const rows = out.trim().split('\n').filter(Boolean)
  return { exitCode, errors, rows: rows.map((line) => JSON.parse(line) as Row) }
}

const attacks = {
  sqlite: ['burst', 'leave-middle', 'usage-twice', 'one-key', 'crash'],
  // What a provider says and when a caller leaves is judged above the database.
  postgres: ['burst', 'one-key', 'crash'],
}
const variants = { sqlite: 'tollgate', postgres: 'tollgate-postgres' } as const

forEachEngine(({ name }) => {
  test('Tollgate charges every answer once and never more than the limit', async () => {
    const { exitCode, errors, rows } = await challenge(variants[name], '--attacks', attacks[name].join(','))
    expect(errors).toBe('')
    expect(rows.map(({ attack, over, uncharged, twice }) => [attack, over, uncharged, twice])).toEqual(
      attacks[name].map((attack) => [attack, '0.00', '0.00', '0.00']),
    )
    // The limit was used, so it was what stopped the calls.
    expect(Number(rows[0]?.spent)).toBeGreaterThan(0.95)
    expect(exitCode).toBe(0)
  })
})

test('a gateway that keeps no limit and forgets what it served is found out', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-challenge-'))
  const upstreamPort = freePort()
  using gateway = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 60,
    fetch: async (request) =>
      await fetch(`http://127.0.0.1:${upstreamPort}/v1/chat/completions`, {
        method: 'POST',
        body: await request.text(),
      }),
  })
  try {
    writeFileSync(join(folder, 'keys.txt'), 'key-1\nkey-2\n')
    const url = `http://127.0.0.1:${gateway.port}`
    const run = async (spent: string, names = 'burst') =>
      await challenge(
        ...['any', '--upstream-port', `${upstreamPort}`, '--base-url', url, '--keys', join(folder, 'keys.txt')],
        ...['--spent', `echo ${spent}`, '--settle-ms', '100', '--attacks', names],
      )
    const forgetful = await run('0.25')
    expect(forgetful.exitCode).toBe(1)
    // 400 calls of one cent.
    const all = { served: '4.00', delivered: '4.00', servedOver: '3.00' }
    expect(forgetful.rows[0]).toMatchObject({ ...all, uncharged: '3.75', over: '0.00', twice: '0.00' })
    const limitless = await run('4.01')
    expect(limitless.rows[0]).toMatchObject({ ...all, uncharged: '0.00', over: '3.01', twice: '0.01' })
    expect(limitless.exitCode).toBe(1)
    // Who leaves before an answer got nothing for nothing.
    const { rows } = await run('0', 'leave-before,leave-first')
    expect(rows[0]?.uncharged).toBe('0.00')
    expect(Number(rows[1]?.uncharged)).toBeGreaterThan(0)
    expect(rows[1]?.uncharged).toBe(rows[1]?.served)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
