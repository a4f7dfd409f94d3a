// Notices that a file has other content than before, however it got there: written in place, replaced by a rename, or
// reached through a symbolic link that now points elsewhere. It asks the file system again and again, because
// notifications are lost for exactly those cases and on network mounts.

import { readFile, stat } from 'node:fs/promises'

export interface FileWatch {
  close(): void
}

export interface FileWatchOptions {
  /** Called once per change; whether the file is there, and what is in it, is for the callee to find out. */
  onChange(): void
  /** Digest of the content known already, undefined for no file; without it, what the first look finds. */
  readonly known?: { readonly digest: string | undefined }
  readonly intervalMs?: number
}

/** Stands for a file that is not there, or cannot be read; a digest is never a word. */
type Content = string | 'absent' | 'unreadable'

/**
 * A change is reported when two looks in a row find the same new content, so that a file caught halfway through being
 * written, or between an editor's delete and rename, is not taken for the new configuration.
 */
export function watchConfigFile(path: string, options: FileWatchOptions): FileWatch {
  const intervalMs = options.intervalMs ?? 500
  let reported: Content | undefined = options.known && (options.known.digest ?? 'absent')
  let pending: Content | undefined
  let lastState: string | undefined
  let settledState: string | undefined
  let closed = false
  let timer: ReturnType<typeof setTimeout> | undefined

  const look = async (): Promise<void> => {
    const state = await fileState(path)
    if (closed || state === settledState) return
    const content = await fileContent(path)
    if (closed) return
    // File times advance in steps of some milliseconds: a state seen once may still cover another write.
    const settled = state === lastState
    lastState = state
    reported ??= content
    const changed = content !== reported
    if (changed && content !== pending) {
      pending = content
      return
    }
    reported = content
    pending = undefined
    if (settled) settledState = state
    if (changed) options.onChange()
  }
  const again = (): void => {
    timer = setTimeout(() => void look().finally(() => closed || again()), intervalMs)
    // Watching a file is no reason for a process to stay.
    timer.unref()
  }
  again()
  return {
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}

/** Changes whenever the file behind the path is another one or was written to. */
async function fileState(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = await stat(path)
    return [dev, ino, size, mtimeMs, ctimeMs].join(':')
  } catch {
    return 'absent'
  }
}

async function fileContent(path: string): Promise<Content> {
  try {
    return contentDigest(await readFile(path, 'utf8'))
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'absent' : 'unreadable'
  }
}

export function contentDigest(text: string): string {
  return new Bun.CryptoHasher('sha256').update(text).digest('hex')
}
