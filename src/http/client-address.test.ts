import { expect, test } from 'bun:test'
import { parseIpRange } from '../kernel/ip-range.ts'
import { clientAddress, forwardedProto } from './client-address.ts'

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

test('R4: without trusted proxies the header is never read, and a closed socket has no address', () => {
  const headers = new Headers({ 'x-forwarded-for': '203.0.113.7' })
  expect(clientAddress({ socket: proxy, headers, trustedProxies: [] })).toBe(proxy)
  expect(clientAddress({ socket: undefined, headers, trustedProxies })).toBeUndefined()
})

test('R4: the header may come in several lines', () => {
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
