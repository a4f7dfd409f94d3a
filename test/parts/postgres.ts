// A private, throw-away PostgreSQL server, for the tests of one process or of a whole run: on a free port, in a folder of
// its own, gone when the process that started it ends, however it ends. Its data is worthless, so it may skip syncs; the
// product never does.

import { chownSync, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { systemClock } from '../../src/kernel/clock.ts'
import { migrate } from '../../src/store/migrate.ts'
import { openDatabase } from '../../src/store/open-database.ts'
import { freePort } from './free-port.ts'

const debianRoot = '/usr/lib/postgresql'
const superuser = 'tollgate'
const startAttempts = 3
/** A database with our tables and nothing in them, from which others are copied. */
const template = 'migrated'
/** Name what preparePostgres made, for the processes of a whole test run: the data folder, and the server's port. */
const preparedVariable = 'TOLLGATE_TEST_POSTGRES'
const portVariable = 'TOLLGATE_TEST_POSTGRES_PORT'
/** The server of a whole run has the tests of every process at once. */
const connectionsMax = 500

export interface PostgresServer {
  /** A new, empty database; its URL. `icuLocale`: whose order of text it has; absent = that of the bytes. */
  createDatabase(icuLocale?: string): Promise<string>
  /** A new database with our tables; its URL. */
  createMigrated(): Promise<string>
  /** Makes what those are copied from, once; they see to it themselves. */
  makeTemplate(): Promise<void>
  readonly port: number
  /** Not needed at the end of a test process: the server stops by itself. */
  stop(): Promise<void>
}

/** The folder with `initdb` and `postgres`, on the PATH or where Debian puts them; undefined = not installed. */
export function findPostgresPrograms(): string | undefined {
  const onPath = Bun.which('initdb')
  if (onPath !== null && Bun.which('postgres') !== null) return join(onPath, '..')
  if (!existsSync(debianRoot)) return undefined
  const versions = readdirSync(debianRoot).sort((a, b) => Number(b) - Number(a))
  return versions
    .map((version) => join(debianRoot, version, 'bin'))
    .find((folder) => existsSync(join(folder, 'initdb')))
}

/** By whatever path a file imports this module, there is one server for it. */
const shared = globalThis as { [key: symbol]: Promise<PostgresServer> | undefined }
const serverKey = Symbol.for('tollgate.test.postgres')

/** The server of the whole run, or that of this process, which is started at the first call. */
export function sharedPostgres(): Promise<PostgresServer> {
  shared[serverKey] ??= findOrStart()
  return shared[serverKey]
}

async function findOrStart(): Promise<PostgresServer> {
  const port = process.env[portVariable]
  return port === undefined ? await startPostgres() : connectTo({ port: Number(port), isMigrated: true })
}

/** A server that runs, and the data folder of one that was stopped. */
export interface PreparedPostgres extends AsyncDisposable {
  /** For the environment of the tests. */
  readonly env: Readonly<Record<string, string>>
}

/** Starts a server for all files of a run, and prepares the data folder that separate servers start with. */
export async function preparePostgres(): Promise<PreparedPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-pg-prepared-'))
  // Clears up when this process is gone, however it ends.
  const sweeper = Bun.spawn(['sh', '-c', `trap '' INT TERM HUP; cat >/dev/null; rm -rf "$0"`, folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const first = await startPostgres(undefined, folder)
  await first.makeTemplate()
  await first.stop()
  const data = join(folder, 'data')
  const server = await startPostgres(data)
  return {
    env: { [preparedVariable]: data, [portVariable]: String(server.port) },
    async [Symbol.asyncDispose]() {
      await server.stop()
      await sweeper.stdin.end()
      await sweeper.exited
    },
  }
}

/** `source`: a prepared data folder to begin with. `kept`: where the server lives and what it leaves behind. */
async function startPostgres(source?: string, kept?: string): Promise<PostgresServer> {
  const programs = findPostgresPrograms()
  if (programs === undefined) throw new Error('PostgreSQL is not installed; ask findPostgresPrograms first')
  let failure: unknown
  for (let attempt = 0; attempt < startAttempts; attempt++) {
    try {
      return await startOnFreePort({ programs, source, kept })
    } catch (thrown) {
      // Most likely someone else took the port between finding it free and using it.
      failure = thrown
    }
  }
  throw failure
}

/** Makes the data folder of a server in the current one. */
export const makeData = `
rm -rf data
if [ -n "$SOURCE" ]; then cp -R "$SOURCE" data
else "$PROGRAMS/initdb" -D data -U ${superuser} --auth=trust --no-sync --wal-segsize=4 --locale=C --encoding=UTF8
fi >log 2>&1 || { cat log >&2; exit 1; }
`

/** Programs that makeData needs beside PROGRAMS. */
export const sourceVariables = (source = process.env[preparedVariable]): Record<string, string> =>
  source === undefined ? {} : { SOURCE: source }

/**
 * Runs the server until it dies or until the script's input ends, which happens when the test process is gone, even by
 * kill -9; then clears up. Signals from the terminal are for the test process alone.
 */
const keeperScript = `
trap '' INT TERM HUP
cd "$FOLDER" || exit 1
[ -n "$KEPT" ] || trap 'cd / && rm -rf "$FOLDER"' EXIT
${makeData}
"$PROGRAMS/postgres" -D data -p "$PORT" -k "$FOLDER" -c listen_addresses=127.0.0.1 \
  -c max_connections=${connectionsMax} -c fsync=off -c full_page_writes=off -c autovacuum=off >log 2>&1 &
server=$!
exec 3<&0
{ cat <&3 >/dev/null; kill -\${KEPT:-QUIT} $server; } 2>/dev/null &
wait $server
cat log >&2
exit 1
`

interface Start {
  readonly programs: string
  readonly source: string | undefined
  readonly kept: string | undefined
}

async function startOnFreePort({ programs, source, kept }: Start): Promise<PostgresServer> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'tollgate-pg-'))
  const port = freePort()
  const keeper = Bun.spawn([...asOrdinaryUser(folder), 'sh', '-c', keeperScript], {
    env: {
      PATH: process.env.PATH ?? '',
      PROGRAMS: programs,
      FOLDER: folder,
      PORT: String(port),
      ...sourceVariables(source),
      // The signal for a clean shutdown, after which a copy of the data folder needs no recovery.
      ...(kept !== undefined && { KEPT: 'INT' }),
    },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  keeper.unref()
  const server = connectTo({ port, isMigrated: source !== undefined, keeper })
  await untilReady(server.admin, keeper)
  return server
}

type Keeper = Bun.Subprocess<'pipe', 'ignore', 'pipe'>

interface Connection {
  readonly port: number
  /** Whether the template is there already. */
  readonly isMigrated: boolean
  /** Absent = somebody else's server. Holding on to it matters: were it collected, the server would end. */
  readonly keeper?: Keeper
}

function connectTo({ port, isMigrated, keeper }: Connection): PostgresServer & { readonly admin: SQL } {
  const url = (database: string) => `postgres://${superuser}@127.0.0.1:${port}/${database}`
  // It is not closed at the end of a test file, and the next file opens another.
  const admin = new SQL({ adapter: 'postgres', url: url('postgres'), max: 1, idleTimeout: 1 })
  const create = async (how: string) => {
    const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
    await admin.unsafe(`CREATE DATABASE ${name} ${how}`)
    return url(name)
  }
  let migrated = isMigrated ? Promise.resolve() : undefined
  const makeMigrated = async () => {
    await admin.unsafe(`CREATE DATABASE ${template}`)
    const database = await openDatabase({ url: url(template), dataFolder: tmpdir() })
    await migrate({ database, clock: systemClock })
    await database.close()
  }
  const makeTemplate = () => {
    migrated ??= makeMigrated()
    return migrated
  }
  return {
    port,
    admin,
    createDatabase: (icuLocale) =>
      create(icuLocale === undefined ? '' : `LOCALE_PROVIDER icu ICU_LOCALE '${icuLocale}' TEMPLATE template0`),
    makeTemplate,
    async createMigrated() {
      await makeTemplate()
      return await create(`TEMPLATE ${template}`)
    },
    async stop() {
      await admin.close()
      await keeper?.stdin.end()
      await keeper?.exited
    },
  }
}

async function untilReady(admin: SQL, keeper: Keeper): Promise<void> {
  for (;;) {
    try {
      await admin`SELECT 1`
      return
    } catch {
      if (keeper.exitCode !== null) {
        await admin.close()
        throw new Error(`PostgreSQL did not start:\n${await new Response(keeper.stderr).text()}`)
      }
      await Bun.sleep(50)
    }
  }
}

/** PostgreSQL refuses to run as root; Debian's package brings a user for it. */
export function asOrdinaryUser(folder: string): string[] {
  if (process.getuid?.() !== 0) return []
  const idOf = (flag: string) => Number(Bun.spawnSync(['id', flag, 'postgres']).stdout.toString())
  const [user, group] = [idOf('-u'), idOf('-g')]
  if (!user || !group) throw new Error('running as root, and there is no user "postgres" to run PostgreSQL as')
  chownSync(folder, user, group)
  if (Bun.which('setpriv') === null) return ['runuser', '-u', 'postgres', '--']
  return ['setpriv', `--reuid=${user}`, `--regid=${group}`, '--clear-groups']
}
