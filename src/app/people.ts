// Who calls: keys and what is remembered of them, and the credentials that workspaces bring.

import type { ConfigSource } from '../config/source.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { type ComputeVerifier, createVerifier } from '../tenancy/api-key.ts'
import { type Authenticator, createAuthenticator } from '../tenancy/authenticate.ts'
import { type CredentialCache, createCredentialCache } from '../tenancy/credentials/credential-cache.ts'
import { createKeyRing, type KeyRing } from '../tenancy/credentials/key-ring.ts'
import { createLastUsed, lastUsedFlushMs } from '../tenancy/last-used.ts'
import { errorFields } from './error-fields.ts'
import type { Ground } from './ground.ts'

export interface People extends Authenticator {
  readonly computeVerifier: ComputeVerifier
  readonly keyRing: KeyRing
  readonly credentials: CredentialCache
  close(): Promise<void>
}

export interface PeopleDependencies {
  readonly ground: Ground
  readonly source: ConfigSource
  readonly clock: Clock
  readonly log: Log
}

export function createPeople({ ground, source, clock, log }: PeopleDependencies): People {
  const { database } = ground
  const pepper = ground.subkeys('api-key-pepper')
  const lastUsed = createLastUsed({
    database,
    clock,
    onFault: (error) => log.warn('when keys were last used could not be written', errorFields(error)),
  })
  const flushing = setInterval(() => void lastUsed.flush(), lastUsedFlushMs)
  const keyRing = createKeyRing(ground.secret, ground.previousSecret)
  const authenticator = createAuthenticator({
    database,
    pepper: pepper.current,
    previousPepper: pepper.previous,
    clock,
    keyLimits: () => source.current.limits,
    noteUse: lastUsed.note,
  })
  // Known keys carry the limits they were looked up with, and a change is in force when that is said.
  let limits = JSON.stringify(source.current.limits)
  source.onChange((config) => {
    const changed = JSON.stringify(config.limits)
    if (changed !== limits) authenticator.invalidateAll()
    limits = changed
    return undefined
  })
  return {
    ...authenticator,
    computeVerifier: createVerifier(pepper.current),
    keyRing,
    credentials: createCredentialCache({ database, keys: keyRing, clock }),
    async close() {
      clearInterval(flushing)
      await lastUsed.flush()
    },
  }
}
