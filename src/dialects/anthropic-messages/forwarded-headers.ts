// Version, betas and whatever else begins with `anthropic-` is an open list that belongs to the provider: a flag and
// the body field it unlocks travel together, so neither is filtered here.

import { upstreamVersion } from './version.ts'

export function forwardedHeaders(client: Headers): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of client) if (name.startsWith('anthropic-')) headers[name] = value
  headers['anthropic-version'] = upstreamVersion(headers['anthropic-version'] ?? '')
  return headers
}
