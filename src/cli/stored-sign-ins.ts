// The sign-ins of this user on this machine, one private file per gateway. A token is refreshed under a lock, because a
// refresh token is valid once: two processes that send the same one would otherwise end the sign-in.

import { Database } from 'bun:sqlite'
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type Clock, isoTime } from '../kernel/clock.ts'
import { exitCodes, Refusal } from './refusal.ts'
import { writeText } from './settings-file.ts'
import { reasonOf, refreshTokens, type Tokens } from './sign-in.ts'

const entrySchema = z.object({
  gateway: z.string(),
  email: z.string(),
  workspace: z.string().optional(),
  project: z.string().optional(),
  signed_in_at: z.iso.datetime(),
  access_token: z.string().min(1),
  access_expires_at: z.iso.datetime(),
  refresh_token: z.string().min(1),
})

export type SignIn = Readonly<z.output<typeof entrySchema>>

/** A refusal in one line, for programs that show the last or the only line of a helper. */
export class SignInRefusal extends Refusal {
  override text(): string {
    return `tollgate: ${this.message} Run: ${this.attempt}\n`
  }
}

export function signedOut(gateway: string, why = 'you are signed out'): SignInRefusal {
  return new SignInRefusal(exitCodes.failed, `${why} of ${gateway}.`, `tollgate login ${gateway}`)
}

/** A new access token is fetched when less than this is left of the old one. */
const refreshBeforeMs = 300_000
/** A helper that takes five seconds is ended by its caller, in mid-refresh. */
const helperMs = 4000
const lockPollMs = 20

export interface SignInStore {
  /** Newest first. */
  list(): readonly SignIn[]
  find(gateway: string): SignIn | undefined
  /** Keeps the tokens of a new sign-in, in place of an earlier one with this gateway, which is returned. */
  put(gateway: string, tokens: Tokens): Promise<SignIn | undefined>
  remove(gateway: string): Promise<SignIn | undefined>
  /** A sign-in whose access token is valid for minutes, refreshed if necessary. Throws when signed out. */
  fresh(gateway: string): Promise<SignIn>
}

export interface SignInStoreOptions {
  /** Where this user's programs keep their settings. */
  readonly configFolder: string
  readonly clock: Clock
}

export function tollgateFolder(configFolder: string): string {
  return join(configFolder, 'tollgate')
}

