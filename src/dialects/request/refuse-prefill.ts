// A conversation that ends with the assistant asks the model to go on from there, which most models refuse.

import type { Turn } from '../canonical/conversation.ts'
import { refuseAt } from './request-fields.ts'

/** Anthropic's own words: official tools recover by matching them. */
const message = 'This model does not support assistant message prefill. The conversation must end with a user message.'

export function refusePrefill(last: Turn | undefined): never {
  return refuseAt(last?.place ?? '/messages', message)
}
