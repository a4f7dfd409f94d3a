// The endpoint under test: one request, and everything that came back. Nothing is retried, and nothing is read from the
// environment.

import { type SseEvent, SseReader } from '../../../src/wire/sse.ts'
import type { Probe } from './probe.ts'
import { parseJson } from './violation.ts'

/** Longer than any provider should be silent. */
const patienceMs = 120_000

export interface Exchange {
  readonly status: number
  readonly contentType: string
  readonly text: string
  /** Whether the bytes are UTF-8, and none was replaced on the way to us. */
  readonly isUtf8: boolean
  /** undefined where the body is no JSON. */
  readonly json: unknown
  readonly events: readonly SseEvent[]
}

/** No answer came, and why. */
export interface Unanswered {
  readonly unanswered: string
}

export function isAnswered(result: Exchange | Unanswered): result is Exchange {
  return 'status' in result
}

export interface EndpointAddress {
  readonly baseUrl: string
  readonly apiKey: string | undefined
}

export class Endpoint {
  constructor(
    private readonly address: EndpointAddress,
    private readonly probe: Probe,
  ) {}

  get apiKey(): string | undefined {
    return this.address.apiKey
  }

  generate(body: object, apiKey = this.address.apiKey): Promise<Exchange | Unanswered> {
    const headers = { ...this.probe.headers(apiKey), 'content-type': 'application/json' }
    return this.#exchange('generation', { method: 'POST', headers, body: JSON.stringify(body) })
  }

  models(): Promise<Exchange | Unanswered> {
    return this.#exchange('models', { headers: this.probe.headers(this.address.apiKey) })
  }

  async #exchange(what: 'generation' | 'models', init: RequestInit): Promise<Exchange | Unanswered> {
    const url = this.probe.urlOf(this.address.baseUrl, what)
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(patienceMs), redirect: 'manual' })
      const bytes = new Uint8Array(await response.arrayBuffer())
      return read(response, bytes)
    } catch (error) {
      return { unanswered: `${url}: ${reasonOf(error)}` }
    }
  }
}

function read({ status, headers }: Response, bytes: Uint8Array): Exchange {
  const text = new TextDecoder().decode(bytes)
  const contentType = headers.get('content-type') ?? ''
  const reader = new SseReader()
  const events = contentType.startsWith('text/event-stream') ? [...reader.push(bytes), ...reader.end()] : []
  return { status, contentType, text, isUtf8: isUtf8(bytes) && !text.includes('\ufffd'), json: parseJson(text), events }
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.name === 'TimeoutError' ? `no answer within ${patienceMs / 1000} s` : error.message
}
