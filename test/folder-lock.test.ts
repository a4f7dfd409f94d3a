import { expect, test } from 'bun:test'
import { closeSync, fstatSync, openSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { FolderInUse, lockDataFolder } from '../src/store/folder-lock.ts'
import { createThrowAwayFolder } from './parts/engines.ts'

function startHolder(folder: string) {
  return Bun.spawn([process.execPath, join(import.meta.dir, 'parts/lock-folder-child.ts'), folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
}

async function firstLine(holder: ReturnType<typeof startHolder>): Promise<string> {
  let text = ''
  for await (const chunk of holder.stdout) {
    text += Buffer.from(chunk).toString()
    if (text.includes('\n')) break
  }
  return text.trim()
}

test('a second process is refused with the first one named, and nothing is changed by it', async () => {
  using folder = createThrowAwayFolder()
  const first = startHolder(folder.path)
  expect(await firstLine(first)).toBe('locked')
  for (let attempt = 0; attempt < 2; attempt++) {
    const second = startHolder(folder.path)
    expect(await firstLine(second)).toBe(
      `Another Tollgate (process ${first.pid}) is using ${folder.path}. Stop it, or set TOLLGATE_DATA to another folder.`,
    )
    expect(await second.exited).toBe(1)
  }
  await first.stdin.end()
  expect(await first.exited).toBe(0)
})

test('a killed holder frees the folder at once, again and again', async () => {
  using folder = createThrowAwayFolder()
  for (let round = 0; round < 3; round++) {
    const holder = startHolder(folder.path)
    expect(await firstLine(holder)).toBe('locked')
    holder.kill('SIGKILL')
    await holder.exited
  }
  const lock = lockDataFolder(folder.path)
  expect(readdirSync(folder.path).sort()).toEqual(['lock', 'lock-holder'])
  lock.release()
})

test('the lock holds inside one process too, and a refused attempt does not loosen it', async () => {
  using folder = createThrowAwayFolder()
  const lock = lockDataFolder(folder.path)
  expect(() => lockDataFolder(folder.path)).toThrow(FolderInUse)
  const other = startHolder(folder.path)
  expect(await firstLine(other)).toStartWith(`Another Tollgate (process ${process.pid}) is using`)
  await other.exited
  lock.release()
  lockDataFolder(folder.path).release()
})

test('a lock whose files were deleted still holds', async () => {
  using folder = createThrowAwayFolder()
  const lock = lockDataFolder(folder.path)
  for (const name of ['lock', 'lock-holder']) rmSync(join(folder.path, name))
  const other = startHolder(folder.path)
  expect(await firstLine(other)).toStartWith(`Another Tollgate is using ${folder.path}`)
  await other.exited
  lock.release()
  lockDataFolder(folder.path).release()
})

test('the files of the lock are private', () => {
  using folder = createThrowAwayFolder()
  const lock = lockDataFolder(folder.path)
  for (const name of ['lock', 'lock-holder']) expect(statSync(join(folder.path, name)).mode & 0o777).toBe(0o600)
  lock.release()
})

test('a folder that is not there is refused with its name', () => {
  expect(() => lockDataFolder('/nowhere/data')).toThrow('Cannot lock the data folder /nowhere/data: ')
})

test('a lock that is released twice closes no file of somebody else', () => {
  using folder = createThrowAwayFolder()
  const lock = lockDataFolder(folder.path)
  lock.release()
  // The lowest free number, which was the lock's.
  const descriptor = openSync(join(folder.path, 'lock-holder'), 'r')
  lock.release()
  expect(fstatSync(descriptor).isFile()).toBe(true)
  closeSync(descriptor)
})
