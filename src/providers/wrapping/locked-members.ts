// Members of a Messages body that a beta flag unlocks. A host that is not sent the flag refuses the member, so that both
// go or neither does. Only what tunes or hints is left out, and the caller is warned: where a member promises something,
// such as tools that the provider calls, the host's own refusal is the honest answer.

import { cutMembers } from '../../dialects/byte-lane/edits.ts'
import { pointerStep } from '../../dialects/request/warnings.ts'
import { hasBytes } from '../../wire/bytes.ts'
import {
  type ByteEdit,
  JsonFault,
  type JsonMember,
  type JsonMembers,
  memberKind,
  readJsonElements,
  readJsonValueMembers,
} from '../../wire/json-members.ts'

interface Lock {
  /** From the body inwards; of a list, each element. */
  readonly path: readonly [string, ...string[]]
  /** What the names of the flags begin with that unlock it. */
  readonly flags: readonly string[]
}

const scopeFlags = ['prompt-caching-scope-']

/**
 * Sources: the beta types of @anthropic-ai/sdk 1.8.0; NVIDIA/OpenShell#2465 and anthropics/claude-code#82539 saw the first
 * two refused (2026-07), anthropics/claude-code#33180 the one of tools.
 */
const locks: readonly Lock[] = [
  { path: ['context_management'], flags: ['context-management-'] },
  { path: ['diagnostics'], flags: ['cache-diagnosis-'] },
  { path: ['speed'], flags: ['fast-mode-'] },
  { path: ['fallbacks'], flags: ['server-side-fallback-'] },
  { path: ['fallback_credit_token'], flags: ['fallback-credit-'] },
  { path: ['thinking', 'block_binding'], flags: ['thinking-binding-controls-'] },
  { path: ['output_config', 'task_budget'], flags: ['task-budgets-'] },
  { path: ['tools', 'eager_input_streaming'], flags: ['fine-grained-tool-streaming-'] },
  { path: ['tools', 'defer_loading'], flags: ['tool-search-tool-', 'advanced-tool-use-'] },
  // Claude Code shares the cached part of its prompt between sessions.
  { path: ['tools', 'cache_control', 'scope'], flags: scopeFlags },
  { path: ['system', 'cache_control', 'scope'], flags: scopeFlags },
]

/** Names to cut, or what to cut inside the member of that name. */
type Cuts = Map<string, 'cut' | Cuts>

export interface LockedMembers {
  /** In order and not overlapping. */
  readonly edits: readonly ByteEdit[]
  /** JSON pointers to those that asked for something. */
  readonly lost: readonly string[]
}

/** `betas`: the flags that go to the host. */
export function findLocked(body: Uint8Array, members: JsonMembers, betas: readonly string[]): LockedMembers {
  const edits: ByteEdit[] = []
  const lost: string[] = []
  const inObject = (object: JsonMembers, cuts: Cuts, pointer: string): void => {
    const cut: string[] = []
    for (const member of object.list) {
      const found = cuts.get(member.name)
      const place = pointer + pointerStep(member.name)
      if (found === 'cut') {
        cut.push(member.name)
        const kind = memberKind(body, member)
        if (kind !== 'false' && kind !== 'null') lost.push(place)
      } else if (found && mayName(body.subarray(member.valueStart, member.valueEnd), found)) {
        inValue(member, found, place)
      }
    }
    edits.push(...cutMembers(object, cut))
  }
  const inValue = (member: JsonMember, cuts: Cuts, pointer: string): void => {
    const { valueStart, valueEnd } = member
    const isList = memberKind(body, member) === 'array'
    const spans = isList ? readJsonElements(body, valueStart, valueEnd) : [{ start: valueStart, end: valueEnd }]
    for (const [i, { start, end }] of spans.entries()) {
      const object = readJsonValueMembers(body, start, end)
      // What is no object, or has a name twice, is for the host to judge.
      if (!(object instanceof JsonFault)) inObject(object, cuts, isList ? pointer + pointerStep(i) : pointer)
    }
  }
  inObject(members, cutsFor(betas), '')
  return { edits: edits.sort((a, b) => a.start - b.start), lost }
}

function cutsFor(betas: readonly string[]): Cuts {
  const cuts: Cuts = new Map()
  for (const { path, flags } of locks) {
    if (betas.some((beta) => flags.some((flag) => beta.startsWith(flag)))) continue
    let level = cuts
    for (const name of path.slice(0, -1)) {
      const next = level.get(name)
      const deeper: Cuts = next instanceof Map ? next : new Map()
      level.set(name, deeper)
      level = deeper
    }
    level.set(path.at(-1) ?? '', 'cut')
  }
  return cuts
}

const escaped = Buffer.from('\\u00')

/** Long lists are only taken apart where there is something to find; a name can be written with escapes. */
function mayName(bytes: Uint8Array, cuts: Cuts): boolean {
  if (hasBytes(bytes, escaped)) return true
  return [...cuts].some(([name, inner]) =>
    inner === 'cut' ? hasBytes(bytes, Buffer.from(name)) : mayName(bytes, inner),
  )
}
