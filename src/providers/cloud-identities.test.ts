import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { systemClock } from '../kernel/clock.ts'
import { Secret } from '../kernel/secret.ts'
import { isBadCredential, isUnreachable } from './call-endpoint.ts'
import { cloudOf, exchangeIdentity, identityName } from './cloud-identities.ts'
import { createSign } from './credentials.ts'
import type { Cloud, ProviderSettings } from './provider.ts'
import { createProviders } from './registry.ts'

interface Asked {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  readonly form: URLSearchParams
}

let asked: Asked[] = []
let answer: (asked: Asked) => Response | Promise<Response>
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    const { pathname: path, searchParams: query } = new URL(request.url)
    const one = {
      method: request.method,
      path,
      query,
      headers: request.headers,
      form: new URLSearchParams(await request.text()),
    }
    asked.push(one)
    return await answer(one)
  },
})
const base = `http://127.0.0.1:${server.port}`
const folder = mkdtempSync(join(tmpdir(), 'tollgate-identity-'))
const tokenFile = join(folder, 'token')

beforeEach(() => {
  asked = []
  answer = () => new Response('', { status: 500 })
  writeFileSync(tokenFile, 'projected-token\n')
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.stop(true)
})

const endsAt = '2026-11-18T06:00:00Z'
const awsJson = {
  Code: 'Success',
  AccessKeyId: 'ASIA1',
  SecretAccessKey: 'shh/+=',
  Token: 'session',
  Expiration: endsAt,
}
const awsToken = { token: 'ASIA1:shh/+=:session', endsAtMs: Date.parse(endsAt) }

const fetchFrom = (cloud: Cloud, settings: ProviderSettings, instance?: Cloud) =>
  exchangeIdentity(cloud, { settings, instance }, systemClock)

describe('AWS', () => {
  const webIdentity = {
    AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
    AWS_ROLE_ARN: 'arn:aws:iam::1:role/gate',
    AWS_REGION: 'eu-west-1',
    AWS_ENDPOINT_URL_STS: base,
  }
  // https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
  const xml = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>system:serviceaccount:gate</SubjectFromWebIdentityToken>
    <Credentials>
      <SessionToken>session</SessionToken>
      <SecretAccessKey>shh/+=</SecretAccessKey>
      <Expiration>${endsAt}</Expiration>
      <AccessKeyId>ASIA1</AccessKeyId>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>`

  test('a web identity is exchanged for credentials, with the token that the file has now', async () => {
    answer = () => new Response(xml)
    expect(await fetchFrom('aws', webIdentity)).toEqual(awsToken)
    writeFileSync(tokenFile, 'the next token')
    await fetchFrom('aws', webIdentity)
    const [first, second] = asked
    expect(first?.method).toBe('POST')
    expect(Object.fromEntries(first?.form ?? [])).toEqual({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: 'arn:aws:iam::1:role/gate',
      RoleSessionName: 'tollgate',
      WebIdentityToken: 'projected-token',
    })
    expect(first?.headers.has('authorization')).toBe(false)
    expect(second?.form.get('WebIdentityToken')).toBe('the next token')
  })

  test('a container asks its credential server, with the token that it was given', async () => {
    answer = () => Response.json(awsJson)
    const settings = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${base}/v1/credentials?x=1` }
    expect(await fetchFrom('aws', { ...settings, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'plain' })).toEqual(awsToken)
    await fetchFrom('aws', { ...settings, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile })
    expect(asked.map(({ method, path, headers }) => [method, path, headers.get('authorization')])).toEqual([
      ['GET', '/v1/credentials', 'plain'],
      ['GET', '/v1/credentials', 'projected-token'],
    ])
  })

  test.each(['http://metadata.attacker.example/x', 'http://10.0.0.8/x', 'ftp://127.0.0.1/x', 'nothing'])(
    'never sends the token of a container to %s',
    async (uri) => {
      const error = await fetchFrom('aws', { AWS_CONTAINER_CREDENTIALS_FULL_URI: uri }).catch((thrown) => thrown)
      expect(isBadCredential(error)).toBe(true)
      expect(String(error)).toContain('must be an https address')
    },
  )

  test('a virtual machine is asked by version 2 of its metadata service', async () => {
    answer = ({ method, path }) => {
      if (method === 'PUT' && path === '/latest/api/token') return new Response('imds-session')
      if (path === '/latest/meta-data/iam/security-credentials/') return new Response('gate-role\n')
      if (path === '/latest/meta-data/iam/security-credentials/gate-role') return Response.json(awsJson)
      return new Response('', { status: 404 })
    }
    expect(await fetchFrom('aws', { AWS_EC2_METADATA_SERVICE_ENDPOINT: base }, 'aws')).toEqual(awsToken)
    expect(asked[0]?.headers.get('x-aws-ec2-metadata-token-ttl-seconds')).toBe('21600')
    expect(asked.slice(1).map(({ headers }) => headers.get('x-aws-ec2-metadata-token'))).toEqual([
      'imds-session',
      'imds-session',
    ])
  })

  test('signs with the session, and asks again only before it ends', async () => {
    const clock = createJumpClock()
    let sessions = 0
    answer = () =>
      Response.json({ ...awsJson, Token: `session-${++sessions}`, Expiration: new Date(clock.now() + 3_600_000) })
    const operator = new Secret('identity:aws')
    const identity = { settings: { AWS_CONTAINER_CREDENTIALS_FULL_URI: base }, instance: undefined }
    const sign = createSign('sigv4', { clock, operator, identity })
    const request = { url: 'https://bedrock-runtime.eu-west-1.amazonaws.com/x', headers: {}, body: new Uint8Array(0) }
    const sessionOf = async () => (await sign?.(request, operator))?.['x-amz-security-token']
    expect(await Promise.all([sessionOf(), sessionOf()])).toEqual(['session-1', 'session-1'])
    clock.jump(3299)
    expect(await sessionOf()).toBe('session-1')
    expect(asked).toHaveLength(1)
    const proof = await sign?.(request, operator)
    expect(proof?.authorization).toStartWith('AWS4-HMAC-SHA256 Credential=ASIA1/')
    expect(JSON.stringify(proof)).not.toContain('identity:')
  })
})

