// Makes the kernel answer a running process's writes to one file with an error, as it does on a file system that was
// remounted read-only after a fault of the disk, and lets it write again. Needs strace.

export interface Injection {
  /** The process writes as before. */
  end(): Promise<void>
}

/** Resolves when every thread of the process is under it. */
export async function injectWriteError(pid: number, file: string, error: 'EROFS' | 'EIO'): Promise<Injection> {
  const calls = 'pwrite64,pwritev,write,ftruncate,fsync,fdatasync'
  const child = Bun.spawn(
    ['strace', '-f', '-p', String(pid), '-P', file, '-e', `inject=${calls}:error=${error}`, '-o', '/dev/null'],
    { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  )
  const decoder = new TextDecoder()
  let said = ''
  const reader = child.stderr.getReader()
  while (!/attached/.test(said)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`strace did not attach: ${said}`)
    said += decoder.decode(value, { stream: true })
  }
  return {
    async end() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}
