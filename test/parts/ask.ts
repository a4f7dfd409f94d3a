// Requests to a gateway, as JSON, with a key.

import { addressed, type TestSurface } from './surfaces.ts'

export interface Asked {
  readonly url: string
  readonly key: string
}

export function post(
  { url, key }: Asked,
  path: string,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
  signal: AbortSignal | null = null,
): Promise<Response> {
  return fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal,
  })
}

/** A generation. Tests write `model` and `stream` as members for every surface. */
export function ask(
  asked: Asked,
  surface: Pick<TestSurface, 'name' | 'path' | 'headers'>,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<Response> {
  const sent = addressed(surface, typeof body === 'string' ? body : JSON.stringify(body))
  return post(asked, sent.path, sent.body, { ...surface.headers, ...headers }, signal)
}