describe('Google Cloud', () => {
  test('a virtual machine is asked for the token of its service account', async () => {
    answer = () => Response.json({ access_token: 'ya29.vm', expires_in: 3599, token_type: 'Bearer' })
    const before = Date.now()
    const { token, endsAtMs } = await fetchFrom('google', { GCE_METADATA_HOST: `127.0.0.1:${server.port}` }, 'google')
    expect(token).toBe('ya29.vm')
    expect(endsAtMs).toBeGreaterThanOrEqual(before + 3_599_000)
    const [one] = asked
    expect([one?.path, one?.headers.get('metadata-flavor')]).toEqual([
      '/computeMetadata/v1/instance/service-accounts/default/token',
      'Google',
    ])
  })

  test('a federated identity is exchanged, and the result for the token of a service account', async () => {
    answer = ({ path }) =>
      path === '/v1/token'
        ? Response.json({ access_token: 'federated', expires_in: 3600, token_type: 'Bearer' })
        : path === '/source'
          ? Response.json({ value: 'subject-from-url' })
          : Response.json({ accessToken: 'ya29.impersonated', expireTime: endsAt })
    const file = {
      type: 'external_account',
      audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${base}/v1/token`,
      service_account_impersonation_url: `${base}/v1/projects/-/serviceAccounts/gate:generateAccessToken`,
      credential_source: { file: tokenFile },
    }
    const proofOf = async (content: object) => {
      const operator = new Secret(JSON.stringify(content))
      const identity = { settings: {}, instance: undefined }
      const sign = createSign('google-oauth', { clock: systemClock, operator, identity })
      return await sign?.({ url: 'https://host.example/x', headers: {}, body: new Uint8Array(0) }, operator)
    }
    expect(await proofOf(file)).toEqual({ authorization: 'Bearer ya29.impersonated' })
    expect(Object.fromEntries(asked[0]?.form ?? [])).toMatchObject({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: file.audience,
      subject_token: 'projected-token',
      subject_token_type: file.subject_token_type,
    })
    expect(asked[0]?.headers.has('authorization')).toBe(false)
    expect(asked[1]?.headers.get('authorization')).toBe('Bearer federated')
    const format = { type: 'json', subject_token_field_name: 'value' }
    const direct = { ...file, service_account_impersonation_url: undefined }
    expect(await proofOf({ ...direct, credential_source: { url: `${base}/source`, format } })).toEqual({
      authorization: 'Bearer federated',
    })
    expect(asked.at(-1)?.form.get('subject_token')).toBe('subject-from-url')
    const byProgram = { ...direct, credential_source: { executable: { command: '/bin/sh' } } }
    const error = await proofOf(byProgram).catch((thrown: unknown) => thrown)
    expect(isBadCredential(error)).toBe(true)
  })
})

describe('Azure', () => {
  const epochSeconds = String(Date.parse(endsAt) / 1000)
  const token = { token: 'eyJ.azure', endsAtMs: Date.parse(endsAt) }

  test('a workload identity asserts the token of its file', async () => {
    answer = () => Response.json({ access_token: 'eyJ.azure', expires_in: 3599 })
    const settings = {
      AZURE_FEDERATED_TOKEN_FILE: tokenFile,
      AZURE_TENANT_ID: 'tenant-1',
      AZURE_CLIENT_ID: 'client-1',
      AZURE_AUTHORITY_HOST: `${base}/`,
    }
    expect((await fetchFrom('azure', settings)).token).toBe('eyJ.azure')
    expect(asked[0]?.path).toBe('/tenant-1/oauth2/v2.0/token')
    expect(Object.fromEntries(asked[0]?.form ?? [])).toEqual({
      grant_type: 'client_credentials',
      client_id: 'client-1',
      scope: 'https://cognitiveservices.azure.com/.default',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: 'projected-token',
    })
  })

  test('App Service and virtual machines are asked for the token of a managed identity', async () => {
    answer = () => Response.json({ access_token: 'eyJ.azure', expires_on: epochSeconds })
    const service = { IDENTITY_ENDPOINT: `${base}/msi/token`, IDENTITY_HEADER: 'secret-1', AZURE_CLIENT_ID: 'client-1' }
    expect(await fetchFrom('azure', service)).toEqual(token)
    expect(await fetchFrom('azure', { AZURE_POD_IDENTITY_AUTHORITY_HOST: base }, 'azure')).toEqual(token)
    expect(asked.map(({ path, query, headers }) => [path, Object.fromEntries(query), headers.get('metadata')])).toEqual(
      [
        [
          '/msi/token',
          { 'api-version': '2019-08-01', resource: 'https://cognitiveservices.azure.com', client_id: 'client-1' },
          null,
        ],
        [
          '/metadata/identity/oauth2/token',
          { 'api-version': '2018-02-01', resource: 'https://cognitiveservices.azure.com' },
          'true',
        ],
      ],
    )
    expect(asked[0]?.headers.get('x-identity-header')).toBe('secret-1')
  })
})

describe('when an identity cannot be had', () => {
  const instance = { AWS_EC2_METADATA_SERVICE_ENDPOINT: base }

  test.each([
    ['a refusal', () => new Response('', { status: 403 }), true],
    ['a server error', () => new Response('', { status: 503 }), false],
    ['a request to wait', () => new Response('', { status: 429 }), false],
    ['a redirect', () => Response.redirect('http://attacker.example/', 302), false],
  ])('%s is told apart from others, and nothing is followed', async (_, given, isRefusal) => {
    answer = given
    const error = await fetchFrom('aws', instance, 'aws').catch((thrown: unknown) => thrown)
    expect([isBadCredential(error), isUnreachable(error)]).toEqual([isRefusal, !isRefusal])
    expect(asked).toHaveLength(1)
  })

  const page = '<!doctype html>\n<html>\n<title>Sign in to this network</title>\n</html>\n'
  const clouds = [
    ['aws', instance, 'aws'],
    ['google', { GCE_METADATA_HOST: base.slice('http://'.length) }, 'google'],
    ['azure', { AZURE_POD_IDENTITY_AUTHORITY_HOST: base }, 'azure'],
  ] as const

  test.each(clouds)('an answer that is a page of another server is no identity, %s', async (cloud, settings, place) => {
    answer = () => new Response(page, { headers: { 'content-type': 'text/html' } })
    const error = await fetchFrom(cloud, settings, place).catch((thrown: unknown) => thrown)
    expect([isBadCredential(error), isUnreachable(error)]).toEqual([false, true])
    expect(String(error)).not.toContain('<')
  })

  test.each(clouds)('an answer that stops in its middle is given up, %s', async (cloud, settings, place) => {
    const gate = Promise.withResolvers<void>()
    answer = () =>
      new Response(
        new ReadableStream({
          async start(controller) {
            controller.enqueue(new TextEncoder().encode('{"access_token":"'))
            await gate.promise
            controller.close()
          },
        }),
      )
    const error = await fetchFrom(cloud, settings, place).catch((thrown: unknown) => thrown)
    gate.resolve()
    expect(isUnreachable(error)).toBe(true)
    expect(String(error)).toContain('does not answer')
  })

  test.each([
    ['aws', { AWS_EC2_METADATA_SERVICE_ENDPOINT: 'metadata here' }],
    ['google', { GCE_METADATA_HOST: 'metadata here' }],
    ['azure', { AZURE_POD_IDENTITY_AUTHORITY_HOST: 'metadata here' }],
  ] as const)('an address that is none is named, %s', async (cloud, settings) => {
    const error = await fetchFrom(cloud, settings, cloud).catch((thrown: unknown) => thrown)
    expect(isBadCredential(error)).toBe(true)
    expect(String(error)).toContain(`${Object.keys(settings)[0]} is not an address`)
  })

  test('a metadata server that never answers is given up, and named', async () => {
    const stalled = Promise.withResolvers<Response>()
    answer = () => stalled.promise
    const error = await fetchFrom('aws', instance, 'aws').catch((thrown: unknown) => thrown)
    stalled.resolve(new Response())
    expect(isUnreachable(error)).toBe(true)
    expect(String(error)).toContain('the metadata server of AWS does not answer')
  })

  test('a token that still works serves while its renewal fails', async () => {
    const jumped = createJumpClock()
    let looks = 0
    const clock = {
      ...jumped,
      now() {
        looks++
        return jumped.now()
      },
    }
    const operator = new Secret('identity:azure')
    const settings = { IDENTITY_ENDPOINT: base, IDENTITY_HEADER: 'secret-1' }
    const sign = createSign('api-key', { clock, operator, identity: { settings, instance: undefined } })
    const expiresIn = (seconds: number) => String(Math.floor(jumped.now() / 1000) + seconds)
    answer = () => Response.json({ access_token: `token-${asked.length}`, expires_on: expiresIn(3600) })
    const request = { url: 'https://acme.openai.azure.com/x', headers: {}, body: new Uint8Array(0) }
    const tokenOf = async () => (await sign?.(request, operator))?.authorization
    expect(await tokenOf()).toBe('Bearer token-1')
    const works = answer
    answer = () => new Response('', { status: 500 })
    clock.jump(3400)
    expect(await tokenOf()).toBe('Bearer token-1')
    // The time of the next try is set when the failure arrives, and must not be that after the jump.
    for (const before = looks; looks === before; ) await Bun.sleep(1)
    clock.jump(60)
    answer = works
    // The failed renewal is repeated in the background, and calls go on with the token that works.
    while ((await tokenOf()) === 'Bearer token-1') await Bun.sleep(1)
    expect(await tokenOf()).toBe(`Bearer token-${asked.length}`)
    clock.jump(3600)
    answer = () => new Response('', { status: 500 })
    const error = await tokenOf().catch((thrown: unknown) => thrown)
    expect(isUnreachable(error)).toBe(true)
  })
})

describe('which credential is used', () => {
  const input = {
    entries: [],
    sandboxOn: false,
    sandboxTransport: () => Promise.reject(new Error()),
    clock: systemClock,
  }
  const keysOf = (values: Record<string, string>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, new Secret(value)]))
  const web = { AWS_REGION: 'eu-west-1', AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile, AWS_ROLE_ARN: 'arn:aws:iam::1:role/g' }

  test('a key comes before an identity, and an identity enables its provider', () => {
    const byIdentity = createProviders({ ...input, keys: keysOf(web) }).get('amazon-bedrock')
    expect([byIdentity?.source, cloudOf(byIdentity?.apiKey)]).toEqual(['AWS web identity', 'aws'])
    const keys = keysOf({ ...web, AWS_ACCESS_KEY_ID: 'AKIA1', AWS_SECRET_ACCESS_KEY: 'shh' })
    expect(createProviders({ ...input, keys }).get('amazon-bedrock')?.source).toBe('AWS_ACCESS_KEY_ID')
    const { AWS_REGION: _, ...nowhere } = web
    expect(createProviders({ ...input, keys: keysOf(nowhere) }).has('amazon-bedrock')).toBe(false)
  })

  test('a virtual machine is only asked where the operator says which cloud it is in', () => {
    const keys = keysOf({ AWS_REGION: 'eu-west-1', GOOGLE_CLOUD_PROJECT: 'acme' })
    expect([...createProviders({ ...input, keys }).keys()]).toEqual([])
    expect([...createProviders({ ...input, keys, instanceIdentity: 'google' }).keys()]).toEqual(['google-vertex'])
    expect(identityName('aws', { settings: {}, instance: 'google' })).toBeUndefined()
  })

  test("a workspace cannot use the operator's identity, and its own key is sent as usual", async () => {
    answer = () => Response.json(awsJson)
    const operator = new Secret('identity:aws')
    const identity = { settings: { AWS_CONTAINER_CREDENTIALS_FULL_URI: base }, instance: undefined }
    const request = { url: 'https://bedrock-runtime.eu-west-1.amazonaws.com/x', headers: {}, body: new Uint8Array(0) }
    const signed = createSign('sigv4', { clock: systemClock, operator, identity })
    expect(await signed?.(request, new Secret('identity:aws'))).toMatchObject({
      authorization: expect.stringContaining('Credential=identity/'),
    })
    const azure = createSign('api-key', { clock: systemClock, operator: new Secret('identity:azure'), identity })
    expect(await azure?.(request, new Secret('own-key'))).toEqual({ 'api-key': 'own-key' })
    const without = createSign('sigv4', { clock: systemClock, operator: undefined, identity })
    expect(await without?.(request, new Secret('identity:aws'))).not.toHaveProperty('x-amz-security-token')
    expect(asked).toEqual([])
  })
})
