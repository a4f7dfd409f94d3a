// The management API of a running gateway, with the token from its data folder.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Gateway, requestRecords } from './gateway.ts'

export interface Managed {
  readonly url: string
  readonly dataFolder: string
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The JSON; undefined where there is no body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into every kind of answer.
  readonly body: any
}

export function adminToken(dataFolder: string): string {
  return readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim()
}

export function adminHeaders(dataFolder: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${adminToken(dataFolder)}`, 'content-type': 'application/json' }
}

/** Returns the text of a successful call and throws on any other. */
export async function callManagement(
  url: string,
  headers: Readonly<Record<string, string>>,
  [method, path, body]: readonly [method: string, path: string, body?: unknown],
): Promise<string> {
  const response = await fetch(url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every kind.
export async function manage({ url, dataFolder }: Managed, method: string, path: string, body?: unknown): Promise<any> {
  return JSON.parse(await callManagement(url, adminHeaders(dataFolder), [method, path, body]))
}

/** The last of this many requests, once it is in the log. */
export async function recordedRequest(gateway: Gateway, count = 1): Promise<Record<string, unknown>> {
  const logged = (await requestRecords(gateway, count)).at(-1)
  const headers = adminHeaders(gateway.dataFolder)
  for (;;) {
    const answer = await fetch(`${gateway.url}/api/requests/${logged?.request_id}`, { headers })
    if (answer.status === 200) return (await answer.json()) as Record<string, unknown>
    // The log is written in batches.
    await Bun.sleep(20)
  }
}
