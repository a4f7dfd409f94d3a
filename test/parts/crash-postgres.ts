// A private PostgreSQL server that can be stopped and started again on the same data and port, for tests of what the
// gateway does without it. Gone with the test process, however that ends.

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { type Injection, injectSyncError, injectWriteError } from './crash-inject.ts'
import { freePort } from './free-port.ts'
import { asOrdinaryUser, findPostgresPrograms, makeData, sourceVariables } from './postgres.ts'

export interface CrashPostgres extends AsyncDisposable {
  /** A new, empty database; its URL. */
  createDatabase(): Promise<string>
  /** Cuts every connection at once and refuses new ones, as the death of the server's machine would. */
  cut(): Promise<void>
  /** Leaves connections open and answers nothing, as a machine that is out of its depth. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** The processes that work for it at this moment. */
  processes(): Promise<readonly number[]>
  /** Syncs of these fail, of all by default: the server panics at the next one, recovers from its log and goes on. */
  failSyncs(processes?: readonly number[]): Promise<Injection>
  /** The present processes find no room for the log: the server panics at the next commit too. */
  fillLog(): Promise<Injection>
  /** Writes everything to its files; fails if it panics meanwhile. */
  checkpoint(): Promise<void>
  /** Resolves when it answers, after a panic too. */
  recovered(): Promise<void>
  /** Resolves when it answers again. */
  start(): Promise<void>
}

/**
 * Runs one command per input line, and answers each with a line. When its input ends the test process is gone, and
 * so must be the server and its folder.
 */
const keeperScript = `
trap '' INT TERM HUP
cd "$FOLDER" || exit 1
trap 'cd / && rm -rf "$FOLDER"' EXIT
${makeData}
server=
frozen=
while read -r word; do
  case $word in
    start)
      "$PROGRAMS/postgres" -D data -p "$PORT" -k "$FOLDER" -c listen_addresses=127.0.0.1 -c max_connections=100 \
        -c fsync="$SYNC" -c wal_sync_method=fdatasync -c full_page_writes=off \
        -c restart_after_crash="$RESTARTS" >>log 2>&1 &
      server=$! ;;
    cut) kill -QUIT $server 2>/dev/null; wait $server; server= ;;
    freeze) frozen="$server $(cat /proc/$server/task/*/children)"; kill -STOP $frozen ;;
    thaw) kill -CONT $frozen ;;
    children) cat /proc/$server/task/*/children ;;
  esac
  echo done
done
[ -z "$server" ] || { kill -CONT $frozen; kill -QUIT $server; wait $server; } 2>/dev/null
`

/**
 * `syncs`: as in production; otherwise it trusts the kernel's memory, which is faster. `restarts`: by itself after a panic;
 * otherwise it is away until `start`.
 */
export async function startCrashPostgres({ syncs = false, restarts = true } = {}): Promise<CrashPostgres> {
  const programs = findPostgresPrograms()
  if (programs === undefined) throw new Error('PostgreSQL is not installed; ask findPostgresPrograms first')
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-pg-'))
  const port = freePort()
  const keeper = Bun.spawn([...asOrdinaryUser(folder), 'sh', '-c', keeperScript], {
    env: {
      PATH: process.env.PATH ?? '',
      PROGRAMS: programs,
      FOLDER: folder,
      PORT: String(port),
      SYNC: syncs ? 'on' : 'off',
      RESTARTS: restarts ? 'on' : 'off',
      ...sourceVariables(),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const answers = keeper.stdout.getReader()
  /** What the command printed. */
  const tell = async (word: 'start' | 'cut' | 'freeze' | 'thaw' | 'children'): Promise<string> => {
    keeper.stdin.write(`${word}\n`)
    await keeper.stdin.flush()
    let answer = ''
    while (!answer.endsWith('done\n')) {
      const { done, value } = await answers.read()
      if (done) throw new Error(`PostgreSQL did not ${word}: ${answer}`)
      answer += new TextDecoder().decode(value)
    }
    return answer.slice(0, -'done\n'.length)
  }
  const processes = async () => (await tell('children')).trim().split(/\s+/).map(Number)
  const url = (database: string) => `postgres://tollgate@127.0.0.1:${port}/${database}`
  const start = async () => {
    await tell('start')
    await untilReady(url('postgres'))
  }
  await start()
  let count = 0
  return {
    async createDatabase() {
      const name = `test_${++count}`
      await using admin = new SQL({ adapter: 'postgres', url: url('postgres'), max: 1 })
      await admin.unsafe(`CREATE DATABASE ${name}`)
      return url(name)
    },
    cut: async () => void (await tell('cut')),
    freeze: async () => void (await tell('freeze')),
    thaw: async () => void (await tell('thaw')),
    processes,
    failSyncs: async (some) => await injectSyncError(some ?? (await processes())),
    async fillLog() {
      await using admin = new SQL({ adapter: 'postgres', url: url('postgres'), max: 1 })
      const [log] = await admin`SELECT pg_walfile_name(pg_current_wal_insert_lsn()) AS name`
      return await injectWriteError(await processes(), join(folder, 'data', 'pg_wal', log.name), 'ENOSPC')
    },
    async checkpoint() {
      await using admin = new SQL({ adapter: 'postgres', url: url('postgres'), max: 1 })
      await admin`CHECKPOINT`
    },
    recovered: () => untilReady(url('postgres')),
    start,
    async [Symbol.asyncDispose]() {
      await keeper.stdin.end()
      await keeper.exited
    },
  }
}

async function untilReady(url: string): Promise<void> {
  for (;;) {
    try {
      await using admin = new SQL({ adapter: 'postgres', url, max: 1 })
      await admin`SELECT 1`
      return
    } catch {
      await Bun.sleep(20)
    }
  }
}
