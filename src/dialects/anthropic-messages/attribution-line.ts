// Claude Code's first system block: a line for Anthropic's billing that changes with every call, or with every conversation,
// and is no prompt text. Whoever caches by the beginning of a prompt would never find it again.

import { readJsonElements } from '../../wire/json-elements.ts'
import {
  type ByteEdit,
  JsonFault,
  type JsonMembers,
  memberKind,
  memberText,
  readJsonValueMembers,
} from '../../wire/json-members.ts'
import { cutSpans } from '../byte-lane/cut-spans.ts'

const prefix = 'x-anthropic-billing-header'
const prefixBytes = Buffer.from(prefix)

/** The text without such a line at its beginning; undefined = nothing is left. Tools on the way may have joined it. */
export function withoutAttribution(text: string): string | undefined {
  if (!text.startsWith(prefix)) return text
  const rest = text.replace(/^.*\r?\n?/, '')
  return rest.trim() === '' ? undefined : rest
}

/** Cuts the blocks that are nothing but the line out of a body. */
export function attributionEdits(body: Uint8Array, members: JsonMembers): ByteEdit[] {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const system = bytes.includes(prefixBytes) ? members.find('system') : undefined
  if (!system || memberKind(body, system) !== 'array') return []
  const spans = readJsonElements(body, system.valueStart, system.valueEnd)
  return cutSpans(spans, (i) => {
    const block = readJsonValueMembers(body, spans[i]?.start ?? 0, spans[i]?.end ?? 0)
    const text = block instanceof JsonFault ? undefined : block.find('text')
    return text !== undefined && withoutAttribution(memberText(body, text) ?? '') === undefined
  })
}
