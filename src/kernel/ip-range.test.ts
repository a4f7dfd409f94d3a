import { expect, test } from 'bun:test'
import { isInRange, networkOf, parseIpAddress, parseIpRange } from './ip-range.ts'

test('reads addresses as numbers', () => {
  const values: [text: string, family: 4 | 6, value: bigint][] = [
    ['0.0.0.0', 4, 0n],
    ['1.2.3.4', 4, 0x01020304n],
    ['255.255.255.255', 4, 0xffffffffn],
    ['::', 6, 0n],
    ['::1', 6, 1n],
    ['1::', 6, 1n << 112n],
    ['2001:db8::8:800:200c:417a', 6, 0x20010db80000000000080800200c417an],
    ['2001:DB8:0:0:8:800:200C:417A', 6, 0x20010db80000000000080800200c417an],
    ['1:2:3:4:5:6:7::', 6, 0x00010002000300040005000600070000n],
    ['64:ff9b::1.2.3.4', 6, 0x0064ff9b000000000000000001020304n],
    ['fe80::1%eth0', 6, (0xfe80n << 112n) + 1n],
  ]
  for (const [text, family, value] of values) expect(parseIpAddress(text)).toEqual({ family, value })
})

test('an IPv4 address in IPv6 clothes is the IPv4 address', () => {
  for (const text of ['::ffff:10.0.0.1', '::FFFF:a00:1', '0:0:0:0:0:ffff:0a00:0001']) {
    expect(parseIpAddress(text)).toEqual({ family: 4, value: 0x0a000001n })
  }
  // The old "compatible" form is another address, and so is one with the mark elsewhere.
  expect(parseIpAddress('::10.0.0.1')).toEqual({ family: 6, value: 0x0a000001n })
  expect(parseIpAddress('1::ffff:10.0.0.1')?.family).toBe(6)
})

test('reads no other forms of addresses', () => {
  const v4 = [
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3.4 ',
    '0x7f.0.0.1',
    '2130706433',
    '127.1',
    '１.2.3.4',
  ]
  const v6 = ': ::: 1::2::3 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7:8:: 12345:: g:: :1::'.split(' ')
  const mixed = ['::1.2.3', '::256.1.1.1', '1.2.3.4::', '::1.2.3.4:5', '[::1]', '::1%', '%eth0', '1.2.3.4/8']
  for (const text of [...v4, ...v6, ...mixed]) expect(parseIpAddress(text)).toBeUndefined()
})

test('names the network of one subscriber: an IPv4 address, or 2^64 IPv6 addresses', () => {
  expect(networkOf('192.0.2.7')).toBe(networkOf('::ffff:192.0.2.7'))
  expect(networkOf('192.0.2.7')).not.toBe(networkOf('192.0.2.8'))
  expect(networkOf('2001:db8:1:2::1')).toBe(networkOf('2001:db8:1:2:ffff::9'))
  expect(networkOf('2001:db8:1:2::1')).not.toBe(networkOf('2001:db8:1:3::1'))
  expect(networkOf('::')).not.toBe(networkOf('0.0.0.0'))
  expect([networkOf(undefined), networkOf('x')]).toEqual(['unknown', 'unknown'])
})

const edges: [range: string, inside: string[], outside: string[]][] = [
  ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255', '::ffff:10.9.8.7'], ['9.255.255.255', '11.0.0.0', '::a00:0']],
  ['192.168.1.64/26', ['192.168.1.64', '192.168.1.127'], ['192.168.1.63', '192.168.1.128']],
  ['203.0.113.7', ['203.0.113.7'], ['203.0.113.6', '203.0.113.8']],
  ['203.0.113.7/32', ['203.0.113.7'], ['203.0.113.8']],
  ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::', '::1']],
  ['::/0', ['::', 'ffff::'], ['1.2.3.4', '::ffff:1.2.3.4']],
  ['2001:db8::/33', ['2001:db8::', '2001:db8:7fff:ffff::'], ['2001:db8:8000::', '2001:db7:ffff::']],
  ['2001:db8::1', ['2001:db8:0::1'], ['2001:db8::2']],
  ['::ffff:10.0.0.0/104', ['10.1.2.3'], ['11.0.0.0', '::a01:203']],
  ['::ffff:0:0/96', ['0.0.0.0', '255.255.255.255'], ['::1']],
]

test.each(edges)('%s holds its first and last address and not their neighbours', (text, inside, outside) => {
  const range = parseIpRange(text)
  const holds = (address: string) => {
    const parsed = parseIpAddress(address)
    if (!range || !parsed) throw new Error(`not read: ${text} or ${address}`)
    return isInRange(range, parsed)
  }
  expect(inside.filter(holds)).toEqual(inside)
  expect(outside.filter(holds)).toEqual([])
})

test('refuses ranges that are none, or that have bits set after their prefix', () => {
  const wrong = ['', '/8', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/-1', '10.0.0.0/8/8', '10.0.0.0/8 ']
  const dirty = '10.0.0.1/8 192.168.1.1/24 2001:db8::1/64 ::/129 fe80::1%eth0 10/8 ::ffff:10.0.0.1/104'.split(' ')
  for (const text of [...wrong, ...dirty]) expect(parseIpRange(text)).toBeUndefined()
})
