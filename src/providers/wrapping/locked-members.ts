// Members of a Messages body that a beta flag unlocks. A host that is not sent the flag refuses the member, so that both
// go or neither does. Only what tunes or hints is left out: where a member promises something, such as tools that the
// provider calls, the host's own refusal is the honest answer.

import { readJsonElements } from '../../wire/json-elements.ts'
import {
  type ByteEdit,
  JsonFault,
  type JsonMember,
  type JsonMembers,
  memberKind,
  readJsonValueMembers,
  spliceBytes,
} from '../../wire/json-members.ts'

interface Lock {
  readonly member: string
  /** A member of its value, or of each in a list. */
  readonly inner?: string
  /** What the names of the flags begin with that unlock it. */
  readonly flags: readonly string[]
}

/**
 * Sources: the beta types of @anthropic-ai/sdk 1.8.0; NVIDIA/OpenShell#2465 and anthropics/claude-code#82539 saw the first
 * two refused (2026-07), anthropics/claude-code#33180 the one of tools.
 */
const locks: readonly Lock[] = [
  { member: 'context_management', flags: ['context-management-'] },
  { member: 'diagnostics', flags: ['cache-diagnosis-'] },
  { member: 'speed', flags: ['fast-mode-'] },
  { member: 'fallbacks', flags: ['server-side-fallback-'] },
  { member: 'fallback_credit_token', flags: ['fallback-credit-'] },
  { member: 'thinking', inner: 'block_binding', flags: ['thinking-binding-controls-'] },
  { member: 'output_config', inner: 'task_budget', flags: ['task-budgets-'] },
  { member: 'tools', inner: 'eager_input_streaming', flags: ['fine-grained-tool-streaming-'] },
  { member: 'tools', inner: 'defer_loading', flags: ['tool-search-tool-', 'advanced-tool-use-'] },
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
  for (const { member, inner, flags } of locks) {
    if (betas.some((beta) => flags.some((flag) => beta.startsWith(flag)))) continue
    if (inner === undefined) outside.push(member)
    else inside[member] = [...(inside[member] ?? []), inner]
  }
  return { outside, inside }
}

/** The member's own bytes, without what is locked in its value. */
export function withoutLockedInside(body: Uint8Array, member: JsonMember, { inside }: LockedMembers): Uint8Array {
  const written = body.subarray(member.start, member.valueEnd)
  const names = Object.hasOwn(inside, member.name) ? (inside[member.name] ?? []) : []
  if (names.length === 0 || !mayName(written, names)) return written
  const edits = objectsIn(body, member).flatMap((object) => cutFrom(body, object, names))
  if (edits.length === 0) return written
  return spliceBytes(
    written,
    edits.map(({ start, end, bytes }) => ({ start: start - member.start, end: end - member.start, bytes })),
  )
}

/** Long lists are only taken apart where there is something to find; a name can be written with escapes. */
function mayName(bytes: Uint8Array, names: readonly string[]): boolean {
  const written = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return written.includes('\\u00') || names.some((name) => written.includes(name))
}

/** The value itself, or those of a list. What is no object, or has a name twice, the host will say what it thinks of. */
function objectsIn(body: Uint8Array, member: JsonMember): JsonMembers[] {
  const spans =
    memberKind(body, member) === 'array'
      ? readJsonElements(body, member.valueStart, member.valueEnd)
      : [{ start: member.valueStart, end: member.valueEnd }]
  return spans
    .map(({ start, end }) => readJsonValueMembers(body, start, end))
    .filter((object): object is JsonMembers => !(object instanceof JsonFault))
}

function cutFrom(body: Uint8Array, { list, start, end }: JsonMembers, names: readonly string[]): ByteEdit[] {
  const kept = list.filter(({ name }) => !names.includes(name))
  if (kept.length === list.length) return []
  const pieces = kept.flatMap((each, i) => [...(i === 0 ? [] : [comma]), body.subarray(each.start, each.valueEnd)])
  return [{ start: start + 1, end: end - 1, bytes: Buffer.concat(pieces) }]
}

const comma = new TextEncoder().encode(',')
