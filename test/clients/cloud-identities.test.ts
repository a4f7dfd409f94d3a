// Each identity of a cloud against a fake of its endpoint: credentials that end all the time while calls run. A fake provider
// refuses every call whose credential has ended or was never issued.

import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { post } from '../parts/ask.ts'
import { startGateway } from '../parts/gateway.ts'
import { startUpstream } from '../parts/upstream.ts'
import { answerHello } from '../parts/upstream-words.ts'

/** Half a minute of each life is kept for calls that run, so that each is used for a second. */
const lifeMs = 31_000
const calls = 200
const atOnce = 20

const folder = mkdtempSync(join(tmpdir(), 'tollgate-identities-'))
const tokenFile = join(folder, 'token')
writeFileSync(tokenFile, 'projected')
afterAll(() => rmSync(folder, { recursive: true }))

/** Issues credentials in the form of every platform, by path. */
function startIssuer() {
  const issued = new Map<string, number>()
  const issue = () => {
    const name = `issued-${issued.size + 1}`
    const endsAtMs = Date.now() + lifeMs
    issued.set(name, endsAtMs)
    return { name, endsAtMs, ends: new Date(endsAtMs).toISOString() }
  }
  const answers: Record<string, () => Response> = {
    '/': () => {
      const { name, ends } = issue()
      const element = (tag: string, value: string) => `<${tag}>${value}</${tag}>`
      return new Response(
        `<Credentials>${element('AccessKeyId', 'ASIA')}${element('SecretAccessKey', 'shh')}${element('SessionToken', name)}${element('Expiration', ends)}</Credentials>`,
      )
    },
    '/latest/api/token': () => new Response('session'),
    '/latest/meta-data/iam/security-credentials/': () => new Response('role'),
    '/oauth': () => Response.json({ access_token: issue().name, expires_in: lifeMs / 1000 }),
    '/managed': () => {
      const { name, endsAtMs } = issue()
      return Response.json({ access_token: name, expires_on: String(Math.floor(endsAtMs / 1000)) })
    },
    '/aws': () => {
      const { name, ends } = issue()
      return Response.json({ AccessKeyId: 'ASIA', SecretAccessKey: 'shh', Token: name, Expiration: ends })
    },
  }
  answers['/latest/meta-data/iam/security-credentials/role'] = answers['/aws'] as () => Response
  answers['/computeMetadata/v1/instance/service-accounts/default/token'] = answers['/oauth'] as () => Response
  answers['/tenant/oauth2/v2.0/token'] = answers['/oauth'] as () => Response
  answers['/metadata/identity/oauth2/token'] = answers['/managed'] as () => Response
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => answers[new URL(request.url).pathname]?.() ?? new Response('', { status: 404 }),
  })
  return {
    issued,
    url: `http://127.0.0.1:${server.port}`,
    host: `127.0.0.1:${server.port}`,
    stop: () => server.stop(true),
  }
}

type Issuer = ReturnType<typeof startIssuer>

const entry = (dialect: string, baseUrl: string, apiKey: string) =>
  `providers: [{ id: cloud, dialect: ${dialect}, base_url: "${baseUrl}", api_key: "${apiKey}" }]`
const bedrock = (upstream: string) => entry('bedrock', upstream, 'identity:aws')
const aws = { AWS_REGION: 'eu-west-1' }
const azure = (upstream: string) => ({ AZURE_OPENAI_ENDPOINT: upstream })

/** The variables that each platform sets, and the provider in the gateway's file. */
const platforms: Record<string, (at: Issuer, upstream: string) => { env: Record<string, string>; provider: string }> = {
  'AWS web identity': ({ url }, upstream) => ({
    env: {
      ...aws,
      AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
      AWS_ROLE_ARN: 'arn:aws:iam::1:role/r',
      AWS_ENDPOINT_URL_STS: url,
    },
    provider: bedrock(upstream),
  }),
  'AWS container': ({ url }, upstream) => ({
    env: { ...aws, AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/aws` },
    provider: bedrock(upstream),
  }),
  'AWS instance': ({ url }, upstream) => ({
    env: { ...aws, AWS_EC2_METADATA_SERVICE_ENDPOINT: url, TOLLGATE_INSTANCE_IDENTITY: 'aws' },
    provider: bedrock(upstream),
  }),
  'Google instance': ({ host }, upstream) => ({
    env: { GCE_METADATA_HOST: host, TOLLGATE_INSTANCE_IDENTITY: 'google' },
    provider: entry('gemini', `${upstream}/v1beta`, 'identity:google'),
  }),
  'Azure workload': ({ url }, upstream) => ({
    env: {
      ...azure(upstream),
      ...{ AZURE_FEDERATED_TOKEN_FILE: tokenFile, AZURE_TENANT_ID: 'tenant', AZURE_CLIENT_ID: 'client' },
      AZURE_AUTHORITY_HOST: url,
    },
    provider: '',
  }),
  'Azure App Service': ({ url }, upstream) => ({
    env: { ...azure(upstream), IDENTITY_ENDPOINT: `${url}/managed`, IDENTITY_HEADER: 'header' },
    provider: '',
  }),
  'Azure instance': ({ url }, upstream) => ({
    env: { ...azure(upstream), AZURE_POD_IDENTITY_AUTHORITY_HOST: url, TOLLGATE_INSTANCE_IDENTITY: 'azure' },
    provider: '',
  }),
}

test.each(Object.keys(platforms))('no call fails while the credentials of %s end and are renewed', async (name) => {
  const issuer = startIssuer()
  const upstream = startUpstream((call, reply) => {
    const { headers } = call
    const token = headers.get('x-amz-security-token') ?? headers.get('authorization')?.replace('Bearer ', '') ?? ''
    const endsAtMs = issuer.issued.get(token)
    if (endsAtMs === undefined || endsAtMs < Date.now() || headers.has('api-key')) {
      return reply.json(403, { error: { message: `this call has no valid credential: ${token}` } })
    }
    return answerHello(call, reply)
  })
  const { env, provider } = platforms[name]?.(issuer, upstream.url) ?? { env: {}, provider: '' }
  const [id, model] = provider === '' ? ['azure', 'gpt-5.6'] : ['cloud', 'anthropic.claude-sonnet-4-5-v1:0']
  const gateway = await startGateway({
    env,
    config: `${provider}
models: [{ id: test/cloud, price: free, max_output_tokens: 100, routes: [{ provider: ${id}, model: "${model}" }] }]`,
  })
  try {
    const statuses = new Map<number, number>()
    let left = calls
    const caller = async () => {
      while (left-- > 0) {
        const body = { model: 'test/cloud', messages: [{ role: 'user', content: 'hi' }] }
        const response = await post(gateway, '/v1/chat/completions', body)
        await response.text()
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
        await Bun.sleep(200)
      }
    }
    await Promise.all(Array.from({ length: atOnce }, caller))
    expect(Object.fromEntries(statuses)).toEqual({ 200: calls })
    expect(issuer.issued.size).toBeGreaterThanOrEqual(2)
  } finally {
    await gateway.stop()
    upstream.stop()
    await issuer.stop()
  }
})
