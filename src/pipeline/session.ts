// Which session a request belongs to: as its client names it, or else by how its conversation begins. Every turn of an
// agent's conversation has the same session, so that it finds its prompt cache again. An id is only unique within its
// workspace and is chosen by the client: it never grants access to anything.

import { timingSafeEqual } from 'node:crypto'
import type { ContentTags, Envelope } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { JsonFault, memberText, readJsonValueMembers } from '../wire/json-members.ts'

export interface Session {
  /** At most `sessionIdMax` characters. */
  readonly id: string
  /** false = the client sent no id, and `id` is a hash of the conversation's beginning. */
  readonly isNamed: boolean
}

/**
 * The key under which a provider caches the prompts of a session. Providers must not learn the ids of sessions, and
 * sessions of different workspaces must not share a key.
 */
export type DeriveCacheKey = (workspaceId: string, session: Session) => string

export function createCacheKeys(secret: Uint8Array): DeriveCacheKey {
  return (workspaceId, { id }) =>
    new Bun.CryptoHasher('sha256', secret).update(`${workspaceId} ${id}`).digest('base64url')
}

/** For a workspace. */
export type TagContent = (workspaceId: string) => ContentTags

/** `previous`: while the master secret is being replaced. */
export function createContentTags(secret: {
  readonly current: Uint8Array
  readonly previous: Uint8Array | undefined
}): TagContent {
  const tagBy = (key: Uint8Array, workspaceId: string, content: string): string =>
    new Bun.CryptoHasher('sha256', key).update(`${workspaceId} ${content}`).digest('base64url')
  return (workspaceId) => {
    const isTag = (key: Uint8Array | undefined, content: string, given: Buffer): boolean => {
      const tag = Buffer.from(key ? tagBy(key, workspaceId, content) : '')
      return tag.length > 0 && tag.length === given.length && timingSafeEqual(tag, given)
    }
    return {
      tag: (content) => tagBy(secret.current, workspaceId, content),
      isValid: (content, tag) =>
        isTag(secret.current, content, Buffer.from(tag)) || isTag(secret.previous, content, Buffer.from(tag)),
    }
  }
}

/** Settings of the installation. */
export interface SessionSettings {
  /** Place cache marks for callers that set none. */
  readonly cacheMarks: boolean
  /** Keep signed reasoning for clients that do not send it back. */
  readonly keepReasoning: boolean
}

/** A longer id is replaced by its hash. */
export const sessionIdMax = 128

/** In order of precedence. `x-session-affinity`: opencode; `session-id`: Codex; `agent-session-id`: goose. */
const sessionHeaders = [
  ...['x-tollgate-session-id', 'x-session-id', 'x-session-affinity', 'session-id', 'x-claude-code-session-id'],
  'agent-session-id',
]

/** undefined for a short conversation without an id and without tools, which no provider caches. */
export function readSession(
  headers: Headers,
  envelope: Envelope,
  surface: Pick<Dialect, 'conversationSpans'>,
): Session | undefined {
  const named = namedInHeaders(headers) ?? namedInBody(envelope)
  if (named !== undefined) return { id: boundedId(named), isNamed: true }
  const opening = openingHash(surface, envelope)
  return opening === undefined ? undefined : { id: opening, isNamed: false }
}

function namedInHeaders(headers: Headers): string | undefined {
  for (const name of sessionHeaders) {
    const value = headers.get(name)
    // The runtime has trimmed it.
    if (value !== null && value !== '') return value
  }
  return undefined
}

function namedInBody({ body, members }: Envelope): string | undefined {
  const key = members.find('prompt_cache_key') ?? members.find('promptCacheKey')
  const text = key && memberText(body, key)?.trim()
  if (text) return text
  const metadata = members.find('metadata')
  if (!metadata) return undefined
  const inner = readJsonValueMembers(body, metadata.valueStart, metadata.valueEnd)
  const userId = inner instanceof JsonFault ? undefined : inner.find('user_id')
  return userId && sessionOfUserId(memberText(body, userId) ?? '')
}

/** Claude Code writes `user_…_account_…_session_<id>`, newer versions a JSON text with `session_id`. */
const sessionPart = /(?:_session_|"session_id"\s*:\s*")([\w-]+)"?/

function sessionOfUserId(userId: string): string | undefined {
  return sessionPart.exec(userId)?.[1]
}

function boundedId(id: string): string {
  return id.length <= sessionIdMax ? id : new Bun.CryptoHasher('sha256').update(id).digest('hex')
}

/** No provider caches less than about a thousand tokens. */
const cacheableBytesMin = 4096
/** Bytes hashed of each part; enough to distinguish conversations. */
const hashedBytes = 1024

function openingHash(surface: Pick<Dialect, 'conversationSpans'>, envelope: Envelope): string | undefined {
  // A tool loop has a session from its first call, because it will grow.
  if (envelope.body.length < cacheableBytesMin && !envelope.offersTools) return undefined
  let hash = 0n
  for (const { start, end } of surface.conversationSpans(envelope)) {
    hash = Bun.hash.wyhash(envelope.body.subarray(start, Math.min(end, start + hashedBytes)), hash)
  }
  return hash.toString(16).padStart(16, '0')
}
