// How the end users of a workspace are recorded: under a hash that differs between workspaces, so that requests of one
// person can be added up without storing who it is.

import { endUserHashDigits } from '../kernel/attribution.ts'
import type { Sql } from '../store/sql.ts'

/** `plain`: the id that was sent is recorded beside the hash. */
export type EndUserMode = 'hashed' | 'plain' | 'off'

/** Characters of an id that are kept where ids are recorded. */
const plainMax = 128

/** Without the salt, which is erased with the workspace, it cannot be traced back. */
export function hashEndUser(salt: string, user: string): string {
  return `eu_${new Bun.CryptoHasher('sha256', salt).update(user).digest('hex').slice(0, endUserHashDigits)}`
}

export function recordedEndUser(salt: string, user: string, mode: 'hashed' | 'plain'): string {
  const hash = hashEndUser(salt, user)
  return mode === 'plain' ? `${hash} ${user.slice(0, plainMax)}` : hash
}

/** The hash of an end user by the id that clients send; a hash stays as it is, and so does an id without a salt. */
export async function findEndUser(sql: Sql, workspaceId: string, user: string): Promise<string> {
  if (/^eu_[0-9a-f]+$/.test(user)) return user
  const [row] = await sql<{
    end_user_salt: string | null
  }>`SELECT end_user_salt FROM workspaces WHERE id = ${workspaceId}`
  return row?.end_user_salt == null ? user : hashEndUser(row.end_user_salt, user)
}
