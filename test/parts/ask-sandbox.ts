// For the tests of this folder: a transport on a clock that stands still, requests in both dialects, and plain readers
// of what comes back. Shares no code with what it tests.

import { createSandboxTransport, type Delay, type SandboxTransport } from '../../src/providers/sandbox/transport.ts'

export type Path = '/chat/completions' | '/v1/messages' | '/v1/messages/count_tokens'

/** 2026-11-15T00:00:00.999Z: the fraction must not show in `created`. */
export const nowMs = 1_794_700_800_999

export function createTransport(delay: Delay = async () => {}): SandboxTransport {
  return createSandboxTransport({ clock: { now: () => nowMs, monotonicMs: () => 0 }, delay })
}

export function ask(transport: SandboxTransport, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const bytes = new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
  return transport({ path, headers: {}, body: bytes, signal: signal ?? new AbortController().signal })
}

/** A one-message request that means the same in both dialects. */
export function say(path: Path, model: string, text: string, more: object = {}): object {
  const cap = path === '/v1/messages' ? { max_tokens: 1000 } : {}
  return { model, ...cap, messages: [{ role: 'user', content: text }], ...more }
}

/** Untyped, as a client without types would see it. */
export async function readJson(response: Response) {
  return JSON.parse(await response.text())
}

export interface SseRecord {
  readonly event: string | undefined
  readonly data: string
}

export async function readRecords(response: Response): Promise<SseRecord[]> {
  const text = await response.text()
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => {
      const lines = block.split('\n')
      const event = lines.find((line) => line.startsWith('event: '))?.slice(7)
      return { event, data: lines.find((line) => line.startsWith('data: '))?.slice(6) ?? '' }
    })
}
