// Who and what a request is for, as its client says: session, agent, end user and tags. It is recorded beside the request
// for reports and limits, and grants nothing. No part of a prompt is in it.

import type { Envelope } from '../dialects/canonical/translation.ts'
import { readTags } from '../kernel/attribution.ts'
import { type Failure, invalidRequest } from '../kernel/failure.ts'

import type { Caller } from '../tenancy/caller.ts'
import { type EndUserMode, recordedEndUser } from '../tenancy/end-users.ts'
import { JsonFault, memberText, readJsonValueMembers } from '../wire/json-members.ts'
import type { GatewayRequest } from './request.ts'

/** Fills in the record. Returns a failure for tags that cannot be recorded. */
export function readAttribution(request: GatewayRequest, endUsers: EndUserMode): Failure | undefined {
  const { record, caller, envelope, session, http } = request
  const { headers } = http
  if (session?.isNamed) record.session = session.id
  record.agent = agentOf(headers, record.client)
  if (endUsers !== 'off') record.endUser = endUserOf(caller, envelope, endUsers)
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
function agentOf(headers: Headers, client: string | undefined): string | undefined {
  const program = client === undefined ? undefined : product.exec(client)?.[0]
  for (const name of subagentHeaders) {
    const value = headers.get(name)
    if (value !== null && subagent.test(value)) return `${program ?? 'unknown'}/${value}`
  }
  return program
}

function endUserOf({ endUserSalt }: Caller, envelope: Envelope, mode: 'hashed' | 'plain'): string | undefined {
  if (endUserSalt === undefined) return undefined
  const sent = sentUser(envelope)
  return sent === undefined ? undefined : recordedEndUser(endUserSalt, sent, mode)
}

const userMembers = ['safety_identifier', 'user'] as const

/** OpenAI's two names come before Anthropic's, whose place is a free map on the chat surface. */
function sentUser({ body, members }: Envelope): string | undefined {
  for (const name of userMembers) {
    const member = members.find(name)
    const text = member && memberText(body, member)?.trim()
    if (text) return personOf(text)
  }
  const metadata = members.find('metadata')
  if (!metadata) return undefined
  const inner = readJsonValueMembers(body, metadata.valueStart, metadata.valueEnd)
  const member = inner instanceof JsonFault ? undefined : inner.find('user_id')
  const text = member && memberText(body, member)?.trim()
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
