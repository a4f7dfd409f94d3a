// The private PostgreSQL of a benchmark: unlike that of the tests it syncs, because that is what is measured.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { freePort } from '../test/parts/free-port.ts'
import { asOrdinaryUser } from '../test/parts/postgres.ts'

export interface Server extends AsyncDisposable {
  readonly pid: number
  readonly port: number
  createDatabase(): Promise<string>
}

export async function startServer(programs: string): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-pg-'))
  const port = freePort()
  const asUser = asOrdinaryUser(folder)
  const data = join(folder, 'data')
  const init = [join(programs, 'initdb'), '-D', data, '-U', 'tollgate', '--auth=trust', '--locale=C', '--encoding=UTF8']
  const made = Bun.spawnSync([...asUser, ...init], { cwd: folder })
  if (made.exitCode !== 0) throw new Error(made.stderr.toString())
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', 'shared_buffers=256MB', '-c', 'max_wal_size=2GB']
  const command = [join(programs, 'postgres'), '-D', data, '-p', String(port), '-k', folder, ...settings]
  const child = Bun.spawn([...asUser, ...command], { cwd: folder, stdout: 'ignore', stderr: 'ignore' })
  const url = (name: string) => `postgres://tollgate@127.0.0.1:${port}/${name}`
  const admin = new SQL({ adapter: 'postgres', url: url('postgres'), max: 1 })
  while (!(await admin`SELECT 1`.catch(() => undefined))) await Bun.sleep(50)
  let count = 0
  return {
    pid: child.pid,
    port,
    async createDatabase() {
      const name = `bench_${++count}`
      await admin.unsafe(`CREATE DATABASE ${name}`)
      return url(name)
    },
    async [Symbol.asyncDispose]() {
      await admin.close()
      child.kill('SIGINT')
      await child.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
