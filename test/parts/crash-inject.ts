// Makes the kernel answer a running process's writes to one file, or its syncs, with an error, as it does when a disk fails
// or was remounted read-only, or makes a sync take long; and lets the process go on. Needs strace.

import { readLines } from './crash-gateway.ts'

export interface Injection {
  /** Calls that it has changed. */
  hits(): number
  /** The process writes as before. */
  end(): Promise<void>
}

export function injectWriteError(
  pids: readonly number[],
  file: string,
  error: 'EROFS' | 'EIO' | 'ENOSPC',
): Promise<Injection> {
  return inject(pids, file, `pwrite64,pwritev,write,ftruncate,fsync,fdatasync:error=${error}`)
}

/** What is written stays in the kernel's memory, and no sync of it succeeds. Without a file: of any. */
export function injectSyncError(pids: readonly number[], file?: string): Promise<Injection> {
  return inject(pids, file, 'fsync,fdatasync:error=EIO')
}

/** The next sync of the file, or a later one, takes so much longer, or until the end of the injection. */
export function injectSlowSync(pid: number, file: string, seconds: number, nth = 1): Promise<Injection> {
  return inject([pid], file, `fsync,fdatasync:delay_enter=${seconds * 1_000_000}:when=${nth}`)
}

/** Resolves when every thread of the processes is under it. */
async function inject(pids: readonly number[], file: string | undefined, what: string): Promise<Injection> {
  const targets = [...pids.flatMap((pid) => ['-p', String(pid)]), ...(file === undefined ? [] : ['-P', file])]
  const calls = what.slice(0, what.indexOf(':'))
  const child = Bun.spawn(['strace', '-f', ...targets, '-e', `trace=${calls}`, '-e', `inject=${what}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let hits = 0
  let count = 0
  let said = ''
  const attached = Promise.withResolvers<void>()
  const reading = readLines(child.stderr, (line) => {
    if (/^strace: Process \d+ attached/.test(line) && ++count === pids.length) attached.resolve()
    if (/\((INJECTED|DELAYED)\)$/.test(line)) hits++
    if (count < pids.length) said += `${line}\n`
  }).then(() => attached.reject(new Error(`strace did not attach: ${said}`)))
  await attached.promise
  // The test process may end first.
  const killAtExit = () => child.kill('SIGKILL')
  process.on('exit', killAtExit)
  return {
    hits: () => hits,
    async end() {
      process.off('exit', killAtExit)
      // On SIGTERM, strace waits for a delay to end, and for ever for a process that was killed meanwhile.
      child.kill('SIGKILL')
      await child.exited
      await reading
    },
  }
}
