import { expect, test } from 'bun:test'
import { inspect } from 'node:util'
import { createJumpClock } from '../../../test/parts/jump-clock.ts'
import { StartRefusal } from '../../store/start-refusal.ts'
import { createEgressGuard, type EgressGuardOptions, type Pinned } from './egress-guard.ts'
import { EgressRefusal } from './egress-refusal.ts'

const publicAddress = '93.184.216.34'

/** Answers every name with the same addresses and counts how often it was asked. */
function createResolver(...addresses: string[]) {
  const resolver = {
    asked: [] as string[],
    addresses,
    resolve: async (hostname: string) => {
      resolver.asked.push(hostname)
      return resolver.addresses
    },
  }
  return resolver
}

const guardOf = (options: Partial<EgressGuardOptions> = {}, ...addresses: string[]) =>
  createEgressGuard({ allow: [], resolve: createResolver(...addresses).resolve, ...options })

async function reasonOf(url: string, options: Partial<EgressGuardOptions> = {}, ...addresses: string[]) {
  const outcome = await guardOf(options, ...addresses).check(url)
  return outcome instanceof EgressRefusal ? outcome.reason : 'may be called'
}

test('S2: pins a public host to its checked addresses, with its name for Host and certificate', async () => {
  const guard = guardOf({}, publicAddress, '2606:2800:220:1::1')
  const pinned = (await guard.check('https://API.Example.com./v1/chat/completions?api-version=1')) as Pinned
  expect(pinned).toEqual({
    origin: 'https://api.example.com',
    dialUrls: [
      'https://93.184.216.34:443/v1/chat/completions?api-version=1',
      'https://[2606:2800:220:1::1]:443/v1/chat/completions?api-version=1',
    ],
    host: 'api.example.com',
    serverName: 'api.example.com',
  } as unknown as Pinned)
})

test('S2: a public address in the URL is checked and called as it is, without a question', async () => {
  const resolver = createResolver('10.0.0.1')
  const guard = createEgressGuard({ allow: [], resolve: resolver.resolve })
  expect(await guard.check(`https://${publicAddress}/v1`)).toMatchObject({
    dialUrls: [`https://${publicAddress}:443/v1`],
    host: publicAddress,
    serverName: undefined,
  })
  expect(resolver.asked).toEqual([])
})

test('S3: one bad address among good ones spoils the name', async () => {
  for (const bad of ['127.0.0.1', '::1', '169.254.169.254', '::ffff:10.0.0.1', 'fe80::1%eth0', 'nonsense', '']) {
    expect(await reasonOf('https://api.example.com/', {}, publicAddress, bad)).toBe('address')
    expect(await reasonOf('https://api.example.com/', {}, bad, publicAddress)).toBe('address')
  }
})

test('S3: a name that was public when it was checked and is private later is never called where it is later', async () => {
  const clock = createJumpClock()
  const resolver = createResolver(publicAddress)
  const guard = createEgressGuard({ allow: [], resolve: resolver.resolve, clock })
  const first = (await guard.check('https://rebind.test/v1')) as Pinned
  resolver.addresses = ['127.0.0.1']
  clock.jump(29)
  const second = (await guard.check('https://rebind.test/v1')) as Pinned
  expect([...first.dialUrls, ...second.dialUrls]).toEqual(Array(2).fill(`https://${publicAddress}:443/v1`))
  expect(resolver.asked).toEqual(['rebind.test'])
  clock.jump(1)
  expect(await guard.check('https://rebind.test/v1')).toMatchObject({ reason: 'address' })
  resolver.addresses = [publicAddress]
  // A refusal is not remembered.
  expect(await guard.check('https://rebind.test/v1')).not.toBeInstanceOf(EgressRefusal)
})

test('S5: public hosts are called by https on 443, and by http on 80 where the operator says so', async () => {
  expect(await reasonOf('https://api.example.com:443/v1', {}, publicAddress)).toBe('may be called')
  expect(await reasonOf('http://api.example.com/v1', {}, publicAddress)).toBe('scheme')
  expect(await reasonOf('http://api.example.com/v1', { plainHttp: true }, publicAddress)).toBe('may be called')
  for (const url of ['https://api.example.com:8443/', 'https://api.example.com:80/', 'http://api.example.com:443/']) {
    expect(await reasonOf(url, { plainHttp: true }, publicAddress)).toBe('port')
  }
  expect(await reasonOf('https://api.example.com:0/', { allow: ['api.example.com'] }, publicAddress)).toBe('port')
})

