import { describe, expect, test } from 'bun:test'
import { isInRange, parsePlainAddress, parsePlainRange } from '../../kernel/ip-range.ts'
import { embeddedAddresses, specialRangeOf } from './addresses.ts'

test('reads every form of an address as one number', () => {
  expect(parsePlainAddress('127.0.0.1')).toEqual({ family: 4, value: 0x7f000001n })
  expect(parsePlainAddress('255.255.255.255')).toEqual({ family: 4, value: 0xffffffffn })
  expect(parsePlainAddress('::')).toEqual({ family: 6, value: 0n })
  expect(parsePlainAddress('::1')).toEqual({ family: 6, value: 1n })
  expect(parsePlainAddress('1::')).toEqual({ family: 6, value: 1n << 112n })
  expect(parsePlainAddress('::ffff:127.0.0.1')).toEqual({ family: 6, value: 0xffff7f000001n })
  const full = { family: 6, value: 0x20010db8000000000000000000000001n } as const
  for (const text of ['2001:db8::1', '2001:DB8:0:0:0:0:0:1', '2001:0db8:0000:0000:0000:0000:0.0.0.1']) {
    expect(parsePlainAddress(text)).toEqual(full)
  }
})

test('accepts only plain literals as an address', () => {
  for (const text of [
    '',
    '127.1',
    '0x7f.0.0.1',
    '127.0.0.1.',
    '1.2.3.4.5',
    '::1%lo',
    '[::1]',
    'localhost',
    '1::2::3',
  ]) {
    expect(parsePlainAddress(text)).toBeUndefined()
  }
})

test('reads ranges, and refuses bits after the prefix', () => {
  const private24 = parsePlainRange('10.1.2.0/24')
  expect(private24).toEqual({ family: 4, prefix: 0x0a0102n, freeBits: 8n })
  expect(parsePlainRange('10.1.2.3')).toEqual({ family: 4, prefix: 0x0a010203n, freeBits: 0n })
  expect(parsePlainRange('::/0')).toEqual({ family: 6, prefix: 0n, freeBits: 128n })
  for (const text of '10.1.2.3/24 10.0.0.0/33 ::/129 10.0.0.0/ 10.0.0.0/08 10.0.0.0/8/8 10.0.0.0/-1 a/8'.split(' ')) {
    expect(parsePlainRange(text)).toBeUndefined()
  }
})

test('a range ends where it ends, and never holds an address of the other family', () => {
  const within = (range: string, address: string) => {
    const [parsedRange, parsedAddress] = [parsePlainRange(range), parsePlainAddress(address)]
    return parsedRange !== undefined && parsedAddress !== undefined && isInRange(parsedRange, parsedAddress)
  }
  expect(within('172.16.0.0/12', '172.16.0.0')).toBe(true)
  expect(within('172.16.0.0/12', '172.31.255.255')).toBe(true)
  expect(within('172.16.0.0/12', '172.32.0.0')).toBe(false)
  expect(within('172.16.0.0/12', '172.15.255.255')).toBe(false)
  expect(within('::/0', '1.2.3.4')).toBe(false)
  expect(within('0.0.0.0/0', '::1')).toBe(false)
  expect(within('fc00::/7', 'fdff::1')).toBe(true)
  expect(within('fc00::/7', 'fe00::1')).toBe(false)
})

function whatOf(text: string): string {
  const address = parsePlainAddress(text)
  return address === undefined ? 'no address' : (specialRangeOf(address)?.what ?? 'public')
}

