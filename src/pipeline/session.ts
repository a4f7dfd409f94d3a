// Which session a request belongs to: as its client names it, or else by how its conversation begins. Every turn of an
// agent's conversation has the same session, so that it finds its prompt cache again. An id is only unique within its
// workspace and is chosen by the client: it never grants access to anything.

import { timingSafeEqual } from 'node:crypto'
import type { ContentTags, SentRequest } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { readTags } from '../kernel/attribution.ts'
import { type Failure, invalidRequest } from '../kernel/failure.ts'
import type { RequestRecord } from '../telemetry/request-record.ts'
import type { Caller } from '../tenancy/caller.ts'
import { type EndUserMode, recordedEndUser } from '../tenancy/end-users.ts'
import type { RequestHeaders } from '../wire/http-message.ts'

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

export type TagContent = (workspaceId: string) => ContentTags

export function createContentTags(secret: TagSecret): TagContent {
  return (workspaceId) => new WorkspaceTags(secret, workspaceId)
}

interface TagSecret {
  readonly current: Uint8Array
  /** While the master secret is being replaced. */
  readonly previous: Uint8Array | undefined
}

class WorkspaceTags implements ContentTags {
  constructor(
    private readonly secret: TagSecret,
    private readonly workspaceId: string,
  ) {}

  tag(content: string): string {
    return this.#tagBy(this.secret.current, content)
  }

  isValid(content: string, tag: string): boolean {
    const { current, previous } = this.secret
    const given = Buffer.from(tag)
    return [current, previous].some((key) => {
      const expected = Buffer.from(key ? this.#tagBy(key, content) : '')
      return expected.length > 0 && expected.length === given.length && timingSafeEqual(expected, given)
    })
  }

  #tagBy(key: Uint8Array, content: string): string {
    return new Bun.CryptoHasher('sha256', key).update(`${this.workspaceId} ${content}`).digest('base64url')
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
  headers: RequestHeaders,
  sent: SentRequest,
  surface: Pick<Dialect, 'conversationSpans'>,
): Session | undefined {
  const named = readNamedSession(headers, sent)
  if (named !== undefined) return { id: boundedId(named), isNamed: true }
  const opening = openingHash(surface, sent)
  return opening === undefined ? undefined : { id: opening, isNamed: false }
}

/** The id that the client sent. */
export function readNamedSession(headers: RequestHeaders, sent: Pick<SentRequest, 'members'>): string | undefined {
  return namedInHeaders(headers) ?? namedInBody(sent)
}

function namedInHeaders(headers: RequestHeaders): string | undefined {
  for (const name of sessionHeaders) {
    const value = headers.get(name)
    // The server has trimmed it.
    if (value !== null && value !== '') return value
  }
  return undefined
}

function namedInBody({ members }: Pick<SentRequest, 'members'>): string | undefined {
  const key = members.get('prompt_cache_key') ?? members.get('promptCacheKey')
  return key?.string?.trim() || sessionOfUserId(members.get('metadata')?.get('user_id')?.string ?? '')
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

function openingHash(surface: Pick<Dialect, 'conversationSpans'>, sent: SentRequest): string | undefined {
  // A tool loop has a session from its first call, because it will grow.
  if (sent.body.length < cacheableBytesMin && !sent.envelope.offersTools) return undefined
  let hash = 0n
  for (const { start, end } of surface.conversationSpans(sent)) {
    hash = Bun.hash.wyhash(sent.body.subarray(start, Math.min(end, start + hashedBytes)), hash)
  }
  return hash.toString(16).padStart(16, '0')
}

// ── Attribution ──

// Who and what a request is for, as its client says: session, agent, end user and tags. It is recorded beside the request
// for reports and limits, and grants nothing. No part of a prompt is in it.

/** A request as far as it is attributed. */
interface Attributed {
  readonly headers: RequestHeaders
  readonly caller: Caller
  readonly sent: SentRequest
  readonly session: Session | undefined
}

/** Fills in the record. Returns a failure for tags that cannot be recorded. */
export function recordAttribution(
  record: RequestRecord,
  { headers, caller, sent, session }: Attributed,
  endUsers: EndUserMode,
): Failure | undefined {
  if (session?.isNamed) record.session = session.id
  record.agent = agentOf(headers, record.client)
  if (endUsers !== 'off') record.endUser = endUserOf(caller, sent, endUsers)
  const text = headers.get('x-tollgate-tags')
  if (text === null || text === '') return undefined
  const tags = readTags(text)
  if (typeof tags === 'string') {
    const message = `The header \`x-tollgate-tags\` must be a list such as \`team=web,job=nightly\`: ${tags.replace(/\.$/, '')}.`
    return invalidRequest(message, 'x-tollgate-tags')
  }
  record.tags = tags
  return undefined
}

/** The product of a user agent: `claude-cli` of `claude-cli/2.1.325 (external, cli)`. */
const product = /^[A-Za-z][A-Za-z0-9_.-]{0,39}(?=[/ ]|$)/
/** The agent within the program, if it runs several. */
const subagentHeaders = ['x-claude-code-agent-id', 'x-openai-subagent']
const subagent = /^[\w.:-]{1,64}$/

/** `codex_cli_rs`, or `codex_cli_rs/review` for an agent that it started. */
function agentOf(headers: RequestHeaders, client: string | undefined): string | undefined {
  const program = client === undefined ? undefined : product.exec(client)?.[0]
  for (const name of subagentHeaders) {
    const value = headers.get(name)
    if (value !== null && subagent.test(value)) return `${program ?? 'unknown'}/${value}`
  }
  return program
}

function endUserOf({ endUserSalt }: Caller, sent: SentRequest, mode: 'hashed' | 'plain'): string | undefined {
  if (endUserSalt === undefined) return undefined
  const user = sentUser(sent)
  return user === undefined ? undefined : recordedEndUser(endUserSalt, user, mode)
}

const userMembers = ['safety_identifier', 'user'] as const

/** OpenAI's two names come before Anthropic's, whose place is a free map on the chat surface. */
function sentUser({ members }: SentRequest): string | undefined {
  for (const name of userMembers) {
    const text = members.get(name)?.string?.trim()
    if (text) return personOf(text)
  }
  const text = members.get('metadata')?.get('user_id')?.string?.trim()
  return text ? personOf(text) : undefined
}

const claudeCodeUser = /^user_([^_]*)_account_([^_]*)_session_/

/**
 * Claude Code's id names device, account and session, in one of two forms. The person is the account or, without one, the
 * device; with the session, each session would be another user.
 */
function personOf(text: string): string {
  const [, device, account] = claudeCodeUser.exec(text) ?? []
  if (device !== undefined) return account || device || text
  if (!text.startsWith('{"')) return text
  try {
    const { account_uuid, device_id } = JSON.parse(text) as Record<string, unknown>
    return [account_uuid, device_id].find((id): id is string => typeof id === 'string' && id !== '') ?? text
  } catch {
    return text
  }
}
