// Each identity of a cloud against a fake of its endpoint: 1,000 calls, while credentials end again and again and the issuer
// is away now and then. A fake provider refuses every call whose credential has ended or was never issued.

import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Secret } from '../../src/kernel/secret.ts'
import { Cancellation } from '../../src/pipeline/deadline.ts'
import { callEndpoint } from '../../src/providers/call-endpoint.ts'
import type { Cloud } from '../../src/providers/provider.ts'
import { createProviders } from '../../src/providers/registry.ts'
import { post } from '../parts/ask.ts'
import { startGateway } from '../parts/gateway.ts'
import { createJumpClock, type JumpClock } from '../parts/jump-clock.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

/** What platforms usually give. Credentials are renewed five minutes before they end. */
const lifeSeconds = 3600
/** Of five waves of calls each. */
const rounds = 10
const atOnce = 20

const folder = mkdtempSync(join(tmpdir(), 'tollgate-identities-'))
const tokenFile = join(folder, 'token')
const federationFile = join(folder, 'federation.json')
afterAll(() => rmSync(folder, { recursive: true }))

/** Issues credentials in the form of every platform, by path. Platforms replace the token file that proves who asks. */
function startIssuer(clock: JumpClock) {
  const issued = new Map<string, number>()
  let isAway = false
  let refused = 0
  let proof = ''
  const replaceTokenFile = () => {
    proof = `projected-${issued.size}`
    writeFileSync(tokenFile, proof)
  }
  replaceTokenFile()
  const issue = () => {
    const name = `issued-${issued.size + 1}`
    const endsAtMs = clock.now() + lifeSeconds * 1000
    issued.set(name, endsAtMs)
    return { name, endsAtMs, ends: new Date(endsAtMs).toISOString() }
  }
  const bearer = () => Response.json({ access_token: issue().name, expires_in: lifeSeconds })
  const managed = () => {
    const { name, endsAtMs } = issue()
    return Response.json({ access_token: name, expires_on: String(Math.floor(endsAtMs / 1000)) })
  }
  const pair = () => {
    const { name, ends } = issue()
    return Response.json({ AccessKeyId: 'ASIA', SecretAccessKey: 'shh', Token: name, Expiration: ends })
  }
  const answers: Record<string, (form: URLSearchParams) => Response> = {
    '/sts': () => {
      const { name, ends } = issue()
      const fields = { AccessKeyId: 'ASIA', SecretAccessKey: 'shh', SessionToken: name, Expiration: ends }
      const elements = Object.entries(fields).map(([tag, value]) => `<${tag}>${value}</${tag}>`)
      return new Response(`<Credentials>${elements.join('')}</Credentials>`)
    },
    '/pod': pair,
    '/latest/api/token': () => new Response('session'),
    '/latest/meta-data/iam/security-credentials/': () => new Response('role'),
    '/latest/meta-data/iam/security-credentials/role': pair,
    '/computeMetadata/v1/instance/service-accounts/default/token': bearer,
    '/v1/token': () => Response.json({ access_token: 'federated', expires_in: lifeSeconds }),
    '/v1/projects/-/serviceAccounts/gate:generateAccessToken': () => {
      const { name, ends } = issue()
      return Response.json({ accessToken: name, expireTime: ends })
    },
    '/tenant/oauth2/v2.0/token': bearer,
    '/metadata/identity/oauth2/token': managed,
    '/msi': managed,
  }
  /** Where a form has one, it must be that of the file as it is now. */
  const proofIn = (form: URLSearchParams) =>
    form.get('WebIdentityToken') ?? form.get('subject_token') ?? form.get('client_assertion') ?? proof
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const form = new URLSearchParams(request.method === 'POST' ? await request.text() : '')
      if (isAway) {
        refused++
        return new Response('', { status: 503 })
      }
      if (proofIn(form) !== proof) return new Response('', { status: 403 })
      return answers[new URL(request.url).pathname]?.(form) ?? new Response('', { status: 404 })
    },
  })
  return {
    issued,
    refusedCount: () => refused,
    setAway(next: boolean) {
      isAway = next
    },
    replaceTokenFile,
    isValid: (token: string) => (issued.get(token) ?? 0) > clock.now(),
    url: `http://127.0.0.1:${server.port}`,
    host: `127.0.0.1:${server.port}`,
    stop: () => server.stop(true),
  }
}

