// A gateway with batches, and what tests do with them over HTTP.

import { createId, type KeyId, type ProjectId, type WorkspaceId } from '../../src/kernel/ids.ts'
import { zeroNano } from '../../src/kernel/money.ts'
import type { Database } from '../../src/store/database.ts'
import { type Batch, batchRow } from '../../src/tenancy/batches.ts'
import type { Gateway } from '../parts/gateway.ts'

export const batchesOn = { TOLLGATE_BATCHES: 'on', TOLLGATE_SECRET: 'p0Xk3vQ9sLr7TzWb2NcYdMfHgJaEiU5o8RtV1xC4' }

export interface Reply {
  readonly status: number
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into every kind of answer.
  readonly body: any
}

export async function call(
  { url, key: usualKey }: Pick<Gateway, 'url' | 'key'>,
  method: string,
  path: string,
  { key = usualKey, body }: { readonly key?: string; readonly body?: object } = {},
): Promise<Reply> {
  const isForm = body instanceof FormData
  const headers = { authorization: `Bearer ${key}`, ...(!isForm && { 'content-type': 'application/json' }) }
  const sent = body && (isForm ? body : JSON.stringify(body))
  const response = await fetch(`${url}/v1${path}`, { method, headers, ...(sent && { body: sent }) })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('application/json')
  return { status: response.status, text, body: isJson ? JSON.parse(text) : undefined }
}

export function formOf(content: string, fields: Record<string, string> = { purpose: 'batch' }): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.set('file', new File([content], 'lines.jsonl'))
  return form
}

export function chatLine(customId: string, content: string, more: object = {}): string {
  const body = { model: 'test/chat', max_tokens: 64, messages: [{ role: 'user', content }], ...more }
  return JSON.stringify({ custom_id: customId, method: 'POST', url: '/v1/chat/completions', body })
}

export async function uploadLines(gateway: Pick<Gateway, 'url' | 'key'>, lines: readonly string[], key?: string) {
  const { status, body, text } = await call(gateway, 'POST', '/files', {
    body: formOf(lines.join('\n')),
    ...(key && { key }),
  })
  if (status !== 200) throw new Error(`the upload was answered with ${status}: ${text}`)
  return body.id as string
}

export async function createOf(
  gateway: Pick<Gateway, 'url' | 'key'>,
  lines: readonly string[],
  { endpoint = '/v1/chat/completions', key, ...more }: { endpoint?: string; key?: string; metadata?: object } = {},
): Promise<Reply> {
  const input_file_id = await uploadLines(gateway, lines, key)
  const body = { input_file_id, endpoint, completion_window: '24h', ...more }
  return await call(gateway, 'POST', '/batches', { body, ...(key && { key }) })
}

/** Asks until the batch is in one of these states. */
export async function until(gateway: Pick<Gateway, 'url' | 'key'>, id: string, ...states: readonly string[]) {
  for (;;) {
    const { body } = await call(gateway, 'GET', `/batches/${id}`)
    if (states.includes(body.status)) return body
    await Bun.sleep(50)
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the lines of every kind of batch.
export function linesIn(text: string): any[] {
  return text
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

interface BatchPlace {
  readonly workspaceId: WorkspaceId
  readonly projectId: ProjectId
  readonly keyId: KeyId
}

/** A batch of ten lines that runs, as its row; for tests that run none. */
export async function insertBatch(database: Database, place: BatchPlace, facts: Partial<Batch> = {}): Promise<Batch> {
  const hour = 3_600_000
  const createdAt = facts.createdAt ?? Date.parse('2027-01-15T08:00:00Z')
  const batch: Batch = {
    ...{ id: createId('batch'), surface: 'chat', endpoint: '/v1/chat/completions', inputFileId: createId('file') },
    ...{ ...place, metadata: undefined, state: 'running', outcome: undefined, errors: undefined, waitsFor: undefined },
    ...{ total: 10, succeeded: 0, errored: 0, cancelled: 0, expired: 0, cost: zeroNano, estimate: zeroNano },
    ...{ inputTokens: 0, outputTokens: 0, createdAt, expiresAt: createdAt + 24 * hour, cancelledAt: undefined },
    ...{ endingAt: undefined, endedAt: undefined, eraseAt: undefined, outputDays: 7 },
    ...{ outputFileId: undefined, errorFileId: undefined, provider: undefined, ...facts },
  }
  await database.transaction((sql) => sql`INSERT INTO batches ${sql([batchRow.write(batch)])}`)
  return batch
}
