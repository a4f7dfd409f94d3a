// What is known of a request at each stage: run.ts says which stage makes which. Of all this, only Content and Hold change
// after they are made.

import type { Envelope, Warning } from '../dialects/canonical/translation.ts'
import type { LimitViews } from '../dialects/dialect.ts'
import type { Failure } from '../kernel/failure.ts'
import type { Candidate, HealthPlan, OfferedModel } from '../routing/plan.ts'
import type { Caller } from '../tenancy/caller.ts'
import type { LimitBudget, LimitUse } from './budgets.ts'
import type { Content } from './content.ts'
import type { Exchange } from './exchange.ts'
import type { Hold } from './hold.ts'
import type { SessionItems } from './kept-items.ts'
import type { SessionReasoning } from './kept-reasoning.ts'
import type { Session } from './session.ts'

/** A request that may be served: whose it is, what it asks for, and which routes may serve it. */
export interface Admitted {
  readonly exchange: Exchange
  readonly caller: Caller
  readonly envelope: Envelope
  readonly content: Content
  /** The requested model. A candidate names the one that it serves. */
  readonly model: OfferedModel
  /** The models of all candidates: several if the caller or the operator named fallbacks. */
  readonly models: readonly OfferedModel[]
  /** The routes that are tried, best first. */
  readonly plan: HealthPlan<Candidate>
  /** What the caller has left, for the headers of the answer. */
  readonly limits: LimitViews
  /** Preferences of the caller that the gateway itself ignored, and what its spend limits changed. */
  readonly warnings: readonly Warning[]
  /** undefined for a short conversation without an id. */
  readonly session: Session | undefined
  /** Identifies the conversation for its prompt cache; undefined if there is only one route. */
  readonly conversationKey: string | undefined
  /** Where the reasoning of replies is kept for later turns; undefined = it is not. */
  readonly keptReasoning: SessionReasoning | undefined
  readonly storing: Storing
}

/** What a request continues, and what is stored of it. */
export interface Storing {
  /** The response that this one continues. */
  readonly previousId: string | undefined
  /** The input items, if the response is to be stored. */
  readonly input: string | undefined
  /** The input items, if the connection remembers the response. */
  readonly remembered: string | undefined
  /** Where the items of the answer are kept for references to them; undefined = they are not. */
  readonly items: SessionItems | undefined
}

/** A request whose cost is reserved, so that it may be sent. */
export interface Held {
  readonly exchange: Exchange
  readonly admitted: Admitted
  readonly hold: Hold
  /** With the tightest spend limit before this request. */
  readonly limits: LimitViews
  /** Those of its spend limits that slow requests down once they are nearly reached, before this request. */
  readonly slowing: readonly LimitUse[]
  /** How long it waited for money that running requests held. The client's patience began before. */
  readonly waitedMs: number
}

/** Why a request is not sent to any provider. */
export class Refusal {
  constructor(
    readonly failure: Failure,
    /** For the headers of the error. */
    readonly limits: LimitViews = {},
    /** The spend limit without room for it. */
    readonly reached?: LimitBudget | undefined,
  ) {}
}
