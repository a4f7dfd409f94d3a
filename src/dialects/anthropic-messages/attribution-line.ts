// Claude Code's first system block: a line for Anthropic's billing that changes with every call, or with every conversation,
// and is no prompt text. Whoever caches by the beginning of a prompt would never find it again.

import { openBracket } from '../../wire/ascii.ts'
import { hasBytes } from '../../wire/find-bytes.ts'
import { readJsonElements } from '../../wire/json-elements.ts'
import {
  type ByteEdit,
  JsonFault,
  type JsonMembers,
  memberKind,
  memberText,
  readJsonValueMembers,
} from '../../wire/json-members.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'
import { cutSpans } from '../byte-lane/edits.ts'

const prefix = 'x-anthropic-billing-header'
const prefixBytes = Buffer.from(prefix)
/** The line is some hundred bytes long, and first where there is one. */
const headBytes = 512

/** The text without such a line at its beginning; undefined = nothing is left. Tools on the way may have joined it. */
export function withoutAttribution(text: string): string | undefined {
  if (!text.startsWith(prefix)) return text
  const rest = text.replace(/^.*\r?\n?/, '')
  return rest.trim() === '' ? undefined : rest
}

/** Where a list of system blocks goes on behind the line; its own beginning if it has none. */
export function behindAttribution(body: Uint8Array, system: JsonSpan): number {
  const first = Buffer.from(body.buffer, body.byteOffset + system.start, Math.min(headBytes, system.end - system.start))
  if (first[0] !== openBracket || !first.includes(prefixBytes)) return system.start
  const spans = readJsonElements(body, system.start, system.end)
  return isAttribution(body, spans[0]) ? (spans[1]?.start ?? system.end) : system.start
}

/** Cuts the blocks that are nothing but the line out of a body. */
export function attributionEdits(body: Uint8Array, members: JsonMembers): ByteEdit[] {
  const system = hasBytes(body, prefixBytes) ? members.find('system') : undefined
  if (!system || memberKind(body, system) !== 'array') return []
  const spans = readJsonElements(body, system.valueStart, system.valueEnd)
  return cutSpans(spans, (i) => isAttribution(body, spans[i]))
}

function isAttribution(body: Uint8Array, span: JsonSpan | undefined): boolean {
  const block = readJsonValueMembers(body, span?.start ?? 0, span?.end ?? 0)
  const text = block instanceof JsonFault ? undefined : block.find('text')
  return text !== undefined && withoutAttribution(memberText(body, text) ?? '') === undefined
}
