import { expect, test } from 'bun:test'
import { pathOf, queryOf } from './client-request.ts'

test.each([
  ['/v1/models?x=1', '/v1/models'],
  ['/v1/models?x=http://a/b', '/v1/models'],
  ['/v1/models?x=://a/api/keys', '/v1/models'],
  ['//a/api/keys?x=http://b/c', '//a/api/keys'],
  ['/v1/models?x?y', '/v1/models'],
  // Not the end of a path in the target of a request: a path with it is refused.
  ['/v1/models#x?y', '/v1/models#x'],
  ['http://gateway:8080/v1/models?x=1', '/v1/models'],
  ['http://gateway', '/'],
  ['http://gateway//api/keys', '//api/keys'],
  ['HTTPS://other.example:99', '/'],
  ['http://other.example?x=/a', '/'],
  // Each character is a byte: the UTF-8 of é, and the same letter in Latin-1.
  ['/catalog/caf\xc3\xa9', '/catalog/caf%C3%A9'],
  ['/catalog/caf\xe9', '/catalog/caf%E9'],
])('the path of the target %s is %s', (url, path) => {
  expect(pathOf(url)).toBe(path)
})

test.each([
  ['/v1/models', []],
  ['/v1/models?', []],
  [
    '/v1/models?a=1&b=%20&a=2',
    [
      ['a', '1'],
      ['b', ' '],
      ['a', '2'],
    ],
  ],
  ['http://gateway/v1/models?a=/b?c', [['a', '/b?c']]],
  ['/v1/models?a=caf\xc3\xa9#b=1', [['a', 'café']]],
])('the query of the target %s is %j', (url, query) => {
  expect([...queryOf(url)]).toEqual(query as [string, string][])
})
