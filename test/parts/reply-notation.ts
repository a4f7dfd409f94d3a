// Canonical replies in a form that a test can show at a glance, one short line per event, and streams cut everywhere.
//
//   start ID · text, refusal, thinking, sealed DATA, call ID NAME, custom ID NAME · +PIECE · signed SIGNATURE · .
//   end UNIFIED RAW [SEQUENCE|EXPLANATION] · ~ (keep-alive) · fail MESSAGE

import type { ReplyBlock, ReplyEvent } from '../../src/dialects/canonical/reply.ts'
import { readSignature } from '../../src/dialects/canonical/signature.ts'
import type { StreamParser } from '../../src/dialects/canonical/translation.ts'
import type { RequestId } from '../../src/kernel/ids.ts'

/** For parsers, which make ids of calls from it. */
export const requestId: RequestId = 'req_7'

/** Writes the lines of `noted` in one: steps`start r1 | text | +a | . | end end STOP`. Long ones continue indented. */
export function steps(parts: TemplateStringsArray, ...values: readonly string[]): string[] {
  const text = parts.reduce((sum, part, i) => sum + values[i - 1] + part)
  return text.split(/ \| |\n {2,}/).filter((step) => step !== '')
}

export function noted(events: readonly ReplyEvent[]): string[] {
  return events.map(note)
}

function note(event: ReplyEvent): string {
  switch (event.type) {
    case 'reply-start':
      return `start ${event.id ?? ''}`.trim()
    case 'block-start':
      return noteBlock(event.block)
    case 'text-delta':
    case 'thinking-delta':
    case 'arguments-delta':
      return `+${event.text}`
    case 'signature': {
      const own = readSignature(event.signature)
      return own
        ? `signed by ${own.issuer}${own.blob === undefined ? '' : ` ${own.blob}`}`
        : `signed ${event.signature}`
    }
    case 'block-end':
      return '.'
    case 'reply-end': {
      const { unified, raw, sequence, explanation } = event.stop
      return ['end', unified, raw === '' ? '-' : raw, sequence, explanation]
        .filter((part) => part !== undefined)
        .join(' ')
    }
    case 'keep-alive':
      return '~'
    case 'reply-failure':
      return `fail ${event.fault.message}`
  }
}

function noteBlock(block: ReplyBlock): string {
  switch (block.kind) {
    case 'sealed-thinking':
      return `sealed ${block.data}`
    case 'tool-call':
      return `${block.custom ? 'custom' : 'call'} ${block.id} ${block.name}`
    case 'text':
      return block.apart ? 'text apart' : 'text'
    default:
      return block.kind
  }
}

/** All events of a stream that comes in one piece. */
export function parseWhole(parser: StreamParser, stream: string | Uint8Array): ReplyEvent[] {
  const bytes = typeof stream === 'string' ? new TextEncoder().encode(stream) : stream
  return [...parser.push(bytes), ...parser.end()]
}

/** All events of a stream cut at the given places. */
export function parseCut(parser: StreamParser, stream: Uint8Array, cuts: readonly number[]): ReplyEvent[] {
  const events: ReplyEvent[] = []
  let from = 0
  for (const cut of [...cuts, stream.length]) {
    events.push(...parser.push(stream.subarray(from, cut)))
    from = cut
  }
  return [...events, ...parser.end()]
}
