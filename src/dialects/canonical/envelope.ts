// The cheap facts of a request, read before anyone decides where it goes.

import type { JsonMembers } from '../../wire/json-members.ts'

/** The cheap facts of a request body; its content is not read. */
export interface Envelope {
  readonly body: Uint8Array<ArrayBuffer>
  readonly members: JsonMembers
  readonly model: string
  readonly stream: boolean
  /** The caller's cap on generated tokens, under whichever name it was sent. */
  readonly outputCap: number | undefined
  /** How many answers are asked for; each is generated and paid for. */
  readonly choices: number
  /** Whether the model may call tools. */
  readonly offersTools: boolean
  /** They are offered in the older form that the dialect has, and calls of them are expected in that form. */
  readonly legacyCalls?: boolean
  /** Whether the caller wants the model to reason; undefined = it says nothing of it. */
  readonly reasoning: 'on' | 'off' | undefined
  /** Whether the caller asked for usage in the stream; where it did not, the extra record is kept from it. */
  readonly wantsStreamUsage: boolean
}
