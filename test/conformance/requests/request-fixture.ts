// A request that is about one thing, as a caller of each dialect would write it, and how to tell from a provider's
// request whether that thing has arrived.

import type { Shape } from '../shape.ts'

export type Members = Readonly<Record<string, unknown>>

export interface RequestFixture {
  /** The row's name on the page. */
  readonly feature: string
  /** Members of the body beside `model`; without `messages` the user says hi. Absent: the dialect cannot say it. */
  readonly chat?: Members
  /** Likewise; `max_tokens` is 1000 unless said otherwise. */
  readonly messages?: Members
  // The bodies of Responses callers are in responses-bodies.ts.
  /** The content of a provider's body that arrived whole. A list: any of these. */
  readonly carried: PerDialect
  /** Its content if the gateway replaces something that the provider does not support. */
  readonly emulated?: Partial<PerDialect>
}

interface PerDialect {
  readonly chat: Shape
  readonly messages: Shape
}

/** The same for a dialect that no caller speaks; without either, it has no word for the thing. */
export interface Shapes {
  readonly carried?: Shape
  readonly emulated?: Shape
}

/** For what only a provider of the caller's dialect has a word for. */
export const nowhere: PerDialect = { chat: () => false, messages: () => false }

export const hi = { role: 'user', content: 'hi' }

/** For requests that are about tools alone: some hosts refuse tools while the model reasons, which has a separate row. */
export const unreasoned = { thinking: { type: 'disabled' } }

/** A tool to offer, in each dialect. */
export const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
export const chatTool = (name: string, more: Members = {}): Members => ({
  type: 'function',
  function: { name, description: 'Looks it up.', parameters: schema, ...more },
})
export const messagesTool = (name: string, more: Members = {}): Members => ({
  name,
  description: 'Looks it up.',
  input_schema: schema,
  ...more,
})
