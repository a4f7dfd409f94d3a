// The private PostgreSQL of a benchmark: unlike that of the tests it syncs, because that is what is measured.

import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'

export interface Server extends AsyncDisposable {
  readonly pid: number
  readonly port: number
  createDatabase(): Promise<string>
}

export async function startServer(programs: string): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-pg-'))
  const port = freePort()
  const asUser = ordinaryUser(folder)
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

/** PostgreSQL refuses to run as root; Debian's package brings a user for it. */
function ordinaryUser(folder: string): string[] {
  if (process.getuid?.() !== 0) return []
  const idOf = (flag: string) => Number(Bun.spawnSync(['id', flag, 'postgres']).stdout.toString())
  const [user, group] = [idOf('-u'), idOf('-g')]
  chownSync(folder, user, group)
  return ['setpriv', `--reuid=${user}`, `--regid=${group}`, '--clear-groups']
}

function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}
