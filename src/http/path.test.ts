import { expect, test } from 'bun:test'
import { publicPath } from './path.ts'

const forms: readonly [path: string, meant: string][] = [
  ['/v1/chat/completions', '/chat/completions'],
  ['/chat/completions', '/chat/completions'],
  ['/v1/v1/messages', '/messages'],
  ['/v1/v1/v1/messages', '/v1/messages'],
  ['/v1//chat/completions', '/chat/completions'],
  ['//v1/models', '/models'],
  ['//v1///models//', '/models'],
  ['/v1/chat/completions/', '/chat/completions'],
  ['/v1/models/acme/large/', '/models/acme/large'],
  ['/v1/models/acme%2Flarge', '/models/acme%2Flarge'],
  ['/v1/', '/'],
  ['/', '/'],
  ['//', '/'],
]

test.each(forms)('%s is taken for %s', (path, meant) => {
  expect(publicPath(path)).toBe(meant)
})