test('S1: what the operator lists may be private, plain, and on any port', async () => {
  const url = 'http://llm.corp.test:8000/v1'
  expect(await reasonOf(url, {}, '10.1.2.3')).toBe('address')
  for (const allow of ['llm.corp.test', 'LLM.corp.test.', '10.1.2.3', '10.0.0.0/8']) {
    expect(await reasonOf(url, { allow: [allow] }, '10.1.2.3')).toBe('may be called')
  }
  for (const allow of ['corp.test', 'other.corp.test', '10.1.2.4', '10.1.3.0/24', '0.0.0.0/32']) {
    expect(await reasonOf(url, { allow: [allow] }, '10.1.2.3')).toBe('address')
  }
  // Listed and public addresses may mix, but then only the public way is open.
  expect(await reasonOf(url, { allow: ['10.0.0.0/8'] }, '10.1.2.3', publicAddress)).toBe('scheme')
  expect(await reasonOf(url, { allow: ['10.0.0.0/8'] }, publicAddress, '10.1.2.3')).toBe('scheme')
  expect(await reasonOf('http://[::1]:8000/v1', { allow: ['::1'] })).toBe('may be called')
})

test('S1: metadata is out of reach whatever the operator lists', async () => {
  const metadata = ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '168.63.129.16', '169.254.170.2']
  for (const address of metadata) {
    const allow = ['metadata.test', '0.0.0.0/0', '::/0', address]
    expect(await reasonOf('http://metadata.test/', { allow }, address)).toBe('address')
    const host = address.includes(':') ? `[${address}]` : address
    expect(await reasonOf(`http://${host}/`, { allow })).toBe('address')
  }
  for (const wrapped of ['::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1', '2001::5601:5601']) {
    expect(await reasonOf('http://metadata.test/', { allow: ['metadata.test', '::/0'] }, wrapped)).toBe('address')
  }
})

test('S3: an allowed translator opens the public internet behind it and nothing private', async () => {
  const allow = ['64:ff9b::/96']
  expect(await reasonOf('https://api.example.com/', { allow }, '64:ff9b::5db8:d822')).toBe('may be called')
  expect(await reasonOf('https://api.example.com/', { allow }, '64:ff9b::a00:1')).toBe('address')
  expect(await reasonOf('https://api.example.com/', { allow: [...allow, '10.0.0.0/8'] }, '64:ff9b::a00:1')).toBe(
    'may be called',
  )
})

test('a list that was misunderstood is not in force', () => {
  for (const entry of [
    '',
    ' ',
    '*.corp.test',
    'http://llm.corp.test',
    'llm.corp.test:80',
    '10.0.0.1/8',
    '10.0.0.0/33',
    '127.1',
    'a b',
    'user@host',
    '[::1]',
  ]) {
    expect(() => createEgressGuard({ allow: [entry] })).toThrow(StartRefusal)
    expect(() => createEgressGuard({ allow: [entry] })).toThrow(`own_keys.allow_hosts: "${entry}": expected`)
  }
})

test('tells a tenant the same of a name that is private and of one that does not exist', async () => {
  const secret = await guardOf({}, '10.1.2.3').check('https://vault.corp.test/')
  const missing = await guardOf({
    resolve: () => Promise.reject(new Error('getaddrinfo ENOTFOUND')),
  }).check('https://vault.corp.test/')
  expect((secret as EgressRefusal).message).toBe((missing as EgressRefusal).message)
  expect((secret as EgressRefusal).message).not.toContain('10.1.2.3')
  expect((secret as EgressRefusal).detail).toBe('vault.corp.test is at 10.1.2.3: private')
  expect((missing as EgressRefusal).reason).toBe('unresolved')
  expect(await reasonOf('https://empty.test/')).toBe('unresolved')
})

test('gives a base URL as it is to be stored, with the origin its credential belongs to', async () => {
  const guard = guardOf({ allow: ['llm.corp.test'] }, publicAddress)
  const stored: [text: string, baseUrl: string, origin: string][] = [
    ['https://API.example.com', 'https://api.example.com', 'https://api.example.com'],
    ['https://api.example.com.:443/v1//', 'https://api.example.com/v1', 'https://api.example.com'],
    ['http://llm.corp.test:8000/a/../v1/', 'http://llm.corp.test:8000/v1', 'http://llm.corp.test:8000'],
    ['https://bücher.example/v1', 'https://xn--bcher-kva.example/v1', 'https://xn--bcher-kva.example'],
  ]
  for (const [text, baseUrl, origin] of stored) expect(await guard.checkBaseUrl(text)).toEqual({ baseUrl, origin })
  expect(await guard.checkBaseUrl('https://api.example.com/v1?x=')).toMatchObject({ reason: 'url' })
  expect(await guard.checkBaseUrl('http://api.example.com/v1')).toMatchObject({ reason: 'scheme' })
  expect(await guard.checkBaseUrl('https://key:sk-canary@api.example.com/v1')).toMatchObject({ reason: 'url' })
})

test('L1: a refusal does not repeat what stood in the URL', async () => {
  for (const url of ['https://key:sk-canary@api.example.com/v1', 'https://api.example.com/v1#sk-canary', 'sk-canary']) {
    const refusal = await guardOf({}, publicAddress).check(url)
    expect(refusal).toBeInstanceOf(EgressRefusal)
    expect(
      (refusal as EgressRefusal).message + JSON.stringify(refusal) + (refusal as EgressRefusal).detail,
    ).not.toContain('canary')
    expect(inspect((refusal as EgressRefusal).reason)).toMatch(/url|scheme/)
  }
})
