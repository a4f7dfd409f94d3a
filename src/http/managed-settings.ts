// GET /managed/settings: the settings that the operator gives to Claude Code, for whoever has the key or access token. Claude Code
// asks for them every hour, with the ETag of the last ones.

import { createHash } from 'node:crypto'
import type { Dialect } from '../dialects/dialect.ts'
import { Failure } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import { Answer, requestIdHeaders } from '../pipeline/answer.ts'
import type { ClientRequest } from '../pipeline/client-request.ts'
import type { Database } from '../store/database.ts'
import { mergeSettings, readSettingsRules, settingsReaderOf } from '../tenancy/managed-settings.ts'
import { admitCaller, type CallerDependencies } from './request.ts'
import { jsonAnswer, refuse } from './responses.ts'

export const managedSettingsPath = '/managed/settings'

export interface ManagedSettingsDependencies extends CallerDependencies {
  readonly database: Database
}

export function createManagedSettingsRoute({ database, ...callers }: ManagedSettingsDependencies) {
  return async (request: ClientRequest, surface: Dialect, address: string | undefined): Promise<Answer> => {
    const caller = await admitCaller(callers, request, address)
    if (caller instanceof Failure) return refuse(surface, caller)
    const { rules } = await readSettingsRules(database.sql)
    const merged =
      rules.length > 0 && mergeSettings(rules, await settingsReaderOf(database.sql, { keyId: caller.keyId }))
    // Claude Code's word for "there are none".
    if (!merged) return refuse(surface, new Failure('NOT_FOUND', 'There are no managed settings for you.'))
    const headers = { etag: `"${merged.checksum}"`, 'cache-control': 'private, no-cache' }
    if (request.headers.get('if-none-match') === headers.etag) {
      return new Answer(304, { ...requestIdHeaders(createId('req')), ...headers })
    }
    return jsonAnswer({ uuid: uuidOf(merged.checksum), ...merged }, headers)
  }
}

/** Names this version of the settings. A UUID of version 8, whose bits have no other meaning. */
function uuidOf(checksum: string): string {
  const hex = createHash('sha256').update(checksum).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  )
}
