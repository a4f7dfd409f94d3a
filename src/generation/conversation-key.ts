// Names a conversation by how it begins, so that its next turn can be sent where the provider's prompt cache is. Short
// ones have no name: no provider caches them.

import type { Envelope } from '../dialects/canonical/envelope.ts'

/** No provider caches less than about a thousand tokens. */
const cacheableBytes = 4096
/** Enough to tell system prompts apart, and over before the first turn that differs. */
const headBytes = 1024

export function conversationKey(workspaceId: string, modelId: string, { body, members }: Envelope): string | undefined {
  const parts: Uint8Array[] = []
  let size = 0
  for (const name of ['system', 'tools', 'messages']) {
    const member = members.find(name)
    if (!member) continue
    size += member.valueEnd - member.valueStart
    parts.push(body.subarray(member.valueStart, Math.min(member.valueEnd, member.valueStart + headBytes)))
  }
  if (size < cacheableBytes) return undefined
  const hash = parts.reduce((seed, part) => Bun.hash.wyhash(part, seed), 0n)
  return `${workspaceId} ${modelId} ${hash}`
}