type Issuer = ReturnType<typeof startIssuer>

interface Platform {
  readonly provider: 'amazon-bedrock' | 'google-vertex' | 'azure'
  /** The cloud whose virtual machine it is. */
  readonly instance?: Cloud
  variables(at: Issuer): Readonly<Record<string, string>>
}

/** What every provider needs besides an identity. */
const places = {
  'amazon-bedrock': { AWS_REGION: 'eu-west-1' },
  'google-vertex': { GOOGLE_CLOUD_PROJECT: 'acme' },
  azure: { AZURE_OPENAI_ENDPOINT: 'https://acme.openai.azure.com' },
}

/** The variables that each platform sets. */
const platforms: Readonly<Record<string, Platform>> = {
  'AWS web identity': {
    provider: 'amazon-bedrock',
    variables: ({ url }) => ({
      AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
      AWS_ROLE_ARN: 'arn:aws:iam::1:role/gate',
      AWS_ENDPOINT_URL_STS: `${url}/sts`,
    }),
  },
  'AWS container and pod identity': {
    provider: 'amazon-bedrock',
    variables: ({ url }) => ({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/pod`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
    }),
  },
  'AWS instance metadata v2': {
    provider: 'amazon-bedrock',
    instance: 'aws',
    variables: ({ url }) => ({ AWS_EC2_METADATA_SERVICE_ENDPOINT: url }),
  },
  'Google metadata server': {
    provider: 'google-vertex',
    instance: 'google',
    variables: ({ host }) => ({ GCE_METADATA_HOST: host }),
  },
  'Google workload identity federation': {
    provider: 'google-vertex',
    variables({ url }) {
      const federation = {
        type: 'external_account',
        audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        token_url: `${url}/v1/token`,
        service_account_impersonation_url: `${url}/v1/projects/-/serviceAccounts/gate:generateAccessToken`,
        credential_source: { file: tokenFile },
      }
      writeFileSync(federationFile, JSON.stringify(federation))
      return { GOOGLE_APPLICATION_CREDENTIALS: federationFile }
    },
  },
  'Azure workload identity': {
    provider: 'azure',
    variables: ({ url }) => ({
      ...{ AZURE_FEDERATED_TOKEN_FILE: tokenFile, AZURE_TENANT_ID: 'tenant', AZURE_CLIENT_ID: 'client' },
      AZURE_AUTHORITY_HOST: url,
    }),
  },
  'Azure App Service': {
    provider: 'azure',
    variables: ({ url }) => ({ IDENTITY_ENDPOINT: `${url}/msi`, IDENTITY_HEADER: 'header' }),
  },
  'Azure managed identity of a machine': {
    provider: 'azure',
    instance: 'azure',
    variables: ({ url }) => ({ AZURE_POD_IDENTITY_AUTHORITY_HOST: url }),
  },
}

/** The credential of a call. */
function credentialIn(headers: Headers): string {
  return headers.get('x-amz-security-token') ?? headers.get('authorization')?.replace('Bearer ', '') ?? ''
}

test.each(Object.entries(platforms))('%s: 1,000 calls, none of which fails', async (_, platform) => {
  const clock = createJumpClock()
  const issuer = startIssuer(clock)
  const variables = { ...places[platform.provider], ...platform.variables(issuer) }
  const opened = createProviders({
    ...{ entries: [], sandboxOn: false, clock, instanceIdentity: platform.instance },
    sandboxTransport: () => Promise.reject(new Error('the sandbox is off')),
    keys: Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, new Secret(value)])),
  }).get(platform.provider)
  const endpoint = opened?.endpoints[0]
  if (!opened || !endpoint) throw new Error('the identity did not enable its provider')
  let lastUsed = ''
  const transport = async ({ headers }: { readonly headers: Readonly<Record<string, string>> }) => {
    lastUsed = credentialIn(new Headers(headers))
    return new Response('', { status: issuer.isValid(lastUsed) ? 200 : 403 })
  }
  const provider = { ...opened, transport }
  const outcomes = new Map<number | string, number>()
  const call = async () => {
    const request = { path: '/x', headers: {}, body: new Uint8Array(0), signal: new Cancellation(), isWrapped: true }
    const outcome = await callEndpoint(provider, endpoint, request).then(({ status }) => status, String)
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  }
  const wave = () => Promise.all(Array.from({ length: atOnce }, call))
  try {
    for (let round = 0; round < rounds; round++) {
      // The last credential has ended: all calls wait for one exchange.
      clock.jump(lifeSeconds)
      issuer.replaceTokenFile()
      await wave()
      expect(issuer.issued.size).toBe(2 * round + 1)
      clock.jump(lifeSeconds / 2)
      await wave()
      // In the last five minutes: it is renewed while calls go on with it, and the issuer is away.
      issuer.setAway(true)
      clock.jump(lifeSeconds / 2 - 290)
      await wave()
      while (issuer.refusedCount() <= round) await Bun.sleep(1)
      issuer.setAway(false)
      issuer.replaceTokenFile()
      await wave()
      // It tries again half a minute after it has noticed, and calls take the new credential once it has come.
      while (lastUsed !== `issued-${2 * round + 2}`) {
        if (issuer.issued.size < 2 * round + 2) clock.jump(10)
        await Bun.sleep(5)
        await call()
      }
      await wave()
    }
    const [[status, count] = []] = outcomes
    expect([outcomes.size, status]).toEqual([1, 200])
    expect(count).toBeGreaterThanOrEqual(1000)
    // In each round once for those that had to wait, and once early, after an attempt that failed.
    expect([issuer.issued.size, issuer.refusedCount()]).toEqual([2 * rounds, rounds])
  } finally {
    await issuer.stop()
  }
})

test('a gateway calls its provider with the identity that its environment names, and renews it', async () => {
  const clock = createJumpClock()
  const issuer = startIssuer(clock)
  const upstream = startUpstream((call, reply) => {
    if (issuer.isValid(credentialIn(call.headers)) && !call.headers.has('api-key')) return answerHello(call, reply)
    return reply.json(403, { error: { message: 'this call has no valid credential' } })
  })
  const gateway = await startGateway({
    clock,
    env: {
      AZURE_OPENAI_ENDPOINT: upstream.url,
      AZURE_POD_IDENTITY_AUTHORITY_HOST: issuer.url,
      TOLLGATE_INSTANCE_IDENTITY: 'azure',
    },
    config: `models:
  - { id: test/cloud, price: free, max_output_tokens: 100, routes: [{ provider: azure, model: gpt-5.6 }] }`,
  })
  try {
    for (let life = 1; life <= 2; life++) {
      const body = { model: 'test/cloud', messages: [{ role: 'user', content: 'hi' }] }
      const answers = await Promise.all(
        Array.from({ length: atOnce }, () => post(gateway, '/v1/chat/completions', body)),
      )
      expect(answers.map(({ status }) => status)).toEqual(Array(atOnce).fill(200))
      await Promise.all(answers.map((answer) => answer.text()))
      expect([issuer.issued.size, upstream.calls.length]).toEqual([life, life * atOnce])
      clock.jump(lifeSeconds)
    }
  } finally {
    await gateway.stop()
    upstream.stop()
    await issuer.stop()
  }
})
