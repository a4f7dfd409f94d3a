// Asks the management API for something, as this page's session. Changes are JSON from the same origin, which is what the
// gateway asks of a session; whoever has none any more is led to the door.

import { noteEndedSession } from './ended-session.ts'

/** Why something was not done, for people. */
export class Refusal {
  readonly status: number
  readonly message: string
  /** To look it up in the log; empty = the gateway was not reached. */
  readonly requestId: string

  constructor(status: number, message: string, requestId: string) {
    this.status = status
    this.message = message
    this.requestId = requestId
  }
}

export interface ApiCall {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly body?: unknown
  /** For a POST that must not be done twice. */
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/** `path` with its query: `/api/keys?limit=10`. An answer without a body is undefined. */
export async function callApi<Answer>(path: string, call: ApiCall = {}): Promise<Answer | Refusal> {
  const { method = 'GET', body, idempotencyKey, signal } = call
  const headers: Record<string, string> = { accept: 'application/json' }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  try {
    const response = await fetch(path, {
      method,
      headers,
      credentials: 'same-origin',
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    if (response.ok) return (response.status === 204 ? undefined : await response.json()) as Answer
    if (response.status === 401) {
      noteEndedSession()
      location.reload()
    }
    return await refusalOf(response)
  } catch {
    return new Refusal(0, 'The gateway does not answer. Is it running?', '')
  }
}

/** Also of answers that are not ours, such as a proxy's. */
export async function refusalOf(response: Response): Promise<Refusal> {
  const id = response.headers.get('x-request-id') ?? ''
  let message = `The gateway answered ${response.status}.`
  try {
    const answer = (await response.json()) as { error?: { message?: unknown } }
    if (typeof answer.error?.message === 'string') message = answer.error.message
  } catch {
    // Not JSON: the status has to do.
  }
  return new Refusal(response.status, message, id)
}

/** The path with what is set of the query: empty and undefined values are left out. */
export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined && pair[1] !== '')
  const text = new URLSearchParams(set).toString()
  return text === '' ? path : `${path}?${text}`
}
