// Names a conversation by how it begins, so that its next turn can be sent where the provider's prompt cache is, and the
// results of its tools to the model that has asked for them. Short ones without tools have no name: no provider caches
// them.

import type { Envelope } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'

/** No provider caches less than about a thousand tokens. */
const cacheableBytes = 4096
/** Of each part; enough to tell one from another. */
const headBytes = 1024

export function conversationKey(
  workspaceId: string,
  modelId: string,
  surface: Pick<Dialect, 'conversationSpans'>,
  envelope: Envelope,
): string | undefined {
  // A tool loop is named from its first call on, for what it grows to be.
  if (envelope.body.length < cacheableBytes && !envelope.offersTools) return undefined
  let hash = 0n
  for (const { start, end } of surface.conversationSpans(envelope)) {
    hash = Bun.hash.wyhash(envelope.body.subarray(start, Math.min(end, start + headBytes)), hash)
  }
  return `${workspaceId} ${modelId} ${hash}`
}
