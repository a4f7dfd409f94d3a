// Makes the kernel answer a running process's writes to one file with an error, as it does on a file system that was
// remounted read-only after a fault of the disk, or makes a sync of it take long; and lets it go on. Needs strace.

export interface Injection {
  /** The process writes as before. */
  end(): Promise<void>
}

export function injectWriteError(pid: number, file: string, error: 'EROFS' | 'EIO'): Promise<Injection> {
  return inject(pid, file, `pwrite64,pwritev,write,ftruncate,fsync,fdatasync:error=${error}`)
}

/** The next sync of the file takes so much longer, or until the end of the injection. */
export function injectSlowSync(pid: number, file: string, seconds: number): Promise<Injection> {
  // On SIGTERM, strace would wait for the delay to end even if the process was killed in it.
  return inject(pid, file, `fsync,fdatasync:delay_enter=${seconds * 1_000_000}:when=1`, 'SIGKILL')
}

/** Resolves when every thread of the process is under it. */
async function inject(
  pid: number,
  file: string,
  what: string,
  endSignal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM',
): Promise<Injection> {
  const child = Bun.spawn(['strace', '-f', '-p', String(pid), '-P', file, '-e', `inject=${what}`, '-o', '/dev/null'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const decoder = new TextDecoder()
  let said = ''
  const reader = child.stderr.getReader()
  while (!/attached/.test(said)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`strace did not attach: ${said}`)
    said += decoder.decode(value, { stream: true })
  }
  // The test process may end first.
  const killAtExit = () => child.kill('SIGKILL')
  process.on('exit', killAtExit)
  return {
    async end() {
      process.off('exit', killAtExit)
      child.kill(endSignal)
      await child.exited
    },
  }
}
