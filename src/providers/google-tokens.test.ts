import { afterAll, beforeEach, expect, test } from 'bun:test'
import { createVerify, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { Secret } from '../kernel/secret.ts'
import { AccessTokens } from './access-tokens.ts'
import { callEndpoint, isBadCredential, isUnreachable } from './call-endpoint.ts'
import { createSign } from './credentials.ts'
import { createGoogleExchange, usualTokenUrl } from './google-tokens.ts'
import type { Endpoint, UpstreamRequest } from './provider.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-account-'))

let forms: URLSearchParams[] = []
let answer: () => Response | Promise<Response> = () =>
  Response.json({ access_token: `token-${forms.length}`, expires_in: 3600 })
const issuer = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    forms.push(new URLSearchParams(await request.text()))
    return answer()
  },
})
const tokenUrl = `http://127.0.0.1:${issuer.port}/token`
const keyFile = { client_email: 'robot@acme.example', private_key: pem, private_key_id: 'kid-1', token_uri: tokenUrl }

beforeEach(() => {
  forms = []
  answer = () => Response.json({ access_token: `token-${forms.length}`, expires_in: 3600 })
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await issuer.stop(true)
})

function open(operator: Secret) {
  const clock = createJumpClock()
  const input = { clock, operator }
  return { clock, tokens: new AccessTokens({ ...input, exchange: createGoogleExchange(input) }) }
}

const noIdentity = { settings: {}, instance: undefined }

const partOf = (jwt: string, at: number): unknown =>
  JSON.parse(Buffer.from(jwt.split('.')[at] ?? '', 'base64url').toString())

test('a signed claim is exchanged for a token', async () => {
  const operator = new Secret(JSON.stringify(keyFile))
  const { clock, tokens } = open(operator)
  expect(await tokens.tokenFor(operator)).toBe('token-1')
  const [form] = forms
  expect(form?.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
  const claim = form?.get('assertion') ?? ''
  const seconds = Math.floor(clock.now() / 1000)
  expect(partOf(claim, 0)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'kid-1' })
  expect(partOf(claim, 1)).toEqual({
    iss: 'robot@acme.example',
    scope: 'https://www.googleapis.com/auth/cloud-platform',
    aud: tokenUrl,
    iat: seconds,
    exp: seconds + 3600,
  })
  const [head = '', body = '', signature = ''] = claim.split('.')
  const isSigned = createVerify('sha256').update(`${head}.${body}`).verify(publicKey, signature, 'base64url')
  expect(isSigned).toBe(true)
})

test('a token is renewed five minutes before its end, while calls go on with it', async () => {
  const operator = new Secret(JSON.stringify(keyFile))
  const { clock, tokens } = open(operator)
  await tokens.tokenFor(operator)
  clock.jump(3299)
  expect(await tokens.tokenFor(operator)).toBe('token-1')
  expect(forms).toHaveLength(1)
  clock.jump(1)
  expect(await tokens.tokenFor(operator)).toBe('token-1')
  while ((await tokens.tokenFor(operator)) !== 'token-2') await Bun.sleep(1)
  expect(forms).toHaveLength(2)
})

test('a token that was refused is not used again, and a later one stays', async () => {
  const operator = new Secret(JSON.stringify(keyFile))
  const { tokens } = open(operator)
  expect(await tokens.tokenFor(operator)).toBe('token-1')
  tokens.drop(operator, (token) => token === 'token-1')
  expect(await tokens.tokenFor(operator)).toBe('token-2')
  tokens.drop(operator, (token) => token === 'token-1')
  expect(await tokens.tokenFor(operator)).toBe('token-2')
})

test('the scheme drops the token of a proof that was refused', async () => {
  const operator = new Secret(JSON.stringify(keyFile))
  const sign = createSign('google-oauth', { clock: createJumpClock(), operator, identity: noIdentity })
  const request = { url: 'https://host.example/x', headers: {}, body: new Uint8Array(0) }
  const first = await sign?.(request, operator)
  expect(first).toEqual({ authorization: 'Bearer token-1' })
  sign?.refused?.(operator, { authorization: 'Bearer another' })
  expect(await sign?.(request, operator)).toEqual({ authorization: 'Bearer token-1' })
  sign?.refused?.(operator, first ?? {})
  expect(await sign?.(request, operator)).toEqual({ authorization: 'Bearer token-2' })
})

test('calls that come together ask once', async () => {
  const operator = new Secret(JSON.stringify(keyFile))
  const { tokens } = open(operator)
  const all = await Promise.all([1, 2, 3].map(() => tokens.tokenFor(operator)))
  expect(all).toEqual(['token-1', 'token-1', 'token-1'])
  expect(forms).toHaveLength(1)
})

test('a call that is aborted does not wait for the exchange, which goes on for the others', async () => {
  const issued = Promise.withResolvers<Response>()
  answer = () => issued.promise
  const operator = new Secret(JSON.stringify(keyFile))
  const sign = createSign('google-oauth', { clock: createJumpClock(), operator, identity: noIdentity })
  const endpoint: Endpoint = {
    dialect: 'gemini',
    baseUrl: 'https://host.example',
    auth: 'google-oauth',
    ...(sign && { sign }),
  }
  const sent: UpstreamRequest[] = []
  const transport = async (request: UpstreamRequest) => {
    sent.push(request)
    return new Response()
  }
  const provider = { id: 'vertex', endpoints: [endpoint], apiKey: operator, source: 'a test', transport }
  const call = (signal: AbortSignal) =>
    callEndpoint(provider, endpoint, { path: '/x', headers: {}, body: new Uint8Array(0), signal })
  const leaving = new AbortController()
  const left = call(leaving.signal)
  const stays = call(new AbortController().signal)
  while (forms.length === 0) await Bun.sleep(1)
  leaving.abort(new Error('left'))
  await expect(left).rejects.toThrow('left')
  await expect(call(AbortSignal.abort(new Error('left before')))).rejects.toThrow('left before')
  expect(sent).toHaveLength(0)
  issued.resolve(Response.json({ access_token: 'shared', expires_in: 3600 }))
  expect((await stays).status).toBe(200)
  expect(sent.map(({ headers }) => headers.authorization)).toEqual(['Bearer shared'])
  expect(forms).toHaveLength(1)
})

