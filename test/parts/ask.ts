// One request to a gateway, as JSON, with its first key.

import { addressed, type TestSurface } from './surfaces.ts'

export interface Asked {
  readonly url: string
  readonly key: string
}

export function ask(
  { url, key }: Asked,
  surface: TestSurface,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const sent = addressed(surface, typeof body === 'string' ? body : JSON.stringify(body))
  return fetch(url + sent.path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...surface.headers, ...headers },
    body: sent.body,
  })
}
