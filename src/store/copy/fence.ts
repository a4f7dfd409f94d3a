// The mark in a data folder whose database was moved to PostgreSQL. Two gateways, one on each copy, would spend every
// balance twice; so the embedded database is not served again while the mark is there. Removing it is a person's decision.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DataFolder } from '../data-folder.ts'
import { StartRefusal } from '../start-refusal.ts'

const fenceFile = 'moved-to-postgres'

/** `target` without a password; `at` for people. On return it is on the disk. */
export function writeFence(folder: DataFolder, target: string, at: string): void {
  folder.write(fenceFile, `${target} on ${at}\n`)
}

/** Throws a StartRefusal if the folder's database was moved. */
export function assertNotFenced(folder: string): void {
  const file = join(folder, fenceFile)
  if (!existsSync(file)) return
  throw new StartRefusal(
    `The database in ${folder} was moved to ${readFileSync(file, 'utf8').trim()}; served from here as well, its wallets would be spent twice. Set DATABASE_URL to where it is now. Only if nothing was ever served from there: delete ${file}`,
  )
}
