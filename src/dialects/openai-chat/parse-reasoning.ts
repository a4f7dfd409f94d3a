// Reasoning that came back on an assistant message. Chat Completions has no field for it; these are the extensions in
// use, the most faithful first: `reasoning_details` (OpenRouter and us), `thinking_blocks` (LiteLLM), plain text.

import type { SealedThinkingBlock, ThinkingBlock } from '../canonical/conversation.ts'
import { isOwnSignature, writeSignature } from '../canonical/signature.ts'
import type { RequestFields } from '../request/fields.ts'
import type { ParseContext } from './parse-context.ts'
import type { PlacedReasoning } from './reasoning-places.ts'

type ReasoningBlock = ThinkingBlock | SealedThinkingBlock

export const reasoningFieldNames = ['reasoning_details', 'thinking_blocks', 'reasoning_content', 'reasoning'] as const

/** The form that Messages signatures have here; also what an entry without a form is taken for. */
const messagesFormat = 'anthropic-claude-v1'

export function parseReasoningFields(message: RequestFields, context: ParseContext): PlacedReasoning<ReasoningBlock>[] {
  const details = message.objects('reasoning_details')
  if (details.length > 0) {
    return details.flatMap((detail) => placed(parseDetail(detail, context), detail.value('index')))
  }
  const blocks = message.objects('thinking_blocks')
  if (blocks.length > 0) return blocks.flatMap((block) => placed(parseReasoningPart(block)))
  const text = message.optionalText('reasoning_content') || message.optionalText('reasoning')
  return text ? placed([{ kind: 'thinking', text, signature: undefined }]) : []
}

function placed(blocks: readonly ReasoningBlock[], index?: unknown): PlacedReasoning<ReasoningBlock>[] {
  return blocks.map((block) => ({ block, place: typeof index === 'number' ? index : undefined }))
}

function parseDetail(detail: RequestFields, { warnings }: ParseContext): ReasoningBlock[] {
  const format = detail.optionalText('format') || messagesFormat
  switch (detail.text('type')) {
    case 'reasoning.text': {
      const signature = detail.optionalText('signature') || undefined
      return [
        {
          kind: 'thinking',
          text: detail.optionalText('text') ?? '',
          signature: signature && issuedAs(signature, format),
        },
      ]
    }
    case 'reasoning.summary':
      return [{ kind: 'thinking', text: detail.text('summary'), signature: undefined }]
    case 'reasoning.encrypted':
      return [{ kind: 'sealed-thinking', data: issuedAs(detail.text('data'), format) }]
    default:
      warnings.add('reasoning_dropped', detail.at)
      return []
  }
}

/** A proof of another form is put into a signature of ours, so that nobody takes it for a Messages signature. */
function issuedAs(proof: string, format: string): string {
  if (format === messagesFormat || format === 'unknown' || isOwnSignature(proof)) return proof
  return writeSignature({ issuer: format, blob: proof })
}

/** Messages-shaped blocks, and Mistral's thinking part, whose text is a list of text parts. */
export function parseReasoningPart(part: RequestFields): ReasoningBlock[] {
  if (part.text('type') === 'redacted_thinking') return [{ kind: 'sealed-thinking', data: part.text('data') }]
  const text = Array.isArray(part.value('thinking'))
    ? part
        .objects('thinking')
        .map((piece) => piece.optionalText('text') ?? '')
        .join('')
    : part.text('thinking')
  return [{ kind: 'thinking', text, signature: part.optionalText('signature') || undefined }]
}
