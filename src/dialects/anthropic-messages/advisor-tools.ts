// Tools that are themselves a model: Anthropic asks another one for advice and bills it at that one's price, which nobody
// here would be charged. They are cut out of a list whose other tools stay as they are.

import { readJsonElements } from '../../wire/json-elements.ts'
import {
  type ByteEdit,
  JsonFault,
  type JsonMembers,
  memberKind,
  readJsonValueMembers,
} from '../../wire/json-members.ts'
import type { JsonSpan } from '../../wire/json-spans.ts'
import { cutSpans } from '../byte-lane/cut-spans.ts'
import type { Warning } from '../canonical/translation.ts'

export interface AdvisorCuts {
  readonly edits: readonly ByteEdit[]
  readonly warnings: readonly Warning[]
}

const modelName = Buffer.from('"model"')
/** Every letter of a name can be written so. */
const escapedLetter = Buffer.from('\\u00')

/** undefined = there is none. */
export function advisorCuts(body: Uint8Array, members: JsonMembers): AdvisorCuts | undefined {
  const tools = members.find('tools')
  if (!tools || memberKind(body, tools) !== 'array') return undefined
  const bytes = Buffer.from(body.buffer, body.byteOffset + tools.valueStart, tools.valueEnd - tools.valueStart)
  if (!bytes.includes(modelName) && !bytes.includes(escapedLetter)) return undefined
  const spans = readJsonElements(body, tools.valueStart, tools.valueEnd)
  const cut = spans.map((span) => isAdvisor(body, span))
  if (!cut.includes(true)) return undefined
  const places = [...cut.keys()].filter((i) => cut[i])
  return {
    edits: cutSpans(spans, (i) => cut[i] === true),
    warnings: places.map((i) => ({ code: 'tool_dropped', field: `/tools/${i}` })),
  }
}

/** A tool of the caller's has a schema, in which any name may stand, but no model of its own. */
function isAdvisor(body: Uint8Array, span: JsonSpan): boolean {
  const tool = readJsonValueMembers(body, span.start, span.end)
  return !(tool instanceof JsonFault) && tool.find('model') !== undefined
}
