// Our errors as OpenAI's two dialects write them.

import { type Failure, failureTable, type ProviderRefusal } from '../../kernel/failure.ts'

/** The body of an error response. */
export function renderOpenaiFailure(failure: Failure): string {
  return JSON.stringify({ error: errorObject(failure) })
}

export function errorObject(failure: Failure): object {
  const { param, metadata } = failure.facts
  const type = failureTable[failure.code].chatType
  return {
    message: errorMessage(failure),
    type,
    param: param ?? null,
    code: failure.code,
    ...(metadata && { metadata }),
  }
}

export function errorMessage({ message, facts: { refusal } }: Failure): string {
  return refusal ? refusalMessage(message, refusal) : message
}

/** The provider's text and its error code, which some clients look for; `code` is ours. */
function refusalMessage(said: string, { provider, word, overflow, status = 400 }: ProviderRefusal): string {
  const looked = overflow ? 'context_length_exceeded' : word
  const added = looked === undefined || said.includes(looked) ? '' : ` (${looked})`
  return `Provider ${provider} refused the request (${status}): ${said}${added}`
}