test('a refused exchange is a verdict on the credential, and is tried again by the next call', async () => {
  const operator = new Secret(JSON.stringify(keyFile))
  const { tokens } = open(operator)
  const works = answer
  answer = () => Response.json({ error: 'invalid_grant' }, { status: 400 })
  const error = await tokens.tokenFor(operator).catch((reason: unknown) => reason)
  expect([isBadCredential(error), isUnreachable(error)]).toEqual([true, false])
  answer = works
  expect(await tokens.tokenFor(operator)).toBe('token-2')
})

test('an answer without a token is a refusal', async () => {
  answer = () => Response.json({ token_type: 'Bearer' })
  const operator = new Secret(JSON.stringify(keyFile))
  const error = await open(operator)
    .tokens.tokenFor(operator)
    .catch((reason: unknown) => reason)
  expect([isBadCredential(error), isUnreachable(error)]).toEqual([true, false])
})

test.each([
  ['no JSON', () => new Response('hello')],
  ['a server error', () => Response.json({ error: 'internal_failure' }, { status: 503 })],
  ['a request to wait', () => Response.json({ error: 'rate_limit_exceeded' }, { status: 429 })],
  ['a timeout', () => new Response('', { status: 408 })],
])('an issuer that answers with %s is out of reach, and no credential is to blame', async (_, given) => {
  answer = given
  const operator = new Secret(JSON.stringify(keyFile))
  const error = await open(operator)
    .tokens.tokenFor(operator)
    .catch((reason: unknown) => reason)
  expect([isBadCredential(error), isUnreachable(error)]).toEqual([false, true])
})

test('the operator may name a file', async () => {
  const path = join(folder, 'key.json')
  writeFileSync(path, JSON.stringify(keyFile))
  const operator = new Secret(path)
  expect(await open(operator).tokens.tokenFor(operator)).toBe('token-1')
})

test.each([
  ['a file that is not there', join(folder, 'nothing.json')],
  ['a key that is none', JSON.stringify({ ...keyFile, private_key: 'shh' })],
  ['another JSON', '{"type":"authorized_user"}'],
])('the error for %s does not repeat its content', async (_, text) => {
  const operator = new Secret(text)
  const error = await open(operator)
    .tokens.tokenFor(operator)
    .catch((reason: unknown) => reason)
  expect([isBadCredential(error), isUnreachable(error)]).toEqual([true, false])
  expect(String(error)).not.toContain(text)
  expect(String(error)).not.toContain('shh')
})

test('a tenant can neither have a file read nor choose where its claim is sent', async () => {
  const path = join(folder, 'key.json')
  writeFileSync(path, JSON.stringify(keyFile))
  const { tokens } = open(new Secret('/somewhere/else.json'))
  const error = await tokens.tokenFor(new Secret(path)).catch((reason: unknown) => reason)
  expect(String(error)).toContain('no key of a service account')
  const asked: string[] = []
  const { tokens: watched } = open(new Secret('/somewhere/else.json'))
  const usual = globalThis.fetch
  const spy = Object.assign(async (url: unknown) => {
    asked.push(String(url))
    return Response.json({ access_token: 'theirs', expires_in: 3600 })
  }, usual)
  globalThis.fetch = spy as typeof fetch
  try {
    expect(await watched.tokenFor(new Secret(JSON.stringify(keyFile)))).toBe('theirs')
  } finally {
    globalThis.fetch = usual
  }
  expect(asked).toEqual([usualTokenUrl])
})

test('requests the token of a workspace’s credential once, also if it is opened again', async () => {
  const { tokens } = open(new Secret(JSON.stringify(keyFile)))
  const text = JSON.stringify({ ...keyFile, client_email: 'own@acme.example' })
  expect(await tokens.tokenFor(new Secret(text))).toBe('token-1')
  expect(await tokens.tokenFor(new Secret(text))).toBe('token-1')
  tokens.drop(new Secret(text), (token) => token === 'token-1')
  expect(await tokens.tokenFor(new Secret(text))).toBe('token-2')
})

test('a workspace has its tokens where the operator’s file says, and nowhere else', async () => {
  const elsewhere: string[] = []
  using theirs = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      elsewhere.push(request.url)
      return Response.json({ access_token: 'theirs', expires_in: 3600 })
    },
  })
  const { tokens } = open(new Secret(JSON.stringify(keyFile)))
  const own = { ...keyFile, client_email: 'own@acme.example', token_uri: `http://127.0.0.1:${theirs.port}/token` }
  expect(await tokens.tokenFor(new Secret(JSON.stringify(own)))).toBe('token-1')
  const claim = forms[0]?.get('assertion') ?? ''
  expect(partOf(claim, 1)).toMatchObject({ iss: 'own@acme.example', aud: tokenUrl })
  expect(elsewhere).toEqual([])
})
