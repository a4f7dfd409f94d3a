// What a request costs, by how it ended: the settlement matrix as one table. Both surfaces, both lanes, streamed or not,
// read the same row.

import type { Usage } from '../kernel/usage.ts'

/** How a request that had a hold came to its end. */
export type Ending =
  /** The whole answer is there, however it stopped: end, length, tools, refusal. */
  | 'complete'
  /** No provider gave an answer. */
  | 'not served'
  | 'client left before content'
  | 'client left after content'
  /** The provider broke off. */
  | 'interrupted'
  /** The hold could not grow any further. */
  | 'out of money'
  /** We ended it: shut down, deadline, defect. */
  | 'ended by us'

interface Row {
  /**
   * usage: what the whole answer consumed · delivered: the input, and the output that passed · input: the input alone,
   * where the provider bills calls that are cancelled · nothing: the hold is released and no transfer written.
   */
  readonly pays: 'usage' | 'delivered' | 'input' | 'nothing'
  /** In place of `delivered` while there is no output, and no count. */
  readonly withoutOutput?: 'input' | 'nothing'
}

export const settlementMatrix = {
  complete: { pays: 'usage' },
  'not served': { pays: 'nothing' },
  'client left before content': { pays: 'input' },
  'client left after content': { pays: 'delivered', withoutOutput: 'input' },
  interrupted: { pays: 'delivered', withoutOutput: 'nothing' },
  'out of money': { pays: 'delivered', withoutOutput: 'nothing' },
  'ended by us': { pays: 'delivered', withoutOutput: 'input' },
} as const satisfies Record<Ending, Row>

export interface SettlementFacts {
  /** Of a complete answer, or of one whose count has passed: what was told is paid. */
  readonly usage: Usage | undefined
  /** Of what has passed; estimated where the provider said nothing. */
  delivered(): Usage
  /** Bytes of generated text that have passed. */
  readonly outputBytes: number
  /** Whether a body went to a provider that bills calls that are cancelled. */
  readonly billsOnCancel: boolean
}

/** The usage that is billed; undefined = nothing, and no transfer. */
export function billedUsage(ending: Ending, facts: SettlementFacts): Usage | undefined {
  const { pays, withoutOutput }: Row = settlementMatrix[ending]
  const isAnswered = facts.outputBytes > 0 || facts.usage !== undefined
  switch (isAnswered ? pays : (withoutOutput ?? pays)) {
    case 'usage':
      return facts.usage ?? facts.delivered()
    case 'delivered':
      return facts.delivered()
    case 'input':
      return facts.billsOnCancel ? inputOnly(facts.delivered()) : undefined
    case 'nothing':
      return undefined
  }
}

function inputOnly({ audioOutputTokens: _, ...usage }: Usage): Usage {
  return { ...usage, outputTokens: 0 }
}
