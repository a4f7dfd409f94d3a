import { expect, test } from 'bun:test'
import { isPlainSegment, pathOf, publicPath } from './path.ts'

const forms: readonly [path: string, meant: string][] = [
  ['/v1/chat/completions', '/chat/completions'],
  ['/chat/completions', '/chat/completions'],
  ['/v1/v1/messages', '/messages'],
  ['/v1/v1/v1/messages', '/v1/messages'],
  // Extra slashes are not removed: such a path is refused, so that it cannot pass by a proxy's rule.
  ['/v1//chat/completions', '//chat/completions'],
  ['//v1/models', '//v1/models'],
  ['/v1/chat/completions/', '/chat/completions'],
  ['/v1/models/acme/large/', '/models/acme/large'],
  ['/v1/models/acme%2Flarge', '/models/acme%2Flarge'],
  ['/v1/', '/'],
  ['/', '/'],
]

test.each(forms)('%s is taken for %s', (path, meant) => {
  expect(publicPath(path)).toBe(meant)
})

test.each([
  ['http://gateway:8080/v1/models?x=1', '/v1/models'],
  ['http://gateway/v1/models#x', '/v1/models'],
  ['http://gateway', '/'],
  ['http://gateway//api/keys', '//api/keys'],
  // What the runtime makes of an empty or a strange Host.
  ['/v1/models', '/v1/models'],
  ['/v1/models?x=://a/api/keys', '/v1/models'],
  ['//a/api/keys?x=http://b/c', '//a/api/keys'],
])('%s leads to %s', (url, path) => {
  expect(pathOf(url)).toBe(path)
})

test.each(['v1', 'acme/large', 'a.b', '...', '..a', 'gpt-5.6', ':', '~', 'é', 'a b', '..;', ''])(
  'the segment "%s" is plain',
  (decoded) => {
    expect(isPlainSegment(decoded)).toBe(true)
  },
)

test.each(['.', '..', 'a/..', '../a', 'a/../b', 'a/./b', '/..', 'a\\b', '\\', '#', 'keys#x', '..#x', '\ufffd'])(
  'the segment "%s" is not plain',
  (decoded) => {
    expect(isPlainSegment(decoded)).toBe(false)
  },
)
