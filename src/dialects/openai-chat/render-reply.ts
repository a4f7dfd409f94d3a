// A whole Chat Completions reply out of canonical events. Says what the stream of the same events says.

import type { RawJson } from '../canonical/conversation.ts'
import { jsonArray, jsonObject, jsonString } from '../canonical/json.ts'
import { type CollectedBlock, collectReply, type ReplyEvent, type Stop } from '../canonical/reply.ts'
import type { RenderContext } from '../canonical/translation.ts'
import { Paragraphs } from './paragraphs.ts'
import { reasoningPlaces } from './reasoning-places.ts'
import { callProof, renderSealedDetail, renderThinkingDetail } from './render-reasoning.ts'
import { renderUsage } from './render-usage.ts'
import { finishMembers, refusalText, replyHead } from './reply-head.ts'

export function renderReply(events: readonly ReplyEvent[], context: RenderContext): string {
  const { id, blocks, stop, usage: reported } = collectReply(events)
  const usage = reported ?? context.finalUsage(undefined, undefined, () => 0)
  const choice = jsonObject([
    ['index', '0'],
    ['message', renderMessage(blocks, stop, context)],
    ['logprobs', 'null'],
    ...finishMembers(stop, context),
  ])
  const head = replyHead('chat.completion', id, context)
  return `{${head},"choices":${jsonArray([choice])},"usage":${renderUsage(usage, context.costOf(usage))}}`
}

function renderMessage(blocks: readonly CollectedBlock[], stop: Stop, { legacyCalls }: RenderContext): RawJson {
  const content = joinTexts(blocks)
  const thinking = joinThinking(blocks)
  const refusal = refusalOf(blocks, stop)
  const calls = blocks.filter((block) => block.kind === 'tool-call')
  const rendered = blocks.flatMap((block, i) => (block.kind === 'tool-call' ? [renderCall(block, blocks[i - 1])] : []))
  const details = renderDetails(blocks, refusal)
  // Nothing said beside a call or a refusal is null, nothing said at all is an empty text.
  const isSilent = content === '' && (calls.length > 0 || refusal !== undefined)
  return jsonObject([
    ['role', '"assistant"'],
    ['content', isSilent ? 'null' : jsonString(content)],
    ['refusal', refusal === undefined ? 'null' : jsonString(refusal)],
    ['reasoning_content', thinking === '' ? undefined : jsonString(thinking)],
    ['reasoning_details', details.length === 0 ? undefined : jsonArray(details)],
    ['tool_calls', calls.length === 0 || legacyCalls ? undefined : jsonArray(rendered)],
    // The older form has one call and no id.
    ['function_call', calls[0] && legacyCalls ? renderFunction(calls[0]) : undefined],
  ])
}

function joinTexts(blocks: readonly CollectedBlock[]): string {
  const paragraphs = new Paragraphs()
  let joined = ''
  for (const block of blocks) {
    if (block.kind !== 'text' || block.apart) paragraphs.break()
    if (block.kind === 'text' && block.text !== '') joined += paragraphs.separator() + block.text
  }
  return joined
}

function joinThinking(blocks: readonly CollectedBlock[]): string {
  return blocks.flatMap((block) => (block.kind === 'thinking' && block.text !== '' ? [block.text] : [])).join('\n\n')
}

function refusalOf(blocks: readonly CollectedBlock[], stop: Stop): string | undefined {
  const said = blocks.flatMap((block) => (block.kind === 'refusal' ? [block.text] : [])).join('')
  if (said !== '') return said
  return stop.unified === 'refusal' ? refusalText(stop).toWellFormed() : undefined
}

function renderDetails(blocks: readonly CollectedBlock[], refusal: string | undefined): RawJson[] {
  const kinds = blocks.flatMap((block) => {
    const isEmpty = (block.kind === 'text' || block.kind === 'refusal') && block.text === ''
    return isEmpty ? [] : [block.kind]
  })
  // The words of a refusal may be ours; they come back with the message all the same.
  const places = reasoningPlaces(refusal === undefined ? kinds : [...kinds, 'refusal'])
  return blocks.flatMap((block): RawJson[] => {
    if (block.kind !== 'thinking' && block.kind !== 'sealed-thinking') return []
    const place = places.shift() ?? 0
    if (block.kind === 'sealed-thinking') return [renderSealedDetail(block.data.toWellFormed(), place)]
    return [renderThinkingDetail(block.text, block.signature?.toWellFormed(), place)]
  })
}

type CollectedCall = CollectedBlock & { readonly kind: 'tool-call' }

function renderCall(call: CollectedCall, before: CollectedBlock | undefined): RawJson {
  const custom = () =>
    jsonObject([
      ['name', jsonString(call.name.toWellFormed())],
      ['input', jsonString(call.arguments)],
    ])
  return jsonObject([
    ['id', jsonString(call.id.toWellFormed())],
    ['type', call.custom ? '"custom"' : '"function"'],
    [call.custom ? 'custom' : 'function', call.custom ? custom() : renderFunction(call)],
    ['extra_content', before?.kind === 'thinking' ? callProof(before.signature?.toWellFormed()) : undefined],
  ])
}

function renderFunction(call: CollectedCall): RawJson {
  return jsonObject([
    ['name', jsonString(call.name.toWellFormed())],
    ['arguments', jsonString(call.arguments.trim() === '' ? '{}' : call.arguments)],
  ])
}
