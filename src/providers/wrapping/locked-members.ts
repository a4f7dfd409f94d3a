// Members of a Messages body that a beta flag unlocks. A host that is not sent the flag refuses the member, so that both
// go or neither does. Only what tunes or hints is left out: where a member promises something, such as tools that the
// provider calls, the host's own refusal is the honest answer.

import {
  type ByteEdit,
  JsonFault,
  type JsonMember,
  readJsonValueMembers,
  spliceBytes,
} from '../../wire/json-members.ts'

/**
 * [member, or member and a member of it; what the name of its flag begins with]. Sources: the beta types of
 * @anthropic-ai/sdk 1.8.0; NVIDIA/OpenShell#2465 and anthropics/claude-code#82539 saw the first two refused (2026-07).
 */
const locks: readonly (readonly [path: readonly [name: string, inner?: string], flag: string])[] = [
  [['context_management'], 'context-management-'],
  [['diagnostics'], 'cache-diagnosis-'],
  [['speed'], 'fast-mode-'],
  [['fallbacks'], 'server-side-fallback-'],
  [['fallback_credit_token'], 'fallback-credit-'],
  [['thinking', 'block_binding'], 'thinking-binding-controls-'],
  [['output_config', 'task_budget'], 'task-budgets-'],
]

export interface LockedMembers {
  /** Of the body itself. */
  readonly outside: readonly string[]
  /** By the member they stand in. */
  readonly inside: Readonly<Record<string, readonly string[]>>
}

/** `betas`: the flags that go to the host. */
export function lockedMembers(betas: readonly string[]): LockedMembers {
  const outside: string[] = []
  const inside: Record<string, string[]> = {}
  for (const [[name, inner], flag] of locks) {
    if (betas.some((beta) => beta.startsWith(flag))) continue
    if (inner === undefined) outside.push(name)
    else inside[name] = [...(inside[name] ?? []), inner]
  }
  return { outside, inside }
}

/** The member's own bytes, without what is locked in its value. */
export function withoutLockedInside(body: Uint8Array, member: JsonMember, { inside }: LockedMembers): Uint8Array {
  const written = body.subarray(member.start, member.valueEnd)
  const names = Object.hasOwn(inside, member.name) ? (inside[member.name] ?? []) : []
  if (names.length === 0) return written
  const members = readJsonValueMembers(body, member.valueStart, member.valueEnd)
  // Not an object, or one with a name that stands twice: the host will say what it thinks of it.
  if (members instanceof JsonFault) return written
  const kept = members.list.filter(({ name }) => !names.includes(name))
  if (kept.length === members.list.length) return written
  const bytes = Buffer.concat(
    kept.flatMap(({ start, valueEnd }, i) => [...(i === 0 ? [] : [comma]), body.subarray(start, valueEnd)]),
  )
  const [from, to] = [members.start + 1 - member.start, members.end - 1 - member.start]
  const edit: ByteEdit = { start: from, end: to, bytes }
  return spliceBytes(written, [edit])
}

const comma = new TextEncoder().encode(',')
