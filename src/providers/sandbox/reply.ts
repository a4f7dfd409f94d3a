// A reply before it has a wire format: steps in order, why it stopped, what it cost. Both wires render from this, at
// once or as a stream, so that each behaviour is written once.

import type { Usage } from '../../kernel/usage.ts'

export interface ToolCall {
  readonly name: string
  readonly takes: 'json' | 'text'
  /** JSON text, or the free text of a tool that takes such. */
  readonly argumentsText: string
}

export type Step =
  | { readonly kind: 'wait'; readonly ms: number }
  /** Neighbouring think steps are one block, and so are neighbouring text steps. */
  | { readonly kind: 'think'; readonly text: string }
  /** Ends a thinking block. */
  | { readonly kind: 'seal'; readonly signature: string }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'call'; readonly call: ToolCall }

export type Stop =
  | { readonly reason: 'end' | 'length' | 'tool-calls' }
  | { readonly reason: 'stop-sequence'; readonly sequence: string }

export interface Reply {
  readonly steps: readonly Step[]
  readonly stop: Stop
  readonly usage: Usage
  /** The connection is cut after the last step: no ending, no terminal marker. */
  readonly breaksOff: boolean
}

export function joinText(reply: Reply, kind: 'think' | 'text'): string {
  return reply.steps.map((step) => (step.kind === kind ? step.text : '')).join('')
}