describe('S3: knows', () => {
  // The first and the last of each range, and their neighbours outside.
  const cases: Record<string, readonly string[]> = {
    public: [
      '1.1.1.1',
      '9.255.255.255',
      '11.0.0.0',
      '100.63.255.255',
      '100.128.0.0',
      '126.255.255.255',
      '128.0.0.0',
      '169.253.255.255',
      '169.255.0.0',
      '168.63.129.15',
      '168.63.129.17',
      '172.15.255.255',
      '172.32.0.0',
      '191.255.255.255',
      '192.0.1.0',
      '192.0.3.0',
      '192.167.255.255',
      '192.169.0.0',
      '198.17.255.255',
      '198.20.0.0',
      '223.255.255.255',
      '2000::',
      '2001:200::',
      '2001:db7::1',
      '2001:db9::1',
      '2003::',
      '2606:4700::1111',
      '3ffe::1',
      '3fff:1000::',
    ],
    'this network': ['0.0.0.0', '0.255.255.255'],
    private: [
      '10.0.0.0',
      '10.255.255.255',
      '172.16.0.0',
      '172.31.255.255',
      '192.168.0.0',
      '192.168.255.255',
      'fc00::',
      'fdff::1',
    ],
    'shared by a carrier': ['100.64.0.0', '100.127.255.255', '100.100.100.199'],
    loopback: ['127.0.0.0', '127.0.0.1', '127.255.255.255', '::1'],
    'link-local, cloud metadata': ['169.254.0.0', '169.254.169.254', '169.254.170.2', '169.254.255.255'],
    'link-local': ['fe80::1', 'febf::1'],
    'cloud metadata (Azure)': ['168.63.129.16'],
    'cloud metadata (Alibaba)': ['100.100.100.200'],
    'cloud metadata (Oracle)': ['192.0.0.192', 'fd00:c1::a9fe:a9fe'],
    'cloud metadata (AWS)': ['fd00:ec2::254', 'fd00:ec2::23', 'fd00:0ec2:0:0:0:0:0:fe'],
    'cloud metadata (Google)': ['fd20:ce::254'],
    'cloud metadata (Scaleway)': ['fd00:42::42'],
    'protocol assignments': ['192.0.0.1', '2001:1::1', '2001:1ff:ffff::'],
    documentation: ['192.0.2.1', '198.51.100.255', '203.0.113.7', '2001:db8::1', '3fff::1', '3fff:fff::1'],
    '6to4 relay': ['192.88.99.1'],
    benchmarking: ['198.18.0.0', '198.19.255.255'],
    multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
    reserved: [
      '240.0.0.0',
      '255.255.255.255',
      '::2',
      '::7f00:1',
      '::ffff:0:7f00:1',
      '100::1',
      '1fff::',
      '4000::',
      'fec0::1',
      'fe00::1',
    ],
    unspecified: ['::'],
    'IPv4-mapped': ['::ffff:127.0.0.1', '::ffff:1.1.1.1'],
    NAT64: ['64:ff9b::7f00:1', '64:ff9b:1::1'],
    Teredo: ['2001::1'],
    '6to4': ['2002:7f00:1::'],
  }
  for (const [what, addresses] of Object.entries(cases)) {
    test(what, () => {
      for (const text of addresses) expect(`${text} ${whatOf(text)}`).toBe(`${text} ${what}`)
    })
  }
})

test('S3: finds the IPv4 address inside every form that carries one', () => {
  const metadata = 0xa9fea9fen
  const carrying = [
    '::ffff:169.254.169.254',
    '::169.254.169.254',
    '::ffff:0:169.254.169.254',
    '64:ff9b::169.254.169.254',
    '64:ff9b:1::169.254.169.254',
    // RFC 6052, prefix of 48 bits: 169.254 in bits 48–63, an empty octet, 169.254 in bits 72–87.
    '64:ff9b:1:a9fe:a9:fe00::',
    '2002:a9fe:a9fe::1',
    // Teredo: as the server; as the client, turned over.
    '2001:0:a9fe:a9fe::1',
    '2001::5601:5601',
    '2606:4700::5efe:169.254.169.254',
    '2606:4700::200:5efe:169.254.169.254',
  ]
  for (const text of carrying) {
    const address = parsePlainAddress(text)
    const inside = address === undefined ? [] : embeddedAddresses(address).map(({ value }) => value)
    expect({ text, found: inside.includes(metadata) }).toEqual({ text, found: true })
  }
  for (const text of ['::', '::1', '2606:4700::1111', '169.254.169.254', '2606:4700::a9fe:a9fe']) {
    const address = parsePlainAddress(text)
    expect(address && embeddedAddresses(address)).toEqual([])
  }
})
