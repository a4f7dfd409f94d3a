// What the management API does with workspaces' own credentials, put together: how they are read, kept and forgotten.

import type { Credentials } from '../http/management/providers.ts'
import type { AuthScheme } from '../providers/provider.ts'
import { readOwnCredential } from '../providers/signing/own-credential.ts'
import type { CredentialCache } from '../tenancy/credentials/credential-cache.ts'
import { deleteCredential, listCredentials, putCredential } from '../tenancy/credentials/credential-records.ts'
import type { KeyRing } from '../tenancy/credentials/key-ring.ts'
import type { Goods } from './goods.ts'
import { destinationOf } from './own-key-places.ts'

export interface CredentialParts {
  readonly keys: KeyRing
  readonly cache: Pick<CredentialCache, 'forget'>
  goods(): Goods
}

export function createCredentials({ keys, cache, goods }: CredentialParts): Credentials {
  return {
    destinationOf: (provider, baseUrl) => destinationOf(goods(), provider, baseUrl),
    read: (provider, text) => readOwnCredential(authOf(goods(), provider), text),
    put: (sql, credential) => putCredential(sql, credential, keys),
    delete: deleteCredential,
    list: listCredentials,
    forget: (workspaceId) => cache.forget(workspaceId),
  }
}

/** How its endpoints take a credential, which is the same at all of them. */
function authOf({ endpointsOf }: Pick<Goods, 'endpointsOf'>, provider: string): AuthScheme {
  return endpointsOf(provider)?.[0]?.auth ?? 'none'
}
