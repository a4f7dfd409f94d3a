// A disk that fills up: a small file system in memory, which can be filled to the last byte and emptied again. Making
// one needs privileges; where they are missing, its tests are skipped by name.

import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk extends Disposable {
  readonly path: string
  fill(): void
  empty(): void
}

const size = '24m'

/** undefined = not allowed here. */
export function mountSmallDisk(): SmallDisk | undefined {
  const path = mkdtempSync(join(tmpdir(), 'tollgate-disk-'))
  const unmade = () => rmSync(path, { recursive: true, force: true })
  if (Bun.which('mount') === null || !run('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path)) {
    unmade()
    return undefined
  }
  const filler = join(path, 'filler')
  const unmount = () => {
    process.off('exit', unmount)
    run('umount', '--lazy', path)
    unmade()
  }
  // A test that runs out of time is not waited for, and a mount would outlive the process.
  process.on('exit', unmount)
  return { path, fill: () => fillUp(filler), empty: () => rmSync(filler), [Symbol.dispose]: unmount }
}

function run(...command: string[]): boolean {
  return Bun.spawnSync(command, { stdout: 'ignore', stderr: 'ignore' }).success
}

export function mayMount(): boolean {
  using disk = mountSmallDisk()
  return disk !== undefined
}

/** In ever smaller pieces, until not one more byte fits. */
function fillUp(file: string): void {
  const descriptor = openSync(file, 'w')
  for (let piece = 1024 * 1024; piece >= 1; piece = Math.floor(piece / 4)) {
    const bytes = new Uint8Array(piece)
    try {
      for (;;) writeSync(descriptor, bytes)
    } catch (thrown) {
      if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOSPC')) throw thrown
    }
  }
  closeSync(descriptor)
}