export function openSignIns({ configFolder, clock }: SignInStoreOptions): SignInStore {
  const folder = join(tollgateFolder(configFolder), 'sign-ins')
  const fileOf = (gateway: string) =>
    join(folder, `${gateway.replace('://', '-').replace(/[^A-Za-z0-9.-]/g, '_')}.json`)
  const find = (gateway: string) => {
    const entry = readEntry(fileOf(gateway))
    return entry?.gateway === gateway ? entry : undefined
  }
  const write = (gateway: string, signedInAt: string, tokens: Tokens): SignIn => {
    const entry: SignIn = {
      gateway,
      ...{ email: tokens.email, workspace: tokens.workspace, project: tokens.project },
      signed_in_at: signedInAt,
      access_token: tokens.access_token,
      access_expires_at: isoTime(Math.floor(clock.now() + tokens.expires_in * 1000)),
      refresh_token: tokens.refresh_token,
    }
    writeText(fileOf(gateway), `${JSON.stringify(entry, null, 2)}\n`)
    return entry
  }
  const leftMs = ({ access_expires_at }: SignIn) => Date.parse(access_expires_at) - clock.now()

  /** Runs alone among all processes of this user, or without the lock if another one holds it for too long. */
  async function alone<Result>(gateway: string, run: (isLocked: boolean) => Promise<Result> | Result): Promise<Result> {
    makePrivate(folder)
    const release = await takeLock(`${fileOf(gateway)}.lock`, clock)
    try {
      return await run(release !== undefined)
    } finally {
      release?.()
    }
  }

  async function refresh(gateway: string, isLocked: boolean, endMs: number): Promise<SignIn> {
    // Another process may have refreshed it in the meantime, or signed out.
    const entry = find(gateway)
    if (entry === undefined) throw signedOut(gateway)
    const left = leftMs(entry)
    if (left >= refreshBeforeMs) return entry
    const withinMs = Math.floor(endMs - clock.monotonicMs())
    const outcome =
      isLocked && withinMs > 0
        ? await refreshTokens(gateway, entry.refresh_token, withinMs)
        : { trouble: 'another process has been refreshing the token for seconds' }
    if ('access_token' in outcome) return write(gateway, entry.signed_in_at, outcome)
    if ('error' in outcome && outcome.error === 'invalid_grant') {
      rmSync(fileOf(gateway), { force: true })
      throw signedOut(gateway, `your sign-in has expired or was ended (${reasonOf(outcome)}); you are signed out`)
    }
    // Trouble that may pass: the old token serves while it is valid.
    if (left > 0) return entry
    const what = `the token has expired, and ${gateway} does not renew it: ${reasonOf(outcome)}.`
    throw new SignInRefusal(exitCodes.failed, what, 'the same command in a moment')
  }

  return {
    find,
    list() {
      if (!existsSync(folder)) return []
      const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
      const entries = files.flatMap((name) => readEntry(join(folder, name)) ?? [])
      return entries.toSorted((a, b) => b.signed_in_at.localeCompare(a.signed_in_at))
    },
    put: (gateway, tokens) =>
      alone(gateway, () => {
        const earlier = find(gateway)
        write(gateway, isoTime(clock.now()), tokens)
        return earlier
      }),
    remove: (gateway) =>
      alone(gateway, () => {
        const entry = find(gateway)
        rmSync(fileOf(gateway), { force: true })
        return entry
      }),
    async fresh(gateway) {
      const entry = find(gateway)
      if (entry === undefined) throw signedOut(gateway)
      if (leftMs(entry) >= refreshBeforeMs) return entry
      const endMs = clock.monotonicMs() + helperMs
      return await alone(gateway, (isLocked) => refresh(gateway, isLocked, endMs))
    },
  }
}

/** A file that is damaged, or of another version, counts as absent. */
function readEntry(file: string): SignIn | undefined {
  try {
    const parsed = entrySchema.safeParse(JSON.parse(readFileSync(file, 'utf8')))
    return parsed.success ? parsed.data : undefined
  } catch {
    return undefined
  }
}

const folderMode = 0o700
const fileMode = 0o600

function makePrivate(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: folderMode })
  chmodSync(folder, folderMode)
}

/** The longest wait for the lock: the holder waits at most `helperMs` for its answer. */
const lockWaitMs = 3000

/**
 * An open exclusive transaction on an empty database, as in the data folder: the system ends it with the process, also
 * after `kill -9`. undefined = another process has held it for too long.
 */
async function takeLock(file: string, clock: Clock): Promise<(() => void) | undefined> {
  closeSync(openSync(file, 'a', fileMode))
  const connection = new Database(file, { readwrite: true })
  const endMs = clock.monotonicMs() + lockWaitMs
  for (;;) {
    try {
      // In memory, or a killed process would leave a journal beside the lock.
      connection.run('PRAGMA journal_mode = MEMORY')
      connection.run('BEGIN EXCLUSIVE')
      return () => connection.close()
    } catch (thrown) {
      const isBusy = thrown instanceof Error && 'code' in thrown && thrown.code === 'SQLITE_BUSY'
      if (!isBusy || clock.monotonicMs() >= endMs) {
        connection.close()
        if (isBusy) return undefined
        throw new Refusal(
          exitCodes.failed,
          `${file} cannot be locked: ${thrown}.`,
          'the owner of the folder, and the disk',
        )
      }
    }
    await Bun.sleep(lockPollMs)
  }
}
