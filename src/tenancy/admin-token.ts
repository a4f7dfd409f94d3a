// The management token: the operator's, or one made into the data folder at first start. It is compared by hashes of
// equal length in constant time, and is never shown, logged or stored anywhere else.

import { createHash, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../kernel/secret.ts'
import type { DataFolder } from '../store/data-folder.ts'

export interface AdminToken {
  /** For messages: `TOLLGATE_ADMIN_TOKEN`, or the file. */
  readonly source: string
  /** Where it was written; undefined if the operator set it. */
  readonly file: string | undefined
  /** Changes with the token and tells nothing of it: what was granted under another one is void. */
  readonly fingerprint: string
  matches(text: string): boolean
}

const tokenFile = 'admin-token'
const tokenBytes = 32

export function loadAdminToken(configured: Secret | undefined, folder: DataFolder): AdminToken {
  if (configured !== undefined) return createAdminToken(configured.reveal().trim(), 'TOLLGATE_ADMIN_TOKEN', undefined)
  const file = folder.file(tokenFile)
  return createAdminToken(folder.readOrCreateSecret(tokenFile, tokenBytes).text, file, file)
}

function createAdminToken(token: string, source: string, file: string | undefined): AdminToken {
  const expected = digest(token)
  return {
    source,
    file,
    // A second hash: the first one is what a guess is compared with, and stays in here.
    fingerprint: digest(`session ${expected.toString('hex')}`)
      .toString('hex')
      .slice(0, 16),
    matches: (text) => timingSafeEqual(digest(text), expected),
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
