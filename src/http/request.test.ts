import { expect, test } from 'bun:test'
import { publicPath } from '../dialects/registry.ts'
import { parseIpRange } from '../kernel/ip-range.ts'
import { clientAddress, forwardedProto, isPlainPath, segmentsMax } from './request.ts'

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

test.each(forms)('reads %s as %s', (path, meant) => {
  expect(publicPath(path)).toBe(meant)
})

const plain = [
  '/',
  '/v1',
  '/v1/',
  '/acme%2Flarge',
  '/a.b',
  '/...',
  '/..a',
  '/gpt-5.6',
  '/:',
  '/~',
  '/é',
  '/a%20b',
  '/..;',
  '/%00',
]

test.each(plain)('the path %s is plain', (path) => {
  expect(isPlainPath(path)).toBe(true)
})

const dots = [
  '/.',
  '/..',
  '/a/..',
  '/../a',
  '/a/../b',
  '/a/./b',
  '/%2e%2e',
  '/%2E.',
  '/a%2F..',
  '/a%2F..%2Fb',
  '/..%2Fa',
]
const others = [
  '//',
  '//a',
  '/a//b',
  '/a//',
  '/a\\b',
  '/\\',
  '/%5c',
  '/#',
  '/keys#x',
  '/..#x',
  '/\ufffd',
  '/%ff',
  '/%',
  '/%zz',
]

test.each([...dots, ...others, '/x'.repeat(segmentsMax + 1)])('the path %s is not plain', (path) => {
  expect(isPlainPath(path)).toBe(false)
})

const trustedProxies = ['10.0.0.0/8', '2001:db8:1::/48'].flatMap((text) => parseIpRange(text) ?? [])
const proxy = '10.0.0.9'

interface Case {
  readonly what: string
  readonly socket?: string
  readonly forwarded?: string
  readonly address: string | undefined
}

const cases: readonly Case[] = [
  { what: 'a socket that is no proxy is the client', socket: '203.0.113.7', address: '203.0.113.7' },
  { what: 'and its header is its own claim', socket: '203.0.113.7', forwarded: '192.0.2.1', address: '203.0.113.7' },
  { what: 'a proxy that says nothing is the client', address: proxy },
  { what: 'so is one with an empty header', forwarded: ' ', address: proxy },
  { what: 'a proxy is believed', forwarded: '203.0.113.7', address: '203.0.113.7' },
  { what: 'an IPv6 proxy too', socket: '2001:db8:1::2', forwarded: '2001:db8:2::7', address: '2001:db8:2::7' },
  { what: 'one on a dual-stack socket too', socket: '::ffff:10.0.0.9', forwarded: '192.0.2.1', address: '192.0.2.1' },
  { what: 'trusted ones are skipped', forwarded: '203.0.113.7, 10.1.2.3,10.9.9.9', address: '203.0.113.7' },
  { what: 'a claim before the client is not read', forwarded: '192.0.2.1, 203.0.113.7', address: '203.0.113.7' },
  { what: 'not even if it is nonsense', forwarded: 'unknown, 203.0.113.7, 10.1.2.3', address: '203.0.113.7' },
  { what: 'the leftmost if all are trusted', forwarded: '10.1.1.1, 10.2.2.2', address: '10.1.1.1' },
  { what: 'a port is left out', forwarded: '203.0.113.7:567', address: '203.0.113.7' },
  { what: 'after brackets too', forwarded: '[2001:db8:2::7]:567, 10.1.1.1:80', address: '2001:db8:2::7' },
  { what: 'brackets alone too', forwarded: '[2001:db8:2::7]', address: '2001:db8:2::7' },
  { what: 'a name is no address', forwarded: 'client.example', address: undefined },
  { what: 'nor is a hidden one', forwarded: '203.0.113.7, _hidden', address: undefined },
  { what: 'nor an empty entry', forwarded: '203.0.113.7,', address: undefined },
  { what: 'nor a shortened one', forwarded: '127.1', address: undefined },
  { what: 'nor one with a wrong port', forwarded: '203.0.113.7:567890', address: undefined },
]

test.each([...cases])('R4: $what', ({ socket = proxy, forwarded, address }) => {
  const headers = new Headers(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded })
  expect(clientAddress({ socket, headers, trustedProxies })).toBe(address)
})

test('R4: ignores the header without trusted proxies, and knows no address of a closed socket', () => {
  const headers = new Headers({ 'x-forwarded-for': '203.0.113.7' })
  expect(clientAddress({ socket: proxy, headers, trustedProxies: [] })).toBe(proxy)
  expect(clientAddress({ socket: undefined, headers, trustedProxies })).toBeUndefined()
})

test('R4: reads a header that comes in several lines', () => {
  const headers = new Headers([
    ['x-forwarded-for', '192.0.2.1'],
    ['x-forwarded-for', '203.0.113.7'],
    ['x-forwarded-for', '10.1.1.1'],
  ])
  expect(clientAddress({ socket: proxy, headers, trustedProxies })).toBe('203.0.113.7')
})

test.each([
  ['a trusted proxy', proxy, 'https', 'https'],
  ['the proxy nearest to the client, of several', proxy, 'https, http', 'https'],
  ['a client that is no proxy', '203.0.113.7', 'https', undefined],
  ['a socket that is closed', undefined, 'https', undefined],
  ['a trusted proxy without the header', proxy, undefined, undefined],
])('X-Forwarded-Proto of %s', (_, socket, header, believed) => {
  const headers = new Headers(header === undefined ? {} : { 'x-forwarded-proto': header })
  expect(forwardedProto({ socket, headers, trustedProxies })).toBe(believed)
  expect(forwardedProto({ socket, headers, trustedProxies: [] })).toBeUndefined()
})
