// What a disk has after a power cut, worked out from the system calls of a process: only what a successful sync covered. A
// sync that fails makes the kernel forget what it could not write: a later sync succeeds without it, although programs
// still read it.

import { readTrace, type TracedCall } from './crash-trace.ts'

const pageBytes = 4096

interface ModelFile {
  /** What programs read. */
  cache: Buffer
  disk: Buffer
  /** Pages that the next sync writes. */
  readonly dirty: Set<number>
  /** The shortest length since the last sync; undefined = it was not cut off. */
  cutTo: number | undefined
}

export class ModelDisk {
  readonly #files = new Map<string, ModelFile>()

  /** A file that is on the disk. */
  add(path: string, content: Buffer): void {
    this.#files.set(path, { cache: content, disk: content, dirty: new Set(), cutTo: undefined })
  }

  /** What a traced process did to files of these paths. */
  replay(trace: string, paths: readonly string[]): void {
    for (const call of readTrace(trace)) if (paths.includes(call.target)) this.#apply(call)
  }

  afterPowerCut(path: string): Buffer {
    return this.#fileOf(path).disk
  }

  #fileOf(path: string): ModelFile {
    const known = this.#files.get(path)
    if (known) return known
    const none = Buffer.alloc(0)
    const file: ModelFile = { cache: none, disk: none, dirty: new Set(), cutTo: undefined }
    this.#files.set(path, file)
    return file
  }

  #apply({ name, target, text, result }: TracedCall): void {
    const file = this.#fileOf(target)
    if (name === 'fsync' || name === 'fdatasync') {
      if (result === 0) writeBack(file)
      file.dirty.clear()
      return
    }
    if (result < 0) return
    if (name === 'ftruncate') {
      const length = Number(/, (\d+)\)/.exec(text)?.[1])
      if (length < file.cache.length) file.cutTo = Math.min(file.cutTo ?? length, length)
      file.cache = resized(file.cache, length)
      return
    }
    if (name !== 'pwrite64') throw new Error(`the model does not know ${name}`)
    const [, quoted = '', offset = ''] = /"((?:[^"\\]|\\.)*)", \d+, (\d+)\)/.exec(text) ?? []
    const bytes = unescaped(quoted).subarray(0, result)
    const at = Number(offset)
    if (bytes.length !== result) throw new Error(`the trace does not show the ${result} bytes that were written`)
    const end = at + result
    file.cache = resized(file.cache, Math.max(file.cache.length, end))
    bytes.copy(file.cache, at)
    for (let page = Math.floor(at / pageBytes); page * pageBytes < end; page++) file.dirty.add(page)
  }
}

function writeBack(file: ModelFile): void {
  file.disk = resized(resized(file.disk, file.cutTo ?? file.disk.length), file.cache.length)
  file.cutTo = undefined
  for (const page of file.dirty) file.cache.copy(file.disk, page * pageBytes, page * pageBytes, (page + 1) * pageBytes)
}

/** A copy that is cut off or filled with zeros. */
function resized(content: Buffer, length: number): Buffer {
  return Buffer.concat([content.subarray(0, length)], length)
}

const escapes: Readonly<Record<string, number>> = { n: 10, t: 9, v: 11, f: 12, r: 13 }

/** The bytes of a string as strace prints it. */
function unescaped(quoted: string): Buffer {
  const text = quoted.replaceAll(/\\([0-7]{1,3}|.)/g, (_, code: string) =>
    String.fromCharCode(/^[0-7]/.test(code) ? Number.parseInt(code, 8) : (escapes[code] ?? code.charCodeAt(0))),
  )
  return Buffer.from(text, 'latin1')
}
