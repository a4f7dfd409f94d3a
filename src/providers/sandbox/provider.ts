// The sandbox as a provider: the same shape as any other, but it answers inside this process and needs no credential.

import { surfaceIds } from '../../dialects/dialect.ts'
import type { Endpoint, Provider, Transport } from '../provider.ts'

/** Also the value of `dialect:` in a configuration file that asks for another sandbox under a name of its own. */
export const sandboxId = 'sandbox'

const endpoints: readonly Endpoint[] = surfaceIds.map((dialect) => ({ dialect, baseUrl: 'sandbox:', auth: 'none' }))

export function createSandboxProvider(id: string, source: string, transport: Transport): Provider {
  return { id, endpoints, apiKey: undefined, source, transport, ignoresHealth: true }
}
