// One item of a reply's output: what is known of it, and what came of it before its turn. Deltas count; what an item says
// of itself as a whole counts only where no delta came.

import { isRecord, recordOf, textOf } from '../canonical/json.ts'
import { ArgumentScan } from '../reply/builder.ts'
import { type ReasoningItem, readReasoningItem, summaryTexts } from './reasoning-proof.ts'

export interface OutputPiece {
  readonly kind: 'text' | 'refusal' | 'thinking' | 'arguments'
  readonly text: string
  /** Which part of its item it belongs to: parts of thinking are paragraphs. */
  readonly part: string
}

/** `other`: an item that only its provider can make use of. */
export type ItemKind = 'message' | 'reasoning' | 'call' | 'other'

export class OutputItem {
  /** What came as deltas and is not passed on. */
  held: OutputPiece[] = []
  /** Some delta has come. */
  isStreamed = false
  isDone = false
  callId = ''
  name = ''
  isCustom = false
  /** What it said of itself last. */
  whole: readonly OutputPiece[] = []
  sealed: ReasoningItem | undefined
  /** The block of a call is open. */
  isOpen = false
  /** Blank text that opened no block. */
  blank = ''
  hasArguments = false
  readonly scan = new ArgumentScan()
  /** Arguments that begin as a string, which may hold the object that was meant. */
  quoted: string | undefined

  constructor(
    readonly kind: ItemKind,
    /** '' = the provider gave none. */
    readonly id: string,
  ) {}

  push(piece: OutputPiece): void {
    if (piece.text === '') return
    this.isStreamed = true
    this.held.push(piece)
  }

  /** `rawArguments` gives the text of arguments that a host sent as an object instead of as its text. */
  describe(item: Record<string, unknown>, rawArguments: () => string): void {
    this.callId = textOf(item.call_id) || this.callId
    this.name = textOf(item.name) || this.name
    this.isCustom ||= item.type === 'custom_tool_call'
    this.sealed = item.type === 'reasoning' ? readReasoningItem(item) : undefined
    this.whole = piecesOf(item, rawArguments)
  }
}

export function kindOf(item: Record<string, unknown>): ItemKind {
  switch (item.type) {
    case 'message':
    case 'reasoning':
      return item.type
    case 'function_call':
    case 'custom_tool_call':
      return 'call'
    default:
      return 'other'
  }
}

function piecesOf(item: Record<string, unknown>, rawArguments: () => string): OutputPiece[] {
  switch (item.type) {
    case 'message':
      return partsOf(item.content).map(({ type, text, refusal }, i) =>
        type === 'refusal' ? piece('refusal', textOf(refusal), `${i}`) : piece('text', textOf(text), `${i}`),
      )
    case 'reasoning': {
      const summary = summaryTexts(item.summary)
      const texts = summary.length > 0 ? summary : partsOf(item.content).map(({ text }) => textOf(text))
      return texts.map((text, i) => piece('thinking', text, `${i}`))
    }
    case 'function_call':
      return [piece('arguments', isRecord(item.arguments) ? rawArguments() : textOf(item.arguments), '')]
    case 'custom_tool_call':
      return [piece('arguments', textOf(item.input), '')]
    default:
      return []
  }
}

function partsOf(content: unknown): Record<string, unknown>[] {
  return Array.isArray(content) ? content.map(recordOf) : []
}

function piece(kind: OutputPiece['kind'], text: string, part: string): OutputPiece {
  return { kind, text, part }
}
