// A Messages call taken apart for hosts that name the model in the path and the version in the body. The members travel
// as they are, byte for byte, but for those that a flag unlocks which the host does not know. `messages` goes last, so that
// what stays the same from turn to turn comes first: one host looks for a cached prompt by the beginning of the body
// (anthropics/anthropic-sdk-python#1927, 2026-09).

import { assert } from '../../kernel/assert.ts'
import { JsonFault, memberBoolean, memberText, readJsonMembers } from '../../wire/json-members.ts'
import { lockedMembers, withoutLockedInside } from './locked-members.ts'

export const messagesPath = '/v1/messages'

export interface MessagesCall {
  readonly model: string
  readonly isStreamed: boolean
  /** The flags of the caller that the host knows. */
  readonly betas: readonly string[]
  /** The body with these members first, without those in `except` and those that no flag unlocks at the host. */
  bodyWith(first: Readonly<Record<string, unknown>>, except: readonly string[]): Uint8Array<ArrayBuffer>
}

export function readMessagesCall(
  body: Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
  knownBetas: readonly string[] = [],
): MessagesCall {
  const members = readJsonMembers(body)
  assert(!(members instanceof JsonFault), 'a body that was checked or rendered here')
  const model = members.find('model')
  const stream = members.find('stream')
  const flags = (headers['anthropic-beta'] ?? '').split(',').map((flag) => flag.trim())
  const betas = flags.filter((flag) => knownBetas.includes(flag))
  const locked = lockedMembers(betas)
  return {
    model: (model && memberText(body, model)) ?? '',
    isStreamed: stream !== undefined && memberBoolean(body, stream) === true,
    betas,
    bodyWith(first, except) {
      const left = new Set([...except, ...Object.keys(first), ...locked.outside])
      const kept = members.list.filter(({ name }) => !left.has(name))
      const last = kept.filter(({ name }) => name === 'messages')
      const pieces: Uint8Array[] = [new TextEncoder().encode(JSON.stringify(first).slice(0, -1))]
      for (const member of [...kept.filter((each) => !last.includes(each)), ...last]) {
        pieces.push(comma, withoutLockedInside(body, member, locked))
      }
      return new Uint8Array(Buffer.concat([...pieces, closing]))
    },
  }
}

const comma = new TextEncoder().encode(',')
const closing = new TextEncoder().encode('}')

/** The headers of the dialect have no meaning there. */
export function withoutDialectHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith('anthropic-')))
}
