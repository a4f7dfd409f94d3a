// One assistant message of the history: what was said, the calls, and as much of the reasoning as the host wants back.
// Reasoning never becomes visible text.

import type { AssistantBlock, RawJson, ToolCallBlock } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { readSignature } from '../canonical/signature.ts'
import type { Rendering } from './rendering.ts'

/** undefined if nothing is left to say. */
export function renderAssistant(
  blocks: readonly AssistantBlock[],
  rendering: Rendering,
  place: string,
): RawJson | undefined {
  const calls = blocks.filter((block) => block.kind === 'tool-call')
  const refusal = blocks.flatMap((block) => (block.kind === 'refusal' ? [block.text] : [])).join('')
  const content = renderSaid(blocks, rendering)
  const details = restoredDetails(blocks, rendering)
  const echo = echoOf(blocks, rendering)
  warnDropped(blocks, rendering, place)
  if (content === undefined && calls.length === 0 && refusal === '' && !echo?.text && details === undefined) {
    return undefined
  }
  const nothingSaid = calls.length > 0 || refusal !== '' ? emptyContent(rendering) : '""'
  return jsonObject([
    ['role', '"assistant"'],
    ['content', content ?? nothingSaid],
    ['refusal', refusal === '' ? undefined : jsonString(refusal)],
    ...(echo ? [[echo.field, jsonString(echo.text)] as const] : []),
    ['reasoning_details', details],
    ['tool_calls', calls.length === 0 ? undefined : jsonArray(calls.map((call) => renderCall(call, rendering)))],
  ])
}

/** OpenAI's own form is null; some servers insist on a string. */
function emptyContent({ rules }: Rendering): RawJson {
  return rules.emptyContent === 'string' ? '""' : 'null'
}

function renderSaid(blocks: readonly AssistantBlock[], { marks }: Rendering): RawJson | undefined {
  const texts = blocks.flatMap((block) => (block.kind === 'text' && block.text !== '' ? [block] : []))
  if (texts.length === 0) return undefined
  if (!texts.some((block) => marks.keeps(block))) return jsonString(texts.map(({ text }) => text).join(''))
  const parts = texts.map((block) =>
    jsonObject([['type', '"text"'], ['text', jsonString(block.text)], marks.memberOf(block)]),
  )
  return jsonArray(parts)
}

function renderCall(call: ToolCallBlock, { names, rules }: Rendering): RawJson {
  const name = jsonString(names.sent(call.name))
  if (call.custom && rules.customTools) {
    const custom = jsonObject([
      ['name', name],
      ['input', jsonString(call.arguments)],
    ])
    return jsonObject([
      ['id', jsonString(call.id)],
      ['type', '"custom"'],
      ['custom', custom],
    ])
  }
  const called = jsonObject([
    ['name', name],
    ['arguments', jsonString(argumentText(call))],
  ])
  return jsonObject([
    ['id', jsonString(call.id)],
    ['type', '"function"'],
    ['function', called],
  ])
}

/** As the model wrote it; a call without arguments has written nothing, which not every host can parse. */
function argumentText(call: ToolCallBlock): string {
  if (call.custom) return jsonObject([['input', jsonString(call.arguments)]])
  return call.arguments.trim() === '' ? '{}' : call.arguments
}

/** Hosts that want reasoning back refuse a message without the field, so that it is sent empty where there is none. */
function echoOf(blocks: readonly AssistantBlock[], { rules }: Rendering): { field: string; text: string } | undefined {
  const echo = rules.reasoningEcho
  if (!echo || (echo.when === 'tool-turns' && !blocks.some(({ kind }) => kind === 'tool-call'))) return undefined
  const texts = blocks.flatMap((block) => (block.kind === 'thinking' && block.text !== '' ? [block.text] : []))
  return { field: echo.field, text: texts.join('\n\n') }
}

/** What this host itself issued goes back as it came. */
function restoredDetails(blocks: readonly AssistantBlock[], { issuer }: Rendering): RawJson | undefined {
  const entries = blocks.flatMap((block) => {
    const own = readSignature(proofOf(block) ?? '')
    return own?.issuer === issuer && own.blob !== undefined ? listEntries(own.blob) : []
  })
  return entries.length === 0 ? undefined : `[${entries.join(',')}]`
}

/** The caller could have written the blob: only a list is spliced. */
function listEntries(blob: string): string[] {
  try {
    const list: unknown = JSON.parse(blob)
    return Array.isArray(list) && list.length > 0 ? [blob.trim().slice(1, -1)] : []
  } catch {
    return []
  }
}

function proofOf(block: AssistantBlock): string | undefined {
  if (block.kind === 'thinking') return block.signature
  return block.kind === 'sealed-thinking' ? block.data : undefined
}

function warnDropped(blocks: readonly AssistantBlock[], { rules, issuer, warnings }: Rendering, place: string): void {
  for (const block of blocks) {
    if (block.kind !== 'thinking' && block.kind !== 'sealed-thinking') continue
    const own = readSignature(proofOf(block) ?? '')
    // Ours and only to be read, or restored above, or the text is echoed wherever this host looks at it.
    if (own && (own.blob === undefined || own.issuer === issuer)) continue
    if (block.kind === 'thinking' && rules.reasoningEcho) continue
    warnings.add('thinking_dropped', place)
  }
}
